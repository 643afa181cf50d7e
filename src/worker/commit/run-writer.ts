/**
 * Writes to the log of one run during a turn: numbers the events, submits them to the group committer, handles the
 * receipts.
 */
import type { NewEvent } from "../../core/run/event.js";
import { evolve } from "../../core/run/fold.js";
import type { RunState } from "../../core/run/state.js";
import { keepOwner } from "../../core/run/transition.js";
import type { NewRun, NextTaskState, Transition } from "../../store/contract/store.js";
import type { GroupCommitter } from "./group-committer.js";
import { PendingWrites } from "./pending-writes.js";
import type { Receipt } from "./receipt.js";

/** How the turn of a run ended. */
export type TurnEnd =
  | { readonly how: "parked"; readonly dueAt: number | null; readonly at: number }
  | { readonly how: "finished" }
  /** Messages arrived while the run was being parked, so this worker still owns it. */
  | { readonly how: "has messages" }
  /** The worker lost its fence: another worker may own the run. */
  | { readonly how: "lost" }
  /** The store refused the writes of the run. */
  | { readonly how: "evicted"; readonly error: unknown };

/** The events that a transactional step has committed over its own connection. */
interface ExclusiveWrite {
  readonly events: readonly NewEvent[];
  readonly at: number;
  readonly hasMessages: boolean;
}

/**
 * The turn that uses the writer. The writer gets one object instead of several callbacks, because six closures per turn
 * were 3 % of the garbage of one-step runs.
 */
export interface RunWriterOwner {
  readonly runId: string;
  readonly state: RunState;
  /** Publishes committed events; called before anything else acts on them. */
  publish(events: readonly NewEvent[], after: number, at: number, next: NextTaskState, starts: readonly NewRun[]): void;
  /** Called when the events are durable and folded into the state. */
  onWritten(events: readonly NewEvent[], at: number): void;
  onTurnEnd(turnEnd: TurnEnd): void;
  /** Called when messages wait in the inbox of the run; the turn processes them before its code continues. */
  onMessagesWaiting(): void;
  /** Called when the store refused to end the run because of messages: nothing was written, and the turn continues. */
  onEndRefused(unwritten: Transition): void;
}

export class RunWriter {
  readonly pendingWrites = new PendingWrites();
  readonly #owner: RunWriterOwner;
  readonly #committer: GroupCommitter;
  #nextSeq: number;
  #unacknowledgedCount = 0;
  /** Not null while a transactional step has exclusive use of the log; all other writes wait for this promise. */
  #exclusiveLock: Promise<void> | null = null;
  #receiptWaiters: (() => void)[] | null = null;
  #isClosed = false;
  /** The store's time in its last receipt, or at the claim. */
  #lastStoreTimeAt: number;
  /** The value of this process's monotonic clock when `#lastStoreTimeAt` was set. */
  #lastStoreTimeMonotonic: number;

  /** @param at the store's time when the worker claimed the run */
  constructor(owner: RunWriterOwner, committer: GroupCommitter, at: number) {
    this.#owner = owner;
    this.#committer = committer;
    this.#nextSeq = owner.state.seq + 1;
    this.#lastStoreTimeAt = at;
    this.#lastStoreTimeMonotonic = committer.runtime.monotonic();
  }

  /** Whether nothing more is written, because the run was released or the commit that releases it was submitted. */
  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Whether submitted writes are not yet part of the state, or a transactional step has exclusive use of the log. */
  get hasUnacknowledgedWrites(): boolean {
    return this.#unacknowledgedCount > 0 || this.#exclusiveLock !== null;
  }

  /** Resolves when the transactional step that writes to the log has ended; null when there is none. */
  get exclusiveLock(): Promise<void> | null {
    return this.#exclusiveLock;
  }

  /** The sequence number of the next event after all submitted and pending events. */
  get nextSeq(): number {
    return this.#nextSeq + this.pendingWrites.events.length;
  }

