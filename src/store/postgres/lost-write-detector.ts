/**
 * Whether the database still has what this process wrote last. After a fail-over to a standby that was behind, or a restored
 * copy, it may not: then what the workers of this process have in memory never happened. Each new connection is asked, for
 * no connection survives such a change. Commits are acknowledged in the order of the log of the server, so the last one
 * speaks for all before it.
 */
import { FencedError } from "../../core/errors/errors.js";
import type { Batch, CommitResult, Fence, Transition } from "../contract/store.js";
import type { PgQuery } from "./connection/driver.js";
import type { Tables } from "./tables.js";

const maxLogEnds = 100_000;

type Committed = Extract<CommitResult, { kind: "committed" }>;

export class LostWriteDetector {
  readonly #tables: Tables;
  /** The epoch that each worker got last. */
  readonly #epochs = new Map<string, number>();
  /** The epochs of workers up to which nothing counts any more. */
  readonly #lostEpochs = new Map<string, number>();
  /** Where the logs end that this process has appended to and still owns: nothing else can have changed them. */
  readonly #logEnds = new Map<string, number>();
  /** The question for what was written last. */
  #lastWriteQuery: PgQuery | null = null;

  constructor(tables: Tables) {
    this.#tables = tables;
  }

  recordEpoch({ workerId, epoch }: Fence): void {
    this.#epochs.set(workerId, epoch);
  }

  /** The highest epoch that this worker is known to have had; the database may have forgotten it. */
  epochOf(workerId: string): number {
    return this.#epochs.get(workerId) ?? 0;
  }

  /** Throws when this fence is of a past that the database does not have any more. */
  assertNotLost({ workerId, epoch }: Fence): void {
    if (epoch <= (this.#lostEpochs.get(workerId) ?? 0)) throw new FencedError(workerId, epoch);
  }

  recordCommit(batch: Batch, result: Committed): void {
    // Made at once, although it is needed only when a connection is opened: the batch is large, and would be kept alive.
    this.#lastWriteQuery = this.#lastWriteQueryOf(batch, result);
    if (batch.fence !== null) this.#recordLogEnds(batch.transitions, result.notParked);
  }

  #recordLogEnds(transitions: readonly Transition[], notParked: readonly string[]): void {
    // Runs that a dead worker of this process had are never let go of. They must not add up.
    if (this.#logEnds.size > maxLogEnds) this.#logEnds.clear();
    for (const { runId, afterSeq, events, next } of transitions) {
      if (next.kind !== "keep" && !notParked.includes(runId)) this.#logEnds.delete(runId);
      else if (events.length > 0) this.#logEnds.set(runId, afterSeq + events.length);
    }
  }

  /** Whether this process has itself written the log up to here. Then no statement has to look where it ends. */
  isLogEndKnown(runId: string, end: number): boolean {
    return this.#logEnds.get(runId) === end;
  }

  /** It is not known whether this was written. */
  forgetLogEnds({ transitions }: Batch): void {
    for (const { runId } of transitions) this.#logEnds.delete(runId);
  }

  /** Returns a row with `there`; null: nothing was written yet. A standby that is still behind may catch up. */
  lastWriteQuery(): PgQuery | null {
    return this.#lastWriteQuery;
  }

  /** The database does not have it: every epoch of this process is over. */
  recordLoss(): void {
    this.#lastWriteQuery = null;
    this.#logEnds.clear();
    for (const [workerId, epoch] of this.#epochs) this.#lostEpochs.set(workerId, epoch);
  }

  /**
   * Only what stays true once it is: the question may be answered after the next commit and before its acknowledgement. A
   * claim leaves no such trace; that it was lost is noticed by the first commit for its run.
   */
  #lastWriteQueryOf({ transitions, starts }: Batch, { at, refused }: Committed): PgQuery | null {
    const { runs, events, cursors } = this.#tables;
    const hasEvents = (transition: Transition) => transition.events.length > 0;
    const appended = transitions.findLast(hasEvents);
    if (appended !== undefined) {
      return existenceQuery(`${events} WHERE run_id = $1 AND seq = $2`, [appended.runId, appended.afterSeq + 1]);
    }
    const finished = transitions.findLast(({ next }) => next.kind === "finish");
    if (finished !== undefined)
      return existenceQuery(`${runs} WHERE id = $1 AND finished_at IS NOT NULL`, [finished.runId]);
    const withCursor = transitions.findLast((transition) => transition.cursors.length > 0);
    const node = withCursor?.cursors.at(-1)?.node;
    if (withCursor !== undefined && node !== undefined) {
      return existenceQuery(`${cursors} WHERE run_id = $1 AND node = $2 AND at >= $3`, [withCursor.runId, node, at]);
    }
    const started = starts.findLast(({ id }) => refused.every(({ runId }) => runId !== id));
    return started === undefined ? null : existenceQuery(`${runs} WHERE id = $1`, [started.id]);
  }
}

const existenceQuery = (condition: string, values: readonly unknown[]): PgQuery => ({
  text: `SELECT pg_is_in_recovery() OR EXISTS (SELECT 1 FROM ${condition}) AS there`,
  values,
});
