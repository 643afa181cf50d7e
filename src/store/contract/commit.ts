/** A commit: what is asked of a store in one transaction, and its answer. */
import type { NewRun, Transition } from "../../core/run/transition.js";
import type { RunRecord } from "./records.js";
import type { Fence } from "./worker.js";

export interface Batch {
  /**
   * A worker's fence, checked against its row in the same transaction: `id`, `epoch` and `live` must match.
   * null: a client writes. Then every run of the batch must be unowned with no undrained mail, or the batch conflicts.
   */
  readonly fence: Fence | null;
  /**
   * The caller guarantees: no run has two transitions, and no run that is parked, finished or drained here is an
   * addressee of `mail` or `release` in the same batch. Stores sort by run id where the order of locks matters.
   */
  readonly transitions: readonly Transition[];
  /** Runs that are not children of anything in the batch. */
  readonly starts: readonly NewRun[];
}

/** A start that the database refused because of a key; `existing` is the run that has it. */
export interface RefusedStart {
  readonly runId: string;
  readonly reason: "startKey" | "heroKey";
  readonly existing: RunRecord;
}

export type CommitResult =
  | {
      readonly kind: "committed";
      /** The instant every event of the batch was stamped with. */
      readonly at: number;
      /** Runs that were to be parked but have mail, see `Next`. */
      readonly notParked: readonly string[];
      /**
       * Runs of this batch that stay with their owner (`next.kind` "keep") and have undrained messages that this commit does
       * not drain, as of the commit's own snapshot. Messages that the batch itself delivers may be missing. Only in a fenced
       * commit: an owner learns of an acknowledged pause or cancel this way, before its next heartbeat.
       */
      readonly ownedWithMessages: readonly string[];
      /** `Batch.starts` that were refused; everything else is written. A start whose own id exists already is not refused. */
      readonly refused: readonly RefusedStart[];
    }
  /** The fence is gone. Nothing was written. */
  | { readonly kind: "fenced" }
  /**
   * This run's log does not end at `after` (or, without a fence, it is owned or has mail). Nothing was written. `unread`: it
   * was to finish, and has messages that this commit does not drain: what was acknowledged must not vanish with its inbox.
   */
  | { readonly kind: "conflict"; readonly runId: string; readonly hasUnreadMessages?: true };
