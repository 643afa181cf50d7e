/**
 * The commit of one event and nothing else, which a run makes after each step when no other run commits at the same
 * time. Most of its time is the server's overhead per statement. Without arrays, and without separate parts for the
 * fence and the gate, this statement costs 1.15 times as much as a bare insert of one row; the general statement costs
 * twice as much.
 */
import type { SqlClock } from "../clock.js";
import type { CommitWork, NewEventRow } from "../commit-work.js";
import type { PgQuery } from "../connection/driver.js";
import { serverConditionMarker } from "../connection/server-identity.js";
import type { Tables } from "../tables.js";

/**
 * The statement returns one row with `at` and `has_messages`. It returns no row if the worker is fenced or does not own
 * the run, or if the log ends elsewhere; the caller then sends the general statement to find out the reason.
 */
export class SingleEventCommit {
  readonly #clock: SqlClock;
  readonly #text: string;
  /** The text without the check of the log's end, see `ownEventsSection`. */
  readonly #knownEndText: string;

  constructor(tables: Tables, clock: SqlClock) {
    this.#clock = clock;
    let parameterCount = 0;
    const bind = () => `$${++parameterCount}`;
    const now = clock.now(bind);
    const [workerId, epoch, runId] = [`${bind()}::text`, `${bind()}::bigint`, `${bind()}::uuid`];
    const columns = ["int", "int", "int", "text", "text", "text", "text"].map((type) => `${bind()}::${type}`);
    const nextSeqSql = `SELECT e.seq + e.span FROM ${tables.events} e WHERE e.run_id = ${runId} ORDER BY e.seq DESC LIMIT 1`;
    const textWith = (
      check: string,
    ) => `INSERT INTO ${tables.events} (run_id, seq, span, attempt, type, node, outcome, data, at)
SELECT ${runId}, ${columns.join(", ")}, ${now} FROM ${tables.workers} w
WHERE w.id = ${workerId} AND w.epoch = ${epoch} AND w.live ${serverConditionMarker}
  AND (SELECT t.owner = ${workerId} AND t.epoch = ${epoch} FROM ${tables.tasks} t WHERE t.run_id = ${runId})
  ${check}
FOR KEY SHARE OF w RETURNING at, (SELECT t.pending_messages > 0 FROM ${tables.tasks} t WHERE t.run_id = ${runId}) AS has_messages`;
    this.#text = textWith(`AND coalesce((${nextSeqSql}), 1) = ${columns[0]}`);
    this.#knownEndText = textWith("");
  }

  /** null when the work is anything else than one row of events. */
  query(work: CommitWork): PgQuery | null {
    const { fence, keptRunIds, taskChanges, events, starts, children, cursors } = work;
    if (fence === null || keptRunIds.length !== 1 || events.length !== 1) return null;
    if (taskChanges.length + starts.length + children.length + cursors.length > 0) return null;
    const { runId, seq, span, attempt, type, node, outcome, data } = events[0] as NewEventRow;
    const row = [runId, seq, span, attempt, type, node, outcome, data];
    const values = [...this.#clock.values(), fence.workerId, fence.epoch, ...row];
    if (work.areLogEndsKnown) return { name: "pawl_worker_own_event", text: this.#knownEndText, values };
    return { name: "pawl_worker_one_event", text: this.#text, values };
  }
}
