/**
 * Ends of runs whose commit has lost its connection. The server may still execute it after a message has kept the second try from
 * ending the run, when the turn has read that message and gone on. The store compares only events with the log, so the run would
 * end in the middle of its turn. The turn therefore learns that its end was refused only when that is not possible any more: until
 * then the message is in the inbox, and the store ends no run with an unread message.
 */
import type { Runtime, Timer } from "../../runtime/runtime.js";
import { deliverReceipt, type QueuedTransition, removeRefused } from "./receipt.js";

export class UncertainEnds {
  readonly #runtime: Runtime;
  readonly #lateCallMs: number;
  /** By run: until when a server may execute a commit that ends it, by the monotonic clock. */
  readonly #possibleUntil = new Map<string, number>();
  readonly #delayed = new Map<QueuedTransition, Timer>();
  #isClosed = false;

  /** @param lateCallMs after this time a server has executed or dropped the commits of a lost connection */
  constructor(runtime: Runtime, lateCallMs: number) {
    this.#runtime = runtime;
    this.#lateCallMs = lateCallMs;
  }

  /** Called when the connection failed during the commit of these. */
  note(entries: readonly QueuedTransition[]): void {
    const now = this.#runtime.monotonic();
    for (const [runId, until] of this.#possibleUntil) if (until <= now) this.#possibleUntil.delete(runId);
    for (const { transition } of entries)
      if (transition.next.kind === "finish") this.#possibleUntil.set(transition.runId, now + this.#lateCallMs);
  }

  /** Tells the run that it has unread messages, and returns the other entries to be written without it. */
  refuse(entries: readonly QueuedTransition[], runId: string): QueuedTransition[] {
    const delayMs = (this.#possibleUntil.get(runId) ?? Number.NEGATIVE_INFINITY) - this.#runtime.monotonic();
    if (delayMs <= 0) return removeRefused(entries, runId, () => ({ kind: "unread" }));
    if (this.#isClosed) return removeRefused(entries, runId, () => null);
    for (const entry of entries) if (entry.transition.runId === runId) this.#refuseIn(delayMs, entry);
    return entries.filter(({ transition }) => transition.runId !== runId);
  }

  /** No turn waits any more: the worker stops, or has lost its fence. */
  close(): void {
    this.#isClosed = true;
    for (const [entry, timer] of this.#delayed) {
      this.#runtime.clearTimeout(timer);
      deliverReceipt(entry, null);
    }
    this.#delayed.clear();
  }

  #refuseIn(delayMs: number, entry: QueuedTransition): void {
    const timer = this.#runtime.setTimeout(() => {
      this.#delayed.delete(entry);
      deliverReceipt(entry, { kind: "unread" });
    }, delayMs);
    this.#delayed.set(entry, timer.unref());
  }
}
