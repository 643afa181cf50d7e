/**
 * The commit of a run that is alone: one event, nothing else. It is what a person waits for, step by step, and most of
 * its time is the server's work to set up a statement. Without arrays and without the fence and the gate as parts of
 * their own it costs 1.15 times a bare insert of one row; the general statement costs twice as much.
 */
import type { SqlClock } from "../clock.js";
import type { PgQuery } from "../connection/driver.js";
import { meantFor } from "../connection/same-server.js";
import type { Tables } from "../tables.js";
import type { NewEventRow, Work } from "../work.js";

/** Returns a row with `at` and whether it has mail, or none: fenced, or the run is not the worker's, or its log ends elsewhere. The general statement then says which. */
export class OneEvent {
  readonly #clock: SqlClock;
  readonly #text: string;
  /** The same without a look at the end of the log, see `log-sections.ts`. */
  readonly #ownText: string;

  constructor(tables: Tables, clock: SqlClock) {
    this.#clock = clock;
    let bound = 0;
    const bind = () => `$${++bound}`;
    const now = clock.now(bind);
    const [workerId, epoch, runId] = [`${bind()}::text`, `${bind()}::bigint`, `${bind()}::uuid`];
    const columns = ["int", "int", "int", "text", "text", "text", "text"].map((type) => `${bind()}::${type}`);
    const position = `SELECT e.seq + e.span FROM ${tables.events} e WHERE e.run_id = ${runId} ORDER BY e.seq DESC LIMIT 1`;
    const textWith = (
      check: string,
    ) => `INSERT INTO ${tables.events} (run_id, seq, span, attempt, type, node, outcome, data, at)
SELECT ${runId}, ${columns.join(", ")}, ${now} FROM ${tables.workers} w
WHERE w.id = ${workerId} AND w.epoch = ${epoch} AND w.live ${meantFor}
  AND (SELECT t.owner = ${workerId} AND t.epoch = ${epoch} FROM ${tables.tasks} t WHERE t.run_id = ${runId})
  ${check}
FOR KEY SHARE OF w RETURNING at, (SELECT t.mail > 0 FROM ${tables.tasks} t WHERE t.run_id = ${runId}) AS mailed`;
    this.#text = textWith(`AND coalesce((${position}), 1) = ${columns[0]}`);
    this.#ownText = textWith("");
  }

  /** null: there is more to do than that. */
  query(work: Work): PgQuery | null {
    const { fence, keeps, moves, events, starts, children, cursors } = work;
    if (fence === null || keeps.length !== 1 || events.length !== 1) return null;
    if (moves.length + starts.length + children.length + cursors.length > 0) return null;
    const { runId, seq, span, attempt, type, node, outcome, data } = events[0] as NewEventRow;
    const row = [runId, seq, span, attempt, type, node, outcome, data];
    const values = [...this.#clock.values(), fence.workerId, fence.epoch, ...row];
    if (work.endsKnown) return { name: "pawl_worker_own_event", text: this.#ownText, values };
    return { name: "pawl_worker_one_event", text: this.#text, values };
  }
}
