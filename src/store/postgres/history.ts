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

const mostEnds = 100_000;

type Committed = Extract<CommitResult, { kind: "committed" }>;

export class History {
  readonly #tables: Tables;
  /** The epoch that each worker got last. */
  readonly #epochs = new Map<string, number>();
  /** The epochs of workers up to which nothing counts any more. */
  readonly #lost = new Map<string, number>();
  /** Where the logs end that this process has appended to and still owns: nothing else can have changed them. */
  readonly #ends = new Map<string, number>();
  /** The question for what was written last. */
  #last: PgQuery | null = null;

  constructor(tables: Tables) {
    this.#tables = tables;
  }

  enlisted({ workerId, epoch }: Fence): void {
    this.#epochs.set(workerId, epoch);
  }

  /** The highest epoch that this worker is known to have had; the database may have forgotten it. */
  epochOf(workerId: string): number {
    return this.#epochs.get(workerId) ?? 0;
  }

  /** Throws when this fence is of a past that the database does not have any more. */
  check({ workerId, epoch }: Fence): void {
    if (epoch <= (this.#lost.get(workerId) ?? 0)) throw new FencedError(workerId, epoch);
  }

  committed(batch: Batch, result: Committed): void {
    // Made at once, although it is needed only when a connection is opened: the batch is large, and would be kept alive.
    this.#last = this.#evidenceOf(batch, result);
    if (batch.fence !== null) this.#noteEnds(batch.transitions, result.kept);
  }

  #noteEnds(transitions: readonly Transition[], kept: readonly string[]): void {
    // Runs that a dead worker of this process had are never let go of. They must not add up.
    if (this.#ends.size > mostEnds) this.#ends.clear();
    for (const { runId, after, events, next } of transitions) {
      if (next.kind !== "keep" && !kept.includes(runId)) this.#ends.delete(runId);
      else if (events.length > 0) this.#ends.set(runId, after + events.length);
    }
  }

  /** Whether this process has itself written the log up to here. Then no statement has to look where it ends. */
  knowsEnd(runId: string, end: number): boolean {
    return this.#ends.get(runId) === end;
  }

  /** It is not known whether this was written. */
  uncertain({ transitions }: Batch): void {
    for (const { runId } of transitions) this.#ends.delete(runId);
  }

  /** Returns a row with `there`; null: nothing was written yet. A standby that is still behind may catch up. */
  question(): PgQuery | null {
    return this.#last;
  }

  /** The database does not have it: every epoch of this process is over. */
  wasLost(): void {
    this.#last = null;
    this.#ends.clear();
    for (const [workerId, epoch] of this.#epochs) this.#lost.set(workerId, epoch);
  }

  /**
   * Only what stays true once it is: the question may be answered after the next commit and before its acknowledgement. A
   * claim leaves no such trace; that it was lost is noticed by the first commit for its run.
   */
  #evidenceOf({ transitions, starts }: Batch, { at, refused }: Committed): PgQuery | null {
    const { runs, events, cursors } = this.#tables;
    const written = (transition: Transition) => transition.events.length > 0;
    const appended = transitions.findLast(written);
    if (appended !== undefined) {
      return exists(`${events} WHERE run_id = $1 AND seq = $2`, [appended.runId, appended.after + 1]);
    }
    const ended = transitions.findLast(({ next }) => next.kind === "finish");
    if (ended !== undefined) return exists(`${runs} WHERE id = $1 AND finished_at IS NOT NULL`, [ended.runId]);
    const moved = transitions.findLast((transition) => transition.cursors.length > 0);
    const node = moved?.cursors.at(-1)?.node;
    if (moved !== undefined && node !== undefined) {
      return exists(`${cursors} WHERE run_id = $1 AND node = $2 AND at >= $3`, [moved.runId, node, at]);
    }
    const born = starts.findLast(({ id }) => refused.every(({ runId }) => runId !== id));
    return born === undefined ? null : exists(`${runs} WHERE id = $1`, [born.id]);
  }
}

const exists = (condition: string, values: readonly unknown[]): PgQuery => ({
  text: `SELECT pg_is_in_recovery() OR EXISTS (SELECT 1 FROM ${condition}) AS there`,
  values,
});
