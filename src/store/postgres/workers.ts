/** Workers: their rows are the fence, so everything that ends one locks its row first, and against its commits. */

import type { BeatResult, Fence, WorkerInfo } from "../contract/store.js";
import { taskState } from "../sql/records.js";
import { realNow, type SqlClock } from "./clock.js";
import type { Run } from "./connection/driver.js";
import type { Tables } from "./tables.js";

type InTransaction = <T>(work: (run: Run) => Promise<T>) => Promise<T>;

/** Called when others should look for work. */
type OnFreed = () => void;

/** What a fence gets that is dead. */
export const deadBeat: BeatResult = { alive: false, mail: [], reaped: [], pausedQueues: [] };

export class Workers {
  readonly #tables: Tables;
  readonly #clock: SqlClock;
  readonly #inTransaction: InTransaction;
  readonly #onFreed: OnFreed;

  constructor(tables: Tables, clock: SqlClock, inTransaction: InTransaction, onFreed: OnFreed) {
    this.#tables = tables;
    this.#clock = clock;
    this.#inTransaction = inTransaction;
    this.#onFreed = onFreed;
  }

  /** @param knownEpoch one that it had, although the database may have lost it: it is not given again */
  async enlist(worker: WorkerInfo, knownEpoch: number): Promise<Fence> {
    const { workers } = this.#tables;
    const { id, name, host, pid, port, leaseMs, routes } = worker;
    const [epoch, freed] = await this.#inTransaction(async (run) => {
      await run({
        text: `INSERT INTO ${workers} (id, epoch, live, name, host, pid, lease_ms, routes, started_at, beat_at)
          VALUES ($1, 0, false, '', '', 0, 0, '[]', 0, 0) ON CONFLICT DO NOTHING`,
        values: [id],
      });
      // Waits for commits under the old epoch: what they write belongs to what is freed below.
      await run({ text: `SELECT 1 FROM ${workers} WHERE id = $1 FOR UPDATE`, values: [id] });
      const [row] = await run({
        text: `UPDATE ${workers} SET epoch = greatest(epoch, $8::bigint) + 1, live = true, name = $2, host = $3, pid = $4, lease_ms = $5,
          routes = $6, port = $7, started_at = ${realNow}, beat_at = ${realNow} WHERE id = $1 RETURNING epoch`,
        values: [id, name, host, pid, Math.ceil(leaseMs), JSON.stringify(routes), port, knownEpoch],
      });
      const epoch = Number(row?.epoch);
      return [epoch, epoch > 1 && (await this.#free(run, [id]))] as const;
    });
    if (freed) this.#onFreed();
    return { workerId: id, epoch };
  }

  /** One statement when all is well; reaping is the exception. */
  async beat(run: Run, fence: Fence): Promise<BeatResult> {
    const { workers, tasks, queues } = this.#tables;
    const [row] = await run({
      name: "pawl_beat",
      text: `WITH me AS (UPDATE ${workers} SET beat_at = ${realNow} WHERE id = $1::text AND epoch = $2::bigint AND live RETURNING id)
        SELECT ARRAY(SELECT run_id FROM ${tasks} WHERE owner = $1::text AND epoch = $2::bigint AND owner IS NOT NULL AND mail > 0) AS mail,
          EXISTS (SELECT 1 FROM ${workers} w WHERE w.live AND w.id <> $1::text AND w.beat_at + w.lease_ms < ${realNow}) AS silent,
          ARRAY(SELECT name FROM ${queues} ORDER BY name) AS paused
        FROM me`,
      values: [fence.workerId, fence.epoch],
    });
    if (row === undefined) return deadBeat;
    const reaped = row.silent === true ? await this.#reap(fence.workerId) : [];
    const pausedQueues = row.paused as readonly string[];
    return { alive: true, mail: row.mail as readonly string[], reaped, pausedQueues };
  }

  async retire(fence: Fence): Promise<void> {
    const condition = "id = $1::text AND epoch = $2::bigint AND live ORDER BY id FOR UPDATE";
    await this.#bury(condition, [fence.workerId, fence.epoch]);
  }

  /** A silent worker in the middle of a commit is passed over: it is alive after all, or its turn comes next time. */
  async #reap(except: string): Promise<readonly string[]> {
    const silent = `live AND id <> $1::text AND beat_at + lease_ms < ${realNow} ORDER BY id FOR UPDATE SKIP LOCKED`;
    return this.#bury(silent, [except]);
  }

  /**
   * Dead first, then its tasks are freed, in a statement of their own: its snapshot is taken when the row is locked, so it
   * sees the last that the worker committed.
   */
  async #bury(condition: string, values: readonly unknown[]): Promise<readonly string[]> {
    const { workers } = this.#tables;
    const buried = await this.#inTransaction(async (run) => {
      const rows = await run({
        text: `WITH d AS MATERIALIZED (SELECT id FROM ${workers} WHERE ${condition})
          UPDATE ${workers} w SET live = false FROM d WHERE w.id = d.id RETURNING w.id`,
        values,
      });
      const ids = rows.map((row) => row.id as string);
      if (ids.length > 0) await this.#free(run, ids);
      return ids;
    });
    // Also when nothing was freed: only the dead one knew when the runs that it had parked become due.
    if (buried.length > 0) this.#onFreed();
    return buried;
  }

  async #free(run: Run, workerIds: readonly string[]): Promise<boolean> {
    const { tasks } = this.#tables;
    let bound = 0;
    const now = this.#clock.now(() => `$${++bound}`);
    const rows = await run({
      text: `WITH o AS MATERIALIZED (SELECT run_id FROM ${tasks} WHERE owner = ANY ($${bound + 1}::text[]) ORDER BY run_id FOR UPDATE),
        u AS (UPDATE ${tasks} t SET state = ${taskState.ready}, due_at = ${now}, owner = NULL, epoch = NULL FROM o WHERE t.run_id = o.run_id RETURNING 1)
        SELECT count(*)::int AS freed FROM u`,
      values: [...this.#clock.values(), workerIds],
    });
    return Number(rows[0]?.freed) > 0;
  }
}
