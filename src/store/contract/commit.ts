/** A commit: one batch of changes that a store applies in one transaction, and the store's answer. */
import type { NewRun, Transition } from "../../core/run/transition.js";
import type { RunRecord } from "./records.js";
import type { Fence } from "./worker.js";

export interface Batch {
  /**
   * The fence of the worker that writes. In the same transaction the store checks that the worker's row is live and has
   * the fence's epoch. null when a client writes: then every run with a transition must have no owner and an empty
   * inbox, or the result is a conflict.
   */
  readonly fence: Fence | null;
  /**
   * At most one transition per run. The caller guarantees that a run which the batch parks, finishes or drains does not
   * also receive `messages` and is not among the `releasedChildIds` of the same batch. The order is free: stores sort
   * by run id before they lock rows.
   */
  readonly transitions: readonly Transition[];
  /** New runs that are not children of a run in this batch. */
  readonly starts: readonly NewRun[];
  /** What changes for the runs that hold a key of a new run. Absent in nearly all batches; only clients write it. */
  readonly keyChange?: KeyChange;
}

/**
 * Lets a start take over a key from the run that holds it, or replace what that run was started with. It is checked and
 * written before everything else of the batch. With it a start that is refused refuses the whole batch, as a conflict.
 */
export interface KeyChange {
  /** A run that must not have ended. Its task is locked, so that it does not end before the batch is written. */
  readonly openRunId: string | null;
  /** Each run must hold the key that it gives up; otherwise the batch is a conflict. */
  readonly moves: readonly KeyMove[];
  /** A run that a transition of the batch parks, and that has not begun. */
  readonly replacement: StartReplacement | null;
}

export interface KeyMove {
  readonly runId: string;
  readonly key: "startKey" | "heroKey";
  readonly value: string;
  /** The open run that gets the key; null frees it for a start of the batch. */
  readonly to: string | null;
}

/** The columns that a later start replaces in the row of a run. */
export interface StartReplacement
  extends Pick<NewRun, "version" | "priority" | "input" | "tags" | "startedBy" | "due" | "startBy"> {
  readonly runId: string;
}

/** A start that was refused because another run, `existing`, holds its start key or hero key. */
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
       * not drain, as of the commit's own snapshot; messages that the batch itself delivers may be missing. The list is
       * empty unless the commit is fenced. From this list an owner learns of a pause or cancel message before its next
       * heartbeat.
       */
      readonly ownedWithMessages: readonly string[];
      /**
       * The starts of the batch that were refused; all others are written. A start whose own run id exists already is a
       * repetition: it changes nothing and is not refused.
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
