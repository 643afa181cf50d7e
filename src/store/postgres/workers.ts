/**
 * Registers workers, renews their leases and marks them dead. A worker's row is its fence: the store locks the row
 * before it ends an epoch of the worker, so that no commit under that epoch is in progress.
 */

import type { Fence, HeartbeatResult, ScheduleInterest, WorkerInfo, WorkerLoad } from "../contract/store.js";
import { nextLookSql } from "../sql/limits/looks.js";
import { nextScheduleSql, noInterest } from "../sql/next-schedule.js";
import { encodeLoad, numberOrNull, taskState } from "../sql/records.js";
import { nextStartDeadlineSql } from "../sql/start-deadlines.js";
import { realNow, type SqlClock } from "./clock.js";
import type { ExecuteQuery } from "./connection/driver.js";
import type { Tables } from "./tables.js";

type RunInTransaction = <T>(work: (execute: ExecuteQuery) => Promise<T>) => Promise<T>;

/** Called when tasks were freed or may be due, so that other workers claim. */
type OnTasksFreed = () => void;

/** The result of a heartbeat under a dead fence. */
export const fencedHeartbeat: HeartbeatResult = {
  isAlive: false,
  ownedWithMessages: [],
  reapedWorkerIds: [],
  pausedQueues: [],
  nextScheduleInMs: null,
  nextStartDeadlineInMs: null,
  nextOfferInMs: null,
  scheduleSetInForce: null,
};

export class Workers {
  readonly #tables: Tables;
  readonly #clock: SqlClock;
  readonly #inTransaction: RunInTransaction;
  readonly #onTasksFreed: OnTasksFreed;

  constructor(tables: Tables, clock: SqlClock, inTransaction: RunInTransaction, onTasksFreed: OnTasksFreed) {
    this.#tables = tables;
    this.#clock = clock;
    this.#inTransaction = inTransaction;
    this.#onTasksFreed = onTasksFreed;
  }

  /** @param knownEpoch an earlier epoch of this worker, which the database may have lost; the new epoch is higher */
  async register(worker: WorkerInfo, knownEpoch: number): Promise<Fence> {
    const { workers } = this.#tables;
    const { id, name, host, pid, port, leaseMs, routes, scheduleSet = null } = worker;
    const [epoch, hasFreedTasks] = await this.#inTransaction(async (execute) => {
      await execute({
        text: `INSERT INTO ${workers} (id, epoch, live, name, host, pid, lease_ms, routes, started_at, heartbeat_at)
          VALUES ($1, 0, false, '', '', 0, 0, '[]', 0, 0) ON CONFLICT DO NOTHING`,
        values: [id],
      });
      // Waits for commits under the old epoch: runs that they create as owned must be freed below.
      await execute({ text: `SELECT 1 FROM ${workers} WHERE id = $1 FOR UPDATE`, values: [id] });
      // The clock is read once: read twice, it may have gone on by a millisecond in between.
      const [row] = await execute({
        text: `UPDATE ${workers} SET epoch = greatest(epoch, $8::bigint) + 1, live = true, name = $2, host = $3, pid = $4, lease_ms = $5,
          routes = $6, port = $7, started_at = clock.at, heartbeat_at = clock.at, executing = NULL, loop_lag_ms = NULL,
          schedule_set = $9
          FROM (SELECT ${realNow} AS at OFFSET 0) clock WHERE id = $1 RETURNING epoch`,
        values: [id, name, host, pid, Math.ceil(leaseMs), JSON.stringify(routes), port, knownEpoch, scheduleSet],
      });
      const epoch = Number(row?.epoch);
      return [epoch, epoch > 1 && (await this.#freeTasks(execute, [id]))] as const;
    });
    if (hasFreedTasks) this.#onTasksFreed();
    return { workerId: id, epoch };
  }

