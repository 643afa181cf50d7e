/** A commit: one batch of changes that a store applies in one transaction, and the store's answer. */
import type { NewRun, Transition } from "../../core/run/transition.js";
import type { RunRecord } from "./records.js";
import type { Fence } from "./worker.js";

export interface Batch {
  /**
   * The fence of the worker that writes: its `id`, `epoch` and `live` are checked against the worker's row in the same
   * transaction. null when a client writes: then every run with a transition must be unowned and have an empty inbox,
   * or the batch conflicts.
   */
  readonly fence: Fence | null;
  /**
   * At most one per run. The caller guarantees that a run which the batch parks, finishes or drains does not also
   * receive `messages` and is not among the `releasedChildIds` of the same batch. Stores sort by run id where the order
   * of locks matters.
   */
  readonly transitions: readonly Transition[];
  /** New runs that are not children of a run in this batch. */
  readonly starts: readonly NewRun[];
}

/** A start that was refused because its key is taken; `existing` is the run that holds the key. */
export interface RefusedStart {
  readonly runId: string;
  readonly reason: "startKey" | "heroKey";
  readonly existing: RunRecord;
}

export type CommitResult =
  | {
      readonly kind: "committed";
      /** The instant that the store stamped on every event of the batch. */
      readonly at: number;
      /** Runs that were to be parked but have undrained messages: their owner keeps them, see `NextTaskState`. */
      readonly notParked: readonly string[];
      /**
       * Runs of this batch that stay with their owner (`next.kind` is "keep") and have messages that this commit does
       * not drain, as of the commit's own snapshot; messages that the batch itself delivers may be missing. Only a
       * fenced commit fills it in: an owner learns of an acknowledged pause or cancel this way, before its next
       * heartbeat.
       */
      readonly ownedWithMessages: readonly string[];
      /**
       * Those of `Batch.starts` that were refused; all others are written. A start whose own id exists is not refused.
       */
      readonly refused: readonly RefusedStart[];
    }
  /** The fence is not valid any more. Nothing was written. */
  | { readonly kind: "fenced" }
  /**
   * The log of this run does not end at `afterSeq`, or the writer may not write to the run: a worker does not own it,
   * or a client found it owned or with messages. Nothing was written. With `hasUnreadMessages` the run was to finish
   * although it has messages that this commit does not drain: acknowledged messages must not be deleted with its inbox.
   */
  | { readonly kind: "conflict"; readonly runId: string; readonly hasUnreadMessages?: true };
