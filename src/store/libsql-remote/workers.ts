/** Which workers are live. Leases are on the server's real clock, whatever the store's clock says. */

import type { BeatResult, Fence, WorkerInfo } from "../contract/store.js";
import { taskState } from "../sql/records.js";
import type { Result } from "./driver.js";
import { Plan } from "./plan.js";
import { serverNow } from "./server-clock.js";

const enlistWorker = `INSERT INTO pawl_workers (id, name, host, pid, port, routes, lease_ms, epoch, live, started_at, beat_at)
  VALUES (?, ?, ?, ?, ?, ?, ?, 1, 1, ${serverNow}, ${serverNow})
  ON CONFLICT (id) DO UPDATE SET name = excluded.name, host = excluded.host, pid = excluded.pid,
  port = excluded.port, routes = excluded.routes, lease_ms = excluded.lease_ms, epoch = epoch + 1, live = 1,
  started_at = excluded.started_at, beat_at = excluded.beat_at
  RETURNING epoch`;

const renewLease = `UPDATE pawl_workers SET beat_at = ${serverNow} WHERE id = ? AND epoch = ? AND live = 1`;

/** All in one statement: an idle worker asks all day. */
const selectNews = `SELECT 'mail' AS kind, run_id AS about FROM pawl_tasks WHERE owner = ? AND owner IS NOT NULL AND mail > 0
  UNION ALL SELECT 'silent', NULL
    WHERE EXISTS (SELECT 1 FROM pawl_workers WHERE live = 1 AND beat_at + lease_ms < ${serverNow})
  UNION ALL SELECT 'paused', name FROM pawl_queues
  UNION ALL SELECT 'now', ${serverNow}
  ORDER BY about`;

const free = `UPDATE pawl_tasks SET state = ${taskState.ready}, due_at = ?, owner = NULL, epoch = NULL`;
/** All open tasks are read, but not for a worker that is new. */
const freeTasksOfFormerLife = `${free} WHERE rowid IN (SELECT t.rowid FROM pawl_workers w CROSS JOIN pawl_tasks t
  WHERE w.id = ? AND w.epoch > 1 AND t.owner = w.id)`;
const freeTasksOfDead = `${free} WHERE owner IN (SELECT id FROM pawl_workers WHERE live = 0)`;
const freeTasksIfRetired = `${free} WHERE owner = ? AND changes() = 1`;

const markSilentDead = `UPDATE pawl_workers SET live = 0 WHERE live = 1 AND beat_at + lease_ms < ${serverNow} RETURNING id`;
const markDead = "UPDATE pawl_workers SET live = 0 WHERE id = ? AND epoch = ? AND live = 1";

/** For a plan whose results the caller reads. */
interface Read<T> {
  readonly plan: Plan<never>;
  resultOf(results: readonly Result[]): T;
}

/** The fence, and whether tasks of the worker's former life were freed. */
export function planEnlist(worker: WorkerInfo, at: number): Read<{ readonly fence: Fence; readonly freed: boolean }> {
  const { id, name, host, pid, port, routes, leaseMs } = worker;
  const plan = new Plan<never>();
  const enlisted = plan.add(enlistWorker, id, name, host, pid, port, JSON.stringify(routes), leaseMs);
  const freed = plan.add(freeTasksOfFormerLife, at, id);
  return {
    plan,
    resultOf: (results) => ({
      fence: { workerId: id, epoch: Number(results[enlisted]?.rows[0]?.epoch) },
      freed: (results[freed]?.rowsAffected ?? 0) > 0,
    }),
  };
}

export interface Beat extends Omit<BeatResult, "reaped"> {
  readonly someSilent: boolean;
  /** The server's time. */
  readonly now: number;
}

export function planBeat({ workerId, epoch }: Fence): Read<Beat> {
  const plan = new Plan<never>();
  const renewed = plan.add(renewLease, workerId, epoch);
  const newsAt = plan.add(selectNews, workerId);
  return {
    plan,
    resultOf: (results) => {
      const news = results[newsAt]?.rows ?? [];
      const about = (kind: string) => news.filter((row) => row.kind === kind).map((row) => row.about as string);
      const now = Number(about("now")[0]);
      if (results[renewed]?.rowsAffected !== 1)
        return { alive: false, mail: [], pausedQueues: [], someSilent: false, now };
      const [mail, pausedQueues] = [about("mail"), about("paused")];
      return { alive: true, mail, pausedQueues, someSilent: about("silent").length > 0, now };
    },
  };
}

/** Dead first, then their tasks are freed: a worker that falls silent between the two is left for the next beat. */
export function planReap(at: number): Read<string[]> {
  const plan = new Plan<never>();
  const reaped = plan.add(markSilentDead);
  plan.add(freeTasksOfDead, at);
  return { plan, resultOf: (results) => (results[reaped]?.rows ?? []).map((row) => row.id as string).sort() };
}

export function planRetire({ workerId, epoch }: Fence, at: number): Plan<never> {
  const plan = new Plan<never>();
  plan.add(markDead, workerId, epoch);
  plan.add(freeTasksIfRetired, at, workerId);
  return plan;
}

/** At the end of a transaction over user code: while it had the write lock, no heartbeat could renew the lease. */
export function planRenewal(plan: Plan<unknown>, { workerId, epoch }: Fence): void {
  plan.add(renewLease, workerId, epoch);
}
