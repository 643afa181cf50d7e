/**
 * Tells clients that something may have changed, so that they read again. It says no more than that: the events of
 * different runs have no common order. All clients are told at the same moment and at most once a second, so that they
 * ask the same questions together and the database is asked once (`SharedQuestions`).
 */
import type { Runtime, Timer } from "../../runtime/runtime.js";
import type { Store } from "../../store/contract/store.js";
import type { SharedQuestions } from "../shared-questions.js";
import { type EventSource, formatEvent } from "./event-stream.js";

const shortestIntervalMs = 1_000;
/** Not every change sends a hint: a claim, for example, does not. */
const tickMs = 5_000;
/** Where processes do not hear of each other's changes. */
const tickWithoutHintsMs = 2_000;

export class ChangeFeed {
  readonly #store: Store;
  readonly #runtime: Runtime;
  readonly #questions: SharedQuestions;
  readonly #listeners = new Set<() => void>();
  #unwatch: (() => void) | null = null;
  #ticker: Timer | null = null;
  #announcement: Timer | null = null;
  #announcedAt = Number.NEGATIVE_INFINITY;

  constructor(store: Store, runtime: Runtime, questions: SharedQuestions) {
    this.#store = store;
    this.#runtime = runtime;
    this.#questions = questions;
  }

  /** Announces a change soon. */
  announce(): void {
    if (this.#listeners.size === 0 || this.#announcement !== null) return;
    const delayMs = Math.max(0, this.#announcedAt + shortestIntervalMs - this.#runtime.monotonic());
    this.#announcement = this.#runtime.setTimeout(() => this.#announceNow(), delayMs);
  }

  #announceNow(): void {
    this.#announcement = null;
    this.#announcedAt = this.#runtime.monotonic();
    this.#questions.invalidate();
    for (const listener of [...this.#listeners]) listener();
  }

  /** The changes from now on. A client that reads slowly gets one event for all that it has missed. */
  subscribe(onClose: () => void): EventSource {
    let hasChanged = true;
    let isClosed = false;
    let wake: (() => void) | null = null;
    const listener = () => {
      hasChanged = true;
      wake?.();
    };
    this.#add(listener);
    return {
      next: async () => {
        while (!hasChanged && !isClosed)
          await new Promise<void>((resolve) => {
            wake = resolve;
          });
        hasChanged = false;
        return isClosed
          ? null
          : formatEvent({ event: "change", data: { at: new Date(this.#runtime.now()).toISOString() } });
      },
      close: () => {
        isClosed = true;
        this.#remove(listener);
        wake?.();
        onClose();
      },
    };
  }

  #add(listener: () => void): void {
    this.#listeners.add(listener);
    if (this.#listeners.size > 1) return;
    this.#unwatch = this.#store.watch(() => this.announce());
    const intervalMs = this.#store.hasCrossProcessHints ? tickMs : tickWithoutHintsMs;
    this.#ticker = this.#runtime.setInterval(() => this.announce(), intervalMs).unref();
  }

  #remove(listener: () => void): void {
    this.#listeners.delete(listener);
    if (this.#listeners.size > 0) return;
    this.#unwatch?.();
    this.#unwatch = null;
    this.#runtime.clearInterval(this.#ticker);
    this.#runtime.clearTimeout(this.#announcement);
    this.#announcement = null;
  }
}
