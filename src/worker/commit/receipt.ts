/** What a run learns of its writes. */
import type { RefusedStart, Transition } from "../../store/contract/store.js";
import type { MutableTransition } from "./merge-transitions.js";

/** The outcome of a submitted transition. */
export type Receipt =
  /**
   * The transition was written. `isStillOwned` is true if it should have parked the run, but messages had arrived.
   * `hasMessages` is true if the worker still owns the run and messages wait in its inbox.
   */
  | { readonly kind: "committed"; readonly at: number; readonly isStillOwned: boolean; readonly hasMessages: boolean }
  /** The transition would have ended the run, but messages wait in the run's inbox, so nothing was written. */
  | { readonly kind: "unread" }
  /**
   * Nothing was written, because another process has written to the run or the store refuses its data: the turn must
   * end.
   */
  | { readonly kind: "evicted"; readonly error: unknown };

/** When the run was created; if `refusal` is not null, the run was not created for that reason. */
export type StartReceipt = { readonly at: number; readonly refusal: RefusedStart | null };

/** Receives the receipt of a transition; null means that the worker lost its fence, so the transition was not written. */
export type Receiver = (receipt: Receipt | null) => void;

/** A transition that waits to be written, or is being written. */
export interface QueuedTransition {
  transition: Transition;
  /** The mutable copy that `transition` refers to once a second transition was merged into it; null before that. */
  merged: MutableTransition | null;
  readonly receiver: Receiver;
  /** The receivers of the transitions that were merged into this one. */
  laterReceivers: Receiver[] | null;
}

export function deliverReceipt({ receiver, laterReceivers }: QueuedTransition, receipt: Receipt | null): void {
  receiver(receipt);
  if (laterReceivers !== null) for (const laterReceiver of laterReceivers) laterReceiver(receipt);
}

/** Delivers the refusal to the run that caused it, and returns the other entries to be written without it. */
export function removeRefused(
  entries: readonly QueuedTransition[],
  runId: string,
  receiptOf: (transition: Transition) => Receipt | null,
): QueuedTransition[] {
  for (const entry of entries) if (entry.transition.runId === runId) deliverReceipt(entry, receiptOf(entry.transition));
  return entries.filter((entry) => entry.transition.runId !== runId);
}
