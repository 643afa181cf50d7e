/** Messages from outside a commit. */
import type { Mail } from "../store.js";
import type { Database } from "./database.js";
import { byKey, marks, sql } from "./sql.js";
import { mailStatements } from "./writes.js";

/** The addressees' tasks are locked first: that orders messages to one run, and their ids with them. */
export async function send(db: Database, mail: readonly Mail[], now: string): Promise<string[]> {
  if (mail.length === 0) return [];
  const ids = [...new Set(mail.map(({ to }) => to))].sort();
  return db.transaction(async (transaction) => {
    const locked = `SELECT run_id FROM pawl_tasks ${byKey} WHERE run_id IN (${marks(ids)})`;
    const [tasks, clock] = await transaction.run([
      sql(`${locked} ORDER BY run_id FOR UPDATE`, ids),
      sql(`SELECT ${now} AS at`),
    ]);
    const reachable = new Set(tasks?.rows.map((row) => row.run_id as string));
    const at = Number(clock?.rows[0]?.at);
    await transaction.commit(
      mailStatements(
        mail.filter(({ to }) => reachable.has(to)),
        at,
      ),
    );
    return mail.flatMap(({ to }) => (reachable.has(to) ? [] : to));
  });
}
