/** Merges the transitions that one run submits before the next flush into one transition. */
import type { Transition } from "../../store/contract/store.js";

export type MutableTransition = {
  -readonly [Key in keyof Transition]: Transition[Key] extends readonly (infer Item)[] ? Item[] : Transition[Key];
};

export function toMutable(transition: Transition): MutableTransition {
  const { runId, afterSeq, events, next, drainedInboxIds, newChildren, messages, releasedChildIds, cursors } =
    transition;
  return {
    runId,
    afterSeq,
    events: [...events],
    next,
    drainedInboxIds: [...drainedInboxIds],
    newChildren: [...newChildren],
    messages: [...messages],
    releasedChildIds: [...releasedChildIds],
    cursors: [...cursors],
  };
}

/**
 * Appends to the arrays of `first`, because copying them would take quadratic time if many steps of a run finish
 * together.
 */
export function mergeInto(first: MutableTransition, second: Transition): void {
  for (const event of second.events) first.events.push(event);
  for (const id of second.drainedInboxIds) first.drainedInboxIds.push(id);
  for (const run of second.newChildren) first.newChildren.push(run);
  for (const message of second.messages) first.messages.push(message);
  for (const id of second.releasedChildIds) first.releasedChildIds.push(id);
  if (second.cursors.length > 0) first.cursors = mergeCursors(first.cursors, second.cursors);
  first.next = second.next;
}

/** Keeps one write per node with the latest value of each column, because a statement must not write the same row twice. */
function mergeCursors(first: Transition["cursors"], second: Transition["cursors"]): MutableTransition["cursors"] {
  const merged = new Map(first.map((write) => [write.node, write]));
  for (const write of second) merged.set(write.node, { ...merged.get(write.node), ...write });
  return [...merged.values()];
}