  /** Sends only one statement, unless the lease of another worker has expired. */
  async heartbeat(
    execute: ExecuteQuery,
    fence: Fence,
    load: WorkerLoad | undefined,
    { app, setKey }: ScheduleInterest = noInterest,
  ): Promise<HeartbeatResult> {
    const { workers, tasks, queues, schedules, schedule_apps: apps, start_deadlines: deadlines, lanes } = this.#tables;
    let parameterCount = 6;
    const now = this.#clock.now(() => `$${++parameterCount}`);
    const [row] = await execute({
      name: "pawl_heartbeat",
      text: `WITH renewed AS (UPDATE ${workers} SET heartbeat_at = ${realNow}, executing = coalesce($3::text, executing),
            loop_lag_ms = coalesce($4::bigint, loop_lag_ms)
          WHERE id = $1::text AND epoch = $2::bigint AND live RETURNING id)
        SELECT ARRAY(SELECT run_id FROM ${tasks} WHERE owner = $1::text AND epoch = $2::bigint AND owner IS NOT NULL AND pending_messages > 0) AS with_messages,
          EXISTS (SELECT 1 FROM ${workers} w WHERE w.live AND w.id <> $1::text AND w.heartbeat_at + w.lease_ms < ${realNow}) AS has_expired,
          ARRAY(SELECT name FROM ${queues} ORDER BY name) AS paused_queues,
          ${nextScheduleSql(schedules, "''", "$5::text")} - ${now} AS next_schedule_in,
          ${nextStartDeadlineSql(deadlines)} - ${now} AS next_start_deadline_in,
          ${nextLookSql(lanes)} - ${now} AS next_offer_in,
          (SELECT a.set_key FROM ${apps} a WHERE a.app = $6::text) AS schedule_set
        FROM renewed`,
      values: [fence.workerId, fence.epoch, ...encodeLoad(load), setKey, app, ...this.#clock.values()],
    });
    if (row === undefined) return fencedHeartbeat;
    const reapedWorkerIds = row.has_expired === true ? await this.#reap(fence.workerId) : [];
    const pausedQueues = row.paused_queues as readonly string[];
    return {
      isAlive: true,
      ownedWithMessages: row.with_messages as readonly string[],
      reapedWorkerIds,
      pausedQueues,
      nextScheduleInMs: numberOrNull(row.next_schedule_in),
      nextStartDeadlineInMs: numberOrNull(row.next_start_deadline_in),
      nextOfferInMs: numberOrNull(row.next_offer_in),
      scheduleSetInForce: row.schedule_set as string | null,
    };
  }

  async deregister(fence: Fence): Promise<void> {
    const condition = "id = $1::text AND epoch = $2::bigint AND live ORDER BY id FOR UPDATE";
    await this.#markDead(condition, [fence.workerId, fence.epoch]);
  }

  /** Skips a worker whose row is locked by a commit: the worker is alive after all, or a later heartbeat reaps it. */
  async #reap(callerId: string): Promise<readonly string[]> {
    const expiredCondition = `live AND id <> $1::text AND heartbeat_at + lease_ms < ${realNow} ORDER BY id FOR UPDATE SKIP LOCKED`;
    return this.#markDead(expiredCondition, [callerId]);
  }

  /**
   * Marks workers dead, and then frees their tasks in a second statement. The snapshot of the second statement is taken
   * after the workers' rows are locked, so it contains everything that the workers have committed.
   */
  async #markDead(condition: string, values: readonly unknown[]): Promise<readonly string[]> {
    const { workers } = this.#tables;
    const deadIds = await this.#inTransaction(async (execute) => {
      const rows = await execute({
        text: `WITH dead AS MATERIALIZED (SELECT id FROM ${workers} WHERE ${condition})
          UPDATE ${workers} w SET live = false, executing = NULL, loop_lag_ms = NULL FROM dead WHERE w.id = dead.id RETURNING w.id`,
        values,
      });
      const ids = rows.map((row) => row.id as string);
      if (ids.length > 0) await this.#freeTasks(execute, ids);
      return ids;
    });
    // The hint is sent even if no task was freed: only the dead worker knew when the runs that it parked become due.
    if (deadIds.length > 0) this.#onTasksFreed();
    return deadIds;
  }

  async #freeTasks(execute: ExecuteQuery, workerIds: readonly string[]): Promise<boolean> {
    const { tasks, slots } = this.#tables;
    // Slots that runs hold until they end have no owner.
    await execute({ text: `DELETE FROM ${slots} WHERE owner = ANY ($1::text[])`, values: [workerIds] });
    let parameterCount = 0;
    const now = this.#clock.now(() => `$${++parameterCount}`);
    const rows = await execute({
      text: `WITH owned AS MATERIALIZED (SELECT run_id FROM ${tasks} WHERE owner = ANY ($${parameterCount + 1}::text[]) ORDER BY run_id FOR UPDATE),
        freed AS (UPDATE ${tasks} t SET state = ${taskState.ready}, due_at = ${now}, owner = NULL, epoch = NULL FROM owned WHERE t.run_id = owned.run_id RETURNING 1)
        SELECT count(*)::int AS freed_count FROM freed`,
      values: [...this.#clock.values(), workerIds],
    });
    return Number(rows[0]?.freed_count) > 0;
  }
}
