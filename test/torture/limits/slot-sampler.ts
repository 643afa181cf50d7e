/**
 * A second witness beside the history: reads the slots with the tasks of their runs in one statement, which sees one state of
 * the database, and compares them.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { type RawSql, type Row, rawSql } from "../../support/raw-sql.js";
import { noteLimits } from "./limit-history.js";

const select = `SELECT s.run_id, s.lane, s.node, s.owner, s.epoch, s.waits, t.state AS task_state, t.owner AS task_owner, t.epoch AS task_epoch, w.live
  FROM pawl_slots s LEFT JOIN pawl_tasks t ON t.run_id = s.run_id LEFT JOIN pawl_workers w ON w.id = s.owner AND w.epoch = s.epoch`;

export class SlotSampler {
  readonly #url: string;
  /** The highest concurrency that any worker of the campaign declares, by the name of the limit; without it: any number. */
  readonly #highest: Readonly<Record<string, number>>;
  readonly violations: string[] = [];
  samples = 0;
  #isOver = false;
  #done: Promise<void> = Promise.resolve();

  constructor(url: string, highest: Readonly<Record<string, number>>) {
    this.#url = url;
    this.#highest = highest;
  }

  start(everyMs: number): void {
    this.#done = this.#work(everyMs);
  }

  async stop(): Promise<void> {
    this.#isOver = true;
    await this.#done;
  }

  async #work(everyMs: number): Promise<void> {
    let sql: RawSql | null = null;
    while (!this.#isOver) {
      try {
        sql ??= await rawSql(this.#url);
        await this.#sample(sql);
        await noteLimits(sql, this.#url);
      } catch {
        // The server has crashed, or another process has the database.
        await sql?.close().catch(() => {});
        sql = null;
      }
      await sleep(everyMs);
    }
    await sql?.close();
  }

  async #sample(sql: RawSql): Promise<void> {
    const rows = await sql.query(select);
    this.samples += 1;
    const inUse = new Map<string, number>();
    for (const row of rows) {
      const lane = String(row.lane);
      if (Number(row.waits) === 0) inUse.set(lane, (inUse.get(lane) ?? 0) + 1);
      if (!belongsToTask(row)) this.violations.push(`A sample has a slot without its task: ${JSON.stringify(row)}.`);
    }
    for (const [lane, count] of inUse)
      if (count > (this.#highest[lane.slice(0, lane.indexOf("\t"))] ?? Number.POSITIVE_INFINITY))
        this.violations.push(`A sample has ${count} slots in use of ${lane.replace("\t", ":")}.`);
  }
}

/**
 * A slot without an owner is held by a run until it ends. Any other belongs to a run that this worker owns in this epoch; a step may
 * give its slot back a little later than the run is parked, but its worker lives.
 */
function belongsToTask({
  node,
  owner,
  epoch,
  live,
  task_state: state,
  task_owner: other,
  task_epoch: otherEpoch,
}: Row) {
  if (node !== "") return Boolean(live);
  if (owner === null) return state !== null;
  return Number(state) === 2 && owner === other && Number(epoch) === Number(otherEpoch);
}
