/** What a run has to write and has not submitted yet. It goes out with the next commit of the run, all of it. */

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
  /** When the earliest of the waits opened in here becomes due: so long after the commit, or at an instant. */
  wakeInMs: number | null = null;
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

  /** A wait begins: it is due so long after this commit, or at an instant, or never by itself. */
  addWaitEvent(event: NewEvent, due: { readonly inMs?: number; readonly at?: number } = {}): void {
    this.events.push(event);
    if (due.inMs !== undefined) this.wakeInMs = this.wakeInMs === null ? due.inMs : Math.min(this.wakeInMs, due.inMs);
    if (due.at !== undefined) this.wakeAt = this.wakeAt === null ? due.at : Math.min(this.wakeAt, due.at);
  }

  setCursor(write: CursorWrite): void {
    this.#cursors ??= new Map();
    this.#cursors.set(write.node, { ...this.#cursors.get(write.node), ...write });
  }

  /** What was handed out and not written comes first again. */
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
   * The contents, followed by `last`. What is handed out is never written to again: it may wait for its flush while the
   * pending writes fill anew. An array that nothing was added to is not copied, and none is made by `push`, which reserves room
   * for 17 items.
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
