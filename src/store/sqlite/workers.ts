/** Who is alive: fences, heartbeats, and what becomes of the tasks of the dead. Leases are real time, always:
 * `now` is the process's clock, where `at` may be a virtual one's. */

import type { Runtime } from "../../runtime/runtime.js";
import type { Fence, HeartbeatResult, WorkerInfo } from "../contract/store.js";
import { taskState } from "../sql/records.js";
import type { Connection } from "./connection.js";

const selectFence = "SELECT 1 FROM pawl_workers WHERE id = ? AND epoch = ? AND live = 1";

const upsertWorker = `INSERT INTO pawl_workers (id, name, host, pid, port, routes, lease_ms, epoch, live, started_at, heartbeat_at)
  VALUES (?, ?, ?, ?, ?, ?, ?, 1, 1, ?, ?)
  ON CONFLICT (id) DO UPDATE SET name = excluded.name, host = excluded.host, pid = excluded.pid,
  port = excluded.port,   routes = excluded.routes, lease_ms = excluded.lease_ms, epoch = epoch + 1, live = 1,
  started_at = excluded.started_at, heartbeat_at = excluded.heartbeat_at
  RETURNING epoch`;

const updateHeartbeat = "UPDATE pawl_workers SET heartbeat_at = ? WHERE id = ? AND epoch = ? AND live = 1";
const selectExpiredWorkers = "SELECT id FROM pawl_workers WHERE live = 1 AND heartbeat_at + lease_ms < ? ORDER BY id";
const setWorkerDead = "UPDATE pawl_workers SET live = 0 WHERE id = ?";

/** Without an index on the owner, which every claim would pay for: it reads all open tasks, once per death. */
const freeTasks = `UPDATE pawl_tasks SET state = ${taskState.ready}, due_at = ?, owner = NULL, epoch = NULL
  WHERE owner = ?`;

/** All in one statement: an idle worker asks all day. */
const selectHeartbeatReport = `SELECT 'messages' AS kind, run_id AS about FROM pawl_tasks WHERE owner = ? AND owner IS NOT NULL AND pending_messages > 0
  UNION ALL SELECT 'silent', NULL WHERE EXISTS (SELECT 1 FROM pawl_workers WHERE live = 1 AND heartbeat_at + lease_ms < ?)
  UNION ALL SELECT 'paused', name FROM pawl_queues
  ORDER BY about`;

/** Inside a transaction this holds until its end: whoever marks a worker dead needs the same write lock. */
export function holdsFence(db: Connection, { workerId, epoch }: Fence): boolean {
  return db.get(selectFence, workerId, epoch) !== undefined;
}

export function renewLease(db: Connection, { workerId, epoch }: Fence, now: number): boolean {
  return db.run(updateHeartbeat, now, workerId, epoch) === 1;
}

interface Registration {
  readonly fence: Fence;
  /** Tasks of its former life that were made ready. */
  readonly freedTaskCount: number;
}

export function registerWorker(db: Connection, worker: WorkerInfo, at: number, now: number): Registration {
  const { id, name, host, pid, port, routes, leaseMs } = worker;
  const row = db.get(upsertWorker, id, name, host, pid, port, JSON.stringify(routes), leaseMs, now, now);
  const epoch = Number(row?.epoch);
  return { fence: { workerId: id, epoch }, freedTaskCount: epoch === 1 ? 0 : db.run(freeTasks, at, id) };
}

/** Two statements, each by itself; only a death, which is rare, needs a transaction (`reap`). */
export function heartbeat(
  db: Connection,
  fence: Fence,
  runtime: Runtime,
): Omit<HeartbeatResult, "reapedWorkerIds"> & { readonly hasExpiredWorkers: boolean } {
  if (!renewLease(db, fence, runtime.now()))
    return { isAlive: false, ownedWithMessages: [], pausedQueues: [], hasExpiredWorkers: false };
  const reportRows = db.all(selectHeartbeatReport, fence.workerId, runtime.now());
  const subjectsOf = (kind: string) => reportRows.filter((row) => row.kind === kind).map((row) => row.about as string);
  return {
    isAlive: true,
    ownedWithMessages: subjectsOf("messages"),
    pausedQueues: subjectsOf("paused"),
    hasExpiredWorkers: subjectsOf("silent").length > 0,
  };
}

export function reap(db: Connection, at: number, now: number): string[] {
  const reaped = db.all(selectExpiredWorkers, now).map((row) => row.id as string);
  for (const id of reaped) markDead(db, id, at);
  return reaped;
}

export function deregisterWorker(db: Connection, fence: Fence, at: number): void {
  if (holdsFence(db, fence)) markDead(db, fence.workerId, at);
}

/** Dead first, then its tasks are freed; here in one transaction anyway. */
function markDead(db: Connection, workerId: string, at: number): void {
  db.run(setWorkerDead, workerId);
  db.run(freeTasks, at, workerId);
}
