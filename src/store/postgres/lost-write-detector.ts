/**
 * Detects that the database has lost acknowledged writes of this process, after a fail-over to a standby that had not
 * received them or a restore from a backup. The runs that the workers of this process have in memory are then wrong.
 * `Database` checks each new connection, because no connection survives such a change. The server acknowledges commits
 * in the order of its write-ahead log, so if the last write exists, all earlier writes exist, too.
 */
import { FencedError } from "../../core/errors/errors.js";
import type { Batch, CommitResult, Fence, Transition } from "../contract/store.js";
import type { PgQuery } from "./connection/driver.js";
import type { Tables } from "./tables.js";

/** Bounds the memory for the ends of logs. */
const maxLogEnds = 100_000;

type Committed = Extract<CommitResult, { kind: "committed" }>;

export class LostWriteDetector {
  readonly #tables: Tables;
  /** The latest epoch of each worker of this process. */
  readonly #epochs = new Map<string, number>();
  /** For each worker, the highest epoch whose writes the database has lost. */
  readonly #lostEpochs = new Map<string, number>();
  /**
   * For each run that a worker of this process owns and has appended events to, the last event number of the log. Only
   * the owner can append, so the number stays right.
   */
  readonly #logEnds = new Map<string, number>();
  #lastWriteQuery: PgQuery | null = null;

  constructor(tables: Tables) {
    this.#tables = tables;
  }

  recordEpoch({ workerId, epoch }: Fence): void {
    this.#epochs.set(workerId, epoch);
  }

  /** The highest epoch that this worker is known to have had; the database may have lost it. */
  epochOf(workerId: string): number {
    return this.#epochs.get(workerId) ?? 0;
  }

  /** @throws FencedError when the database has lost writes that were made under this fence */
  assertNotLost({ workerId, epoch }: Fence): void {
    if (epoch <= (this.#lostEpochs.get(workerId) ?? 0)) throw new FencedError(workerId, epoch);
  }

  recordCommit(batch: Batch, result: Committed): void {
    // The query is built now, although only the next new connection needs it, so that the large batch can be freed.
    this.#lastWriteQuery = this.#lastWriteQueryOf(batch, result);
    if (batch.fence !== null) this.#recordLogEnds(batch.transitions, result.notParked);
  }

  #recordLogEnds(transitions: readonly Transition[], notParked: readonly string[]): void {
    // Runs of a worker of this process that died are never removed, so the map is cleared when it grows too large.
    if (this.#logEnds.size > maxLogEnds) this.#logEnds.clear();
    for (const { runId, afterSeq, events, next } of transitions) {
      if (next.kind !== "keep" && !notParked.includes(runId)) this.#logEnds.delete(runId);
      else if (events.length > 0) this.#logEnds.set(runId, afterSeq + events.length);
    }
  }

  /** Whether this process itself has written the log up to `end`. Then a commit need not check where the log ends. */
  isLogEndKnown(runId: string, end: number): boolean {
    return this.#logEnds.get(runId) === end;
  }

  /** Callers call this when it is unknown whether the batch was written; the next commits then check the logs' ends. */
  forgetLogEnds({ transitions }: Batch): void {
    for (const { runId } of transitions) this.#logEnds.delete(runId);
  }

  /**
   * The query returns one row: `is_present` is true if the last write exists, and always on a standby, which may still
   * receive it. null before the first write.
   */
  lastWriteQuery(): PgQuery | null {
    return this.#lastWriteQuery;
  }

  /** The database has lost the last write: no epoch of this process is valid any more. */
  recordLoss(): void {
    this.#lastWriteQuery = null;
    this.#logEnds.clear();
    for (const [workerId, epoch] of this.#epochs) this.#lostEpochs.set(workerId, epoch);
  }

  /**
   * The query checks only facts that later commits do not change, because it may run after the next commit and before
   * the acknowledgement of that commit. A claim leaves no such fact: the first commit for a run whose claim was lost is
   * refused.
   */
  #lastWriteQueryOf({ transitions, starts }: Batch, { at, refused }: Committed): PgQuery | null {
    const { runs, events, cursors } = this.#tables;
    const hasEvents = (transition: Transition) => transition.events.length > 0;
    const appendingTransition = transitions.findLast(hasEvents);
    if (appendingTransition !== undefined) {
      return existenceQuery(`${events} WHERE run_id = $1 AND seq = $2`, [
        appendingTransition.runId,
        appendingTransition.afterSeq + 1,
      ]);
    }
    const finishingTransition = transitions.findLast(({ next }) => next.kind === "finish");
    if (finishingTransition !== undefined)
      return existenceQuery(`${runs} WHERE id = $1 AND finished_at IS NOT NULL`, [finishingTransition.runId]);
    const cursorTransition = transitions.findLast((transition) => transition.cursors.length > 0);
    const node = cursorTransition?.cursors.at(-1)?.node;
    if (cursorTransition !== undefined && node !== undefined) {
      return existenceQuery(`${cursors} WHERE run_id = $1 AND node = $2 AND at >= $3`, [
        cursorTransition.runId,
        node,
        at,
      ]);
    }
    const startedRun = starts.findLast(({ id }) => refused.every(({ runId }) => runId !== id));
    return startedRun === undefined ? null : existenceQuery(`${runs} WHERE id = $1`, [startedRun.id]);
  }
}

const existenceQuery = (condition: string, values: readonly unknown[]): PgQuery => ({
  text: `SELECT pg_is_in_recovery() OR EXISTS (SELECT 1 FROM ${condition}) AS is_present`,
  values,
});
