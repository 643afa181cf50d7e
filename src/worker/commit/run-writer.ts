/** One run's way into its log while this worker has it: what to write, at which position, and what became of it. */
import type { NewEvent } from "../../core/run/event.js";
import { evolve } from "../../core/run/fold.js";
import type { RunState } from "../../core/run/state.js";
import { keepOwner } from "../../core/run/transition.js";
import type { NewRun, NextTaskState, Transition } from "../../store/contract/store.js";
import type { GroupCommitter, Receipt } from "./group-committer.js";
import { PendingWrites } from "./pending-writes.js";

/** How this worker's time with the run ended. */
export type TurnEnd =
  | { readonly how: "parked"; readonly dueAt: number | null; readonly at: number }
  | { readonly how: "finished" }
  /** Mail came while it was being parked: it is still ours. */
  | { readonly how: "has messages" }
  /** The fence is gone: another worker may have the run. */
  | { readonly how: "lost" }
  /** What it had to write could not be written. */
  | { readonly how: "evicted"; readonly error: unknown };

/** What a transactional step has written by a connection of its own. */
interface ExclusiveWrite {
  readonly events: readonly NewEvent[];
  readonly at: number;
  readonly hasMessages: boolean;
}

/**
 * The turn that writes through the writer. One object instead of a callback for each fact: turns are made once per run,
 * and six closures for each were 3 % of the garbage of one-step runs.
 */
export interface RunWriterOwner {
  readonly runId: string;
  readonly state: RunState;
  /** Everything that has become durable is published before anything else is made of it. */
  publish(events: readonly NewEvent[], after: number, at: number, next: NextTaskState, starts: readonly NewRun[]): void;
  /** The events are durable and folded into the state. */
  onWritten(events: readonly NewEvent[], at: number): void;
  onTurnEnd(turnEnd: TurnEnd): void;
  /** Messages wait in the inbox of the run: what they ask for comes before the code gets any further. */
  onMessagesWaiting(): void;
  /** The run could not end because of messages. Nothing of this was written, and the run stays with its turn. */
  onEndRefused(unwritten: Transition): void;
}

export class RunWriter {
  readonly pendingWrites = new PendingWrites();
  readonly #owner: RunWriterOwner;
  readonly #committer: GroupCommitter;
  #nextSeq: number;
  #unacknowledgedCount = 0;
  /** While a transactional step has the log to itself: what comes meanwhile waits for this. */
  #exclusiveLock: Promise<void> | null = null;
  #receiptWaiters: (() => void)[] | null = null;
  #isClosed = false;
  /** The store's time as we last heard it, and our own monotonic clock then. */
  #lastStoreTimeAt: number;
  #lastStoreTimeMonotonic: number;

  /** @param at the store's time when the run was taken */
  constructor(owner: RunWriterOwner, committer: GroupCommitter, at: number) {
    this.#owner = owner;
    this.#committer = committer;
    this.#nextSeq = owner.state.seq + 1;
    this.#lastStoreTimeAt = at;
    this.#lastStoreTimeMonotonic = committer.runtime.monotonic();
  }

  /** The run was let go of, or is about to be: nothing more is written. */
  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** True while the state does not know yet what has been submitted, or a transactional step has the log to itself. */
  get hasUnacknowledgedWrites(): boolean {
    return this.#unacknowledgedCount > 0 || this.#exclusiveLock !== null;
  }

  /** The number that the next event will have that is not in the pending writes yet. */
  get nextSeq(): number {
    return this.#nextSeq + this.pendingWrites.events.length;
  }

  get lastStoreTimeAt(): number {
    return this.#lastStoreTimeAt;
  }

  /** The store's time, as well as it is known here without asking. */
  storeNow(): number {
    return this.#lastStoreTimeAt + Math.floor(this.#committer.runtime.monotonic() - this.#lastStoreTimeMonotonic);
  }

  /** Commits the pending writes and these events. False: the run is not ours any more, and the caller has nothing more to do. */
  submit(events: readonly NewEvent[], next: NextTaskState = keepOwner): Promise<boolean> {
    return new Promise((resolve) => this.post(events, next, resolve));
  }

  /** The same for what was decided about messages: that there are more of them does not keep the code from going on. */
  submitDecision(events: readonly NewEvent[]): Promise<boolean> {
    return new Promise((resolve) => this.post(events, keepOwner, resolve, true));
  }

  /** The same without a promise, for what happens once per step. */
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
    // Nothing of this worker counts any more, and it knows by itself.
    if (receipt === null) return this.#endTurn({ how: "lost" });
    if (receipt.kind === "evicted") return this.#endTurn({ how: "evicted", error: receipt.error });
    if (receipt.kind === "unread") return this.#reopen(transition);
    this.#noteStoreTime(receipt.at);
    this.#owner.publish(events, afterSeq, receipt.at, receipt.isStillOwned ? keepOwner : next, newChildren);
    if (receipt.hasMessages && !isDecision) this.#owner.onMessagesWaiting();
    if (next.kind === "keep") this.#applyEvents(events, afterSeq, receipt.at);
    else this.#endTurn(receipt.isStillOwned ? { how: "has messages" } : turnEndOf(next, receipt.at));
    return true;
  }

  /**
   * Gives `work` the log to itself: what is on its way is written first, what comes meanwhile waits. For transactional
   * steps, whose event is written by another connection. `work` gets the position of the log and returns what it wrote.
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
      const written = await work(after);
      if (written === null) return false;
      this.#nextSeq += written.events.length;
      this.#noteStoreTime(written.at);
      this.#owner.publish(written.events, after, written.at, keepOwner, []);
      if (written.hasMessages) this.#owner.onMessagesWaiting();
      this.#applyEvents(written.events, after, written.at);
      return true;
    } finally {
      this.#exclusiveLock = null;
      unlock();
    }
  }

  /** Waits until the state knows what has been submitted so far, whatever is submitted meanwhile. */
  async waitForSubmitted(): Promise<void> {
    const { state } = this.#owner;
    const lastSubmittedSeq = this.#nextSeq - 1;
    while (state.seq < lastSubmittedSeq && this.#unacknowledgedCount > 0 && !this.#isClosed)
      await this.#waitForNextReceipt();
  }

  /** Waits until the state knows everything that was submitted. */
  async waitUntilAcknowledged(): Promise<void> {
    while (this.#exclusiveLock !== null) await this.#exclusiveLock;
    await this.#waitForAllReceipts();
  }

  /** The same, and children that are only in the pending writes are born: no run outlives its parent. */
  async flushPendingStarts(): Promise<void> {
    while (this.hasUnacknowledgedWrites) await this.waitUntilAcknowledged();
    if (this.pendingWrites.starts.length > 0) await this.submit([]);
  }

  async #waitForAllReceipts(): Promise<void> {
    while (this.#unacknowledgedCount > 0) await this.#waitForNextReceipt();
  }

  #waitForNextReceipt(): Promise<void> {
    return new Promise((resolve) => {
      (this.#receiptWaiters ??= []).push(resolve);
    });
  }

  /** Those who wait for a receipt look again, once all that it set off has run. */
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

  #applyEvents(events: readonly NewEvent[], after: number, at: number): void {
    if (this.#isClosed) return;
    let seq = after;
    for (const { type, node, attempt, outcome, data } of events) {
      seq += 1;
      evolve(this.#owner.state, { seq, type, node, attempt, outcome, data, at });
    }
    this.#owner.onWritten(events, at);
  }

  /** Its end was not written: it goes on where its log ends. */
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