  get lastStoreTimeAt(): number {
    return this.#lastStoreTimeAt;
  }

  /** Estimates the store's current time from the time in its last receipt and the time that has passed since then. */
  storeNow(): number {
    return this.#lastStoreTimeAt + Math.floor(this.#committer.runtime.monotonic() - this.#lastStoreTimeMonotonic);
  }

  /**
   * Commits the pending writes and these events. Resolves to false if they were not written, because the turn is over.
   */
  submit(events: readonly NewEvent[], next: NextTaskState = keepOwner): Promise<boolean> {
    return new Promise((resolve) => this.post(events, next, resolve));
  }

  /**
   * Like `submit`, for events that result from messages. `onMessagesWaiting` is not called for further waiting
   * messages.
   */
  submitDecision(events: readonly NewEvent[]): Promise<boolean> {
    return new Promise((resolve) => this.post(events, keepOwner, resolve, true));
  }

  /**
   * Like `submit`, with a callback instead of a promise, because it is called for every step and a promise costs more.
   */
  post(events: readonly NewEvent[], next: NextTaskState, done: (written: boolean) => void, isDecision = false): void {
    if (this.#exclusiveLock !== null)
      return void this.#exclusiveLock.then(() => this.post(events, next, done, isDecision));
    if (this.#isClosed) return done(false);
    const transition = this.pendingWrites.take(this.#owner.runId, this.#nextSeq - 1, events, next);
    this.#nextSeq += transition.events.length;
    if (next.kind !== "keep") this.#isClosed = true;
    this.#unacknowledgedCount += 1;
    this.#committer.post(transition, (receipt) => done(this.#onReceipt(transition, receipt, isDecision)));
  }

  #onReceipt(transition: Transition, receipt: Receipt | null, isDecision: boolean): boolean {
    const { next, events, afterSeq, newChildren } = transition;
    this.#unacknowledgedCount -= 1;
    this.#resumeWaiters();
    // The worker lost its fence. The committer reports that to the session, so only this turn has to end here.
    if (receipt === null) return this.#endTurn({ how: "lost" });
    if (receipt.kind === "evicted") return this.#endTurn({ how: "evicted", error: receipt.error });
    if (receipt.kind === "unread") return this.#reopen(transition);
    this.#noteStoreTime(receipt.at);
    this.#owner.publish(events, afterSeq, receipt.at, receipt.isStillOwned ? keepOwner : next, newChildren);
    if (receipt.hasMessages && !isDecision) this.#owner.onMessagesWaiting();
    if (next.kind === "keep") return this.#applyEvents(events, afterSeq, receipt.at);
    this.#endTurn(receipt.isStillOwned ? { how: "has messages" } : turnEndOf(next, receipt.at));
    return true;
  }

  /**
   * Gives `work` exclusive use of the log: writes in flight finish first, and new writes wait until `work` has ended.
   * Transactional steps need exclusive use, because another connection writes their event. `work` receives the sequence
   * number of the last event in the log and returns the events that it wrote, or null. Resolves to whether it wrote any.
   */
  async withExclusiveLog(work: (after: number) => Promise<ExclusiveWrite | null>): Promise<boolean> {
    if (!this.pendingWrites.isEmpty) await this.submit([]);
    while (this.#exclusiveLock !== null) await this.#exclusiveLock;
    let unlock = () => {};
    this.#exclusiveLock = new Promise((resolve) => {
      unlock = resolve;
    });
    try {
      await this.#waitForAllReceipts();
      if (this.#isClosed) return false;
      const after = this.#nextSeq - 1;
      const exclusiveWrite = await work(after);
      if (exclusiveWrite === null) return false;
      this.#nextSeq += exclusiveWrite.events.length;
      this.#noteStoreTime(exclusiveWrite.at);
      this.#owner.publish(exclusiveWrite.events, after, exclusiveWrite.at, keepOwner, []);
      if (exclusiveWrite.hasMessages) this.#owner.onMessagesWaiting();
      return this.#applyEvents(exclusiveWrite.events, after, exclusiveWrite.at);
    } finally {
      this.#exclusiveLock = null;
      unlock();
    }
  }

  /** Waits until the state contains all events that were submitted before this call. */
  async waitForSubmitted(): Promise<void> {
    const { state } = this.#owner;
    const lastSubmittedSeq = this.#nextSeq - 1;
    while (state.seq < lastSubmittedSeq && this.#unacknowledgedCount > 0 && !this.#isClosed)
      await this.#waitForNextReceipt();
  }

  /** Waits until the state contains all submitted events, including those that are submitted during the wait. */
  async waitUntilAcknowledged(): Promise<void> {
    while (this.#exclusiveLock !== null) await this.#exclusiveLock;
    await this.#waitForAllReceipts();
  }

  /** Whether children are about to be created, or have been without being part of the state. */
  get hasPendingStarts(): boolean {
    return this.hasUnacknowledgedWrites || this.pendingWrites.starts.length > 0;
  }

  /**
   * Waits for all writes and commits the pending starts of child runs. Callers cancel the children afterwards, which is
   * possible only once they exist.
   */
  async flushPendingStarts(): Promise<void> {
    do {
      while (this.hasUnacknowledgedWrites) await this.waitUntilAcknowledged();
      if (this.pendingWrites.starts.length > 0) await this.submit([]);
      // A call that was reading the child of an earlier run may have added a start meanwhile.
    } while (!this.#isClosed && this.hasPendingStarts);
  }

  async #waitForAllReceipts(): Promise<void> {
    while (this.#unacknowledgedCount > 0) await this.#waitForNextReceipt();
  }

  #waitForNextReceipt(): Promise<void> {
    return new Promise((resolve) => {
      (this.#receiptWaiters ??= []).push(resolve);
    });
  }

  /** Lets the waiters check their condition again, after all code that the receipt triggered has run. */
  #resumeWaiters(): void {
    if (this.#receiptWaiters === null) return;
    const waiters = this.#receiptWaiters;
    this.#receiptWaiters = null;
    this.#committer.runtime.setImmediate(() => {
      for (const resume of waiters) resume();
    });
  }

  close(): void {
    this.#isClosed = true;
    this.#resumeWaiters();
  }

  #noteStoreTime(at: number): void {
    this.#lastStoreTimeAt = at;
    this.#lastStoreTimeMonotonic = this.#committer.runtime.monotonic();
  }

  /** Events that cannot be folded must end this turn alone, not the process with all of its runs. */
  #applyEvents(events: readonly NewEvent[], after: number, at: number): boolean {
    if (this.#isClosed) return true;
    let seq = after;
    try {
      for (const { type, node, attempt, outcome, data } of events) {
        seq += 1;
        evolve(this.#owner.state, { seq, type, node, attempt, outcome, data, at });
      }
    } catch (error) {
      return this.#endTurn({ how: "evicted", error });
    }
    this.#owner.onWritten(events, at);
    return true;
  }

  /** The end of the run was not written, so the turn continues at the previous end of the log. */
  #reopen(unwritten: Transition): false {
    this.#isClosed = false;
    this.#nextSeq = unwritten.afterSeq + 1;
    this.#owner.onEndRefused(unwritten);
    return false;
  }

  #endTurn(turnEnd: TurnEnd): false {
    this.#isClosed = true;
    this.#owner.onTurnEnd(turnEnd);
    return false;
  }
}

function turnEndOf(next: NextTaskState, at: number): TurnEnd {
  if (next.kind !== "park") return { how: "finished" };
  const { wakeAt, wakeInMs } = next;
  const delayedDueAt = wakeInMs === null ? null : at + wakeInMs;
  return {
    how: "parked",
    dueAt: wakeAt === null ? delayedDueAt : delayedDueAt === null ? wakeAt : Math.min(wakeAt, delayedDueAt),
    at,
  };
}
