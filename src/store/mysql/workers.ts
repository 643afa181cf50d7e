/** Who lives: enlisting, heartbeats, reaping. Leases are on the server's real clock, whatever the store's clock says. */

import type { BeatResult, Fence, WorkerInfo } from "../contract/store.js";
import { taskState } from "../sql/records.js";
import { serverNow } from "./clock.js";
import type { Database } from "./database.js";
import type { Session } from "./session.js";
import { byKey, forKeys, marks, type Sql, sql } from "./sql.js";

const mine = "id = ? AND epoch = ? AND live = 1";
const isSilent = `live = 1 AND beat_at + lease_ms < ${serverNow}`;

/** What a worker owns is found among all that is owned: a range of the index `due`, of a size that workers can carry. */
const ownedBy = (workerId: string, and = ""): Sql =>
  sql(`SELECT run_id FROM pawl_tasks WHERE state = ${taskState.owned} AND owner = ?${and} ORDER BY run_id`, [workerId]);

/** The fence, and whether tasks of the worker's former life were freed. */
export async function enlist(
  db: Database,
  worker: WorkerInfo,
  now: string,
): Promise<{ readonly fence: Fence; readonly freed: boolean }> {
  const { id, name, host, pid, port, routes, leaseMs } = worker;
  const columns = "id, name, host, pid, port, routes, lease_ms, epoch, live, started_at, beat_at";
  const overwrite = ["name", "host", "pid", "port", "routes", "lease_ms", "live", "started_at", "beat_at"];
  const updates = overwrite.map((column) => `${column} = VALUES(${column})`).join(", ");
  return db.transaction(async (transaction) => {
    const [, row, tasks] = await transaction.run([
      sql(
        `INSERT INTO pawl_workers (${columns}) VALUES (?, ?, ?, ?, ?, ?, ?, 1, 1, ${serverNow}, ${serverNow}) ` +
          `ON DUPLICATE KEY UPDATE epoch = epoch + 1, ${updates}`,
        [id, name, host, pid, port, JSON.stringify(routes), leaseMs],
      ),
      sql("SELECT epoch FROM pawl_workers WHERE id = ?", [id]),
      ownedBy(id),
    ]);
    const runIds = tasks?.rows.map((task) => task.run_id as string) ?? [];
    await transaction.commit(freeStatements(id, runIds, now));
    return { fence: { workerId: id, epoch: Number(row?.rows[0]?.epoch) }, freed: runIds.length > 0 };
  });
}

export async function beat(
  db: Database,
  { workerId, epoch }: Fence,
  now: () => string,
): Promise<BeatResult & { readonly freed: boolean }> {
  // Renewing twice does no harm, so this is tried again like a read when the answer is lost.
  const [renewed, silent, mailed, paused] = await db.read([
    sql(`UPDATE pawl_workers SET beat_at = ${serverNow} WHERE ${mine}`, [workerId, epoch]),
    sql(`SELECT id FROM pawl_workers WHERE ${isSilent}`),
    ownedBy(workerId, " AND mail > 0"),
    sql("SELECT name FROM pawl_queues ORDER BY name"),
  ]);
  if (renewed?.affected !== 1) return { alive: false, mail: [], reaped: [], pausedQueues: [], freed: false };
  const mail = mailed?.rows.map((row) => row.run_id as string) ?? [];
  const pausedQueues = paused?.rows.map((row) => row.name as string) ?? [];
  const news = { alive: true, mail, pausedQueues };
  if (silent?.rows.length === 0) return { ...news, reaped: [], freed: false };
  return { ...news, ...(await reap(db, now())) };
}

/**
 * Marks silent workers dead and frees their tasks, in one transaction: nobody sees the one without the other. The lock
 * on a worker's row waits for no flush that holds it (SKIP LOCKED): such a worker is not silent.
 */
async function reap(db: Database, now: string): Promise<{ readonly reaped: string[]; readonly freed: boolean }> {
  return db.transaction(async (transaction) => {
    const silent = sql(`SELECT id FROM pawl_workers WHERE ${isSilent} ORDER BY id FOR UPDATE SKIP LOCKED`);
    const [found] = await transaction.run([silent]);
    const reaped = found?.rows.map((row) => row.id as string) ?? [];
    const freed = await bury(transaction, reaped, now);
    await transaction.commit([]);
    return { reaped, freed };
  });
}

/** True when it left tasks behind. */
export async function retire(db: Database, { workerId, epoch }: Fence, now: string): Promise<boolean> {
  return db.transaction(async (transaction) => {
    const [found] = await transaction.run([
      sql(`SELECT id FROM pawl_workers WHERE ${mine} FOR UPDATE`, [workerId, epoch]),
    ]);
    const freed = found?.rows.length === 1 && (await bury(transaction, [workerId], now));
    await transaction.commit([]);
    return freed;
  });
}

/** Dead first, then its tasks are freed; the rows of the workers are locked. */
async function bury(session: Session, workerIds: readonly string[], now: string): Promise<boolean> {
  if (workerIds.length === 0) return false;
  const dead = sql(`UPDATE pawl_workers ${byKey} SET live = 0 WHERE id IN (${marks(workerIds)})`, workerIds);
  const [, ...owned] = await session.run([dead, ...workerIds.map((id) => ownedBy(id))]);
  const frees = owned.flatMap(({ rows }, index) =>
    freeStatements(
      workerIds[index] as string,
      rows.map((row) => row.run_id as string),
      now,
    ),
  );
  if (frees.length > 0) await session.run(frees);
  return frees.length > 0;
}

/** By primary key, as read a moment ago: the worker is dead or locked, so nothing is added to what it owns. */
function freeStatements(workerId: string, runIds: readonly string[], now: string): Sql[] {
  const set = `state = ${taskState.ready}, rank_no = -priority, due_at = ${now}, owner = NULL, epoch = NULL`;
  return forKeys(runIds, (part) =>
    sql(`UPDATE pawl_tasks ${byKey} SET ${set} WHERE run_id IN (${marks(part)}) AND owner = ?`, [...part, workerId]),
  );
}
