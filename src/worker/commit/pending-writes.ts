/** What a run has to write and has not submitted yet. It goes out with the next commit of the run, all of it. */

import type { NewEvent } from "../../core/run/event.js";
import { none } from "../../core/run/transition.js";
import type { CursorWrite, Mail, NewRun, Next, Transition } from "../../store/contract/store.js";

export class PendingWrites {
  events: NewEvent[] = [];
  starts: NewRun[] = [];
  mail: Mail[] = [];
  release: string[] = [];
  drained: number[] = [];
  #cursors: Map<string, CursorWrite> | null = null;
  /** When the earliest of the waits opened in here becomes due: so long after the commit, or at an instant. */
  wakeIn: number | null = null;
  wakeAt: number | null = null;

  get empty(): boolean {
    return (
      this.events.length === 0 &&
      this.#cursors === null &&
      this.mail.length === 0 &&
      this.release.length === 0 &&
      this.drained.length === 0
    );
  }

  /** A wait begins: it is due so long after this commit, or at an instant, or never by itself. */
  open(event: NewEvent, due: { readonly inMs?: number; readonly at?: number } = {}): void {
    this.events.push(event);
    if (due.inMs !== undefined) this.wakeIn = this.wakeIn === null ? due.inMs : Math.min(this.wakeIn, due.inMs);
    if (due.at !== undefined) this.wakeAt = this.wakeAt === null ? due.at : Math.min(this.wakeAt, due.at);
  }

  cursor(write: CursorWrite): void {
    this.#cursors ??= new Map();
    this.#cursors.set(write.node, { ...this.#cursors.get(write.node), ...write });
  }

  /** What was handed out and not written comes first again. */
  putBack({ events, starts, mail, release, drained, cursors }: Transition): void {
    this.events.unshift(...events);
    this.starts.unshift(...starts);
    this.mail.unshift(...mail);
    this.release.unshift(...release);
    this.drained.unshift(...drained);
    const later = this.#cursors;
    this.#cursors = null;
    for (const write of [...cursors, ...(later?.values() ?? [])]) this.cursor(write);
  }

  /**
   * The contents, followed by `last`. What is handed out is never written to again: it may wait for its flush while the
   * pending writes fill anew. An array that nothing was added to is not copied, and none is made by `push`, which reserves room
   * for 17 items.
   */
  take(runId: string, after: number, last: readonly NewEvent[], next: Next): Transition {
    const { events, starts, mail, release, drained } = this;
    const cursors = this.#cursors === null ? none : [...this.#cursors.values()];
    if (events.length > 0) this.events = [];
    if (starts.length > 0) this.starts = [];
    if (mail.length > 0) this.mail = [];
    if (release.length > 0) this.release = [];
    if (drained.length > 0) this.drained = [];
    this.#cursors = null;
    this.wakeIn = null;
    this.wakeAt = null;
    return {
      runId,
      after,
      next,
      cursors,
      events: events.length === 0 ? last : last.length === 0 ? events : events.concat(last),
      starts: filled(starts),
      mail: filled(mail),
      release: filled(release),
      drained: filled(drained),
    };
  }
}

const filled = <T>(items: readonly T[]): readonly T[] => (items.length === 0 ? none : items);
