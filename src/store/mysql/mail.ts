/** Messages from outside a commit. */

import type { Mail } from "../contract/store.js";
import { taskState } from "../sql/records.js";
import type { Database } from "./database.js";
import type { Session } from "./session.js";
import { byKey, marks, sql } from "./sql.js";
import { mailStatements } from "./writes.js";

export async function send(db: Database, mail: readonly Mail[], now: string): Promise<string[]> {
  if (mail.length === 0) return [];
  return db.transaction(async (transaction) => {
    const { reachable, at } = await lockAddressees(transaction, mail, now);
    await transaction.commit(
      mailStatements(
        mail.filter(({ to }) => reachable.has(to)),
        at,
      ),
    );
    return mail.flatMap(({ to }) => (reachable.has(to) ? [] : to));
  });
}

/** The addressees' tasks are locked first: that orders messages to one run, and their ids with them. */
export async function lockAddressees(session: Session, mail: readonly Mail[], now: string) {
  const ids = addressees(mail);
  const locked = `SELECT run_id FROM pawl_tasks ${byKey} WHERE run_id IN (${marks(ids)})`;
  const [tasks, clock] = await session.run([
    sql(`${locked} ORDER BY run_id FOR UPDATE`, ids),
    sql(`SELECT ${now} AS at`),
  ]);
  const reachable = new Set(tasks?.rows.map((row) => row.run_id as string));
  return { reachable, at: Number(clock?.rows[0]?.at) };
}

/** Addressees that are parked and have not begun. Their tasks are locked, so that this stays true. */
export async function unbegunAddressees(session: Session, mail: readonly Mail[]): Promise<ReadonlySet<string>> {
  const ids = addressees(mail);
  const parked = `t.run_id IN (${marks(ids)}) AND t.state = ${taskState.parked} AND r.started_at IS NULL`;
  const [found] = await session.run([
    sql(
      `SELECT t.run_id FROM pawl_tasks t JOIN pawl_runs r ON r.id = t.run_id WHERE ${parked} LOCK IN SHARE MODE`,
      ids,
    ),
  ]);
  return new Set(found?.rows.map((row) => row.run_id as string));
}

const addressees = (mail: readonly Mail[]) => [...new Set(mail.map(({ to }) => to))].sort();
