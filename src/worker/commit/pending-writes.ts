/** The writes of a run that have not been submitted yet; all of them are part of the run's next commit. */

import type { NewEvent } from "../../core/run/event.js";
import { emptyList } from "../../core/run/transition.js";
import type { CursorWrite, Message, NewRun, NextTaskState, Transition } from "../../store/contract/store.js";

export class PendingWrites {
  events: NewEvent[] = [];
  starts: NewRun[] = [];
  messages: Message[] = [];
  releasedChildIds: string[] = [];
  drainedInboxIds: number[] = [];
  #cursors: Map<string, CursorWrite> | null = null;
  /** How long after the commit the earliest of the pending waits with a relative time becomes due. */
  wakeInMs: number | null = null;
  /** When the earliest of the pending waits with an absolute time becomes due. */
  wakeAt: number | null = null;

  get isEmpty(): boolean {
    return (
      this.events.length === 0 &&
      this.#cursors === null &&
      this.messages.length === 0 &&
      this.releasedChildIds.length === 0 &&
      this.drainedInboxIds.length === 0
    );
  }

  /** Adds the event that starts a wait. The wait becomes due `inMs` after the commit or at the instant `at`, if set. */
  addWaitEvent(event: NewEvent, due: { readonly inMs?: number; readonly at?: number } = {}): void {
    this.events.push(event);
    if (due.inMs !== undefined) this.wakeInMs = this.wakeInMs === null ? due.inMs : Math.min(this.wakeInMs, due.inMs);
    if (due.at !== undefined) this.wakeAt = this.wakeAt === null ? due.at : Math.min(this.wakeAt, due.at);
  }

  setCursor(write: CursorWrite): void {
    this.#cursors ??= new Map();
    this.#cursors.set(write.node, { ...this.#cursors.get(write.node), ...write });
  }

  /** Restores the writes of a transition that the store refused, in front of all writes that were added since. */
  putBack({ events, newChildren, messages, releasedChildIds, drainedInboxIds, cursors }: Transition): void {
    this.events.unshift(...events);
    this.starts.unshift(...newChildren);
    this.messages.unshift(...messages);
    this.releasedChildIds.unshift(...releasedChildIds);
    this.drainedInboxIds.unshift(...drainedInboxIds);
    const laterCursors = this.#cursors;
    this.#cursors = null;
    for (const write of [...cursors, ...(laterCursors?.values() ?? [])]) this.setCursor(write);
  }

  /**
   * Returns all pending writes as one transition, with `lastEvents` after their events, and starts with new empty arrays.
   * The returned arrays are never modified again, because they may wait for a flush while new writes are added. To save
   * memory, empty arrays are not replaced, and events are joined by `concat`, because `push` reserves room for 17 items.
   */
  take(runId: string, afterSeq: number, lastEvents: readonly NewEvent[], next: NextTaskState): Transition {
    const { events, starts, messages, releasedChildIds, drainedInboxIds } = this;
    const cursors = this.#cursors === null ? emptyList : [...this.#cursors.values()];
    if (events.length > 0) this.events = [];
    if (starts.length > 0) this.starts = [];
    if (messages.length > 0) this.messages = [];
    if (releasedChildIds.length > 0) this.releasedChildIds = [];
    if (drainedInboxIds.length > 0) this.drainedInboxIds = [];
    this.#cursors = null;
    this.wakeInMs = null;
    this.wakeAt = null;
    return {
      runId,
      afterSeq,
      next,
      cursors,
      events: events.length === 0 ? lastEvents : lastEvents.length === 0 ? events : events.concat(lastEvents),
      newChildren: orEmptyList(starts),
      messages: orEmptyList(messages),
      releasedChildIds: orEmptyList(releasedChildIds),
      drainedInboxIds: orEmptyList(drainedInboxIds),
    };
  }
}

const orEmptyList = <T>(items: readonly T[]): readonly T[] => (items.length === 0 ? emptyList : items);
