/**
 * Hands the answers in the log to the calls of user code that wait for them, in the order of the log, one at a time:
 * before the next one is handed over, everything the last one set off has run (a macrotask passes). Live and on replay
 * alike, so that `Promise.all` and `Promise.race` over steps, timers and signals always end the same way.
 */

import { type AnsweredCall, isAnswered, type Op, type RunState } from "../../core/run/state.js";
import { scopeSeparator } from "../../core/run/step-key.js";
import type { Runtime } from "../../runtime/runtime.js";

export class Deferred {
  resolve: (value: unknown) => void = noop;
  #reject: (error: unknown) => void = noop;
  readonly promise = new Promise<unknown>((resolve, reject) => {
    this.resolve = resolve;
    this.#reject = reject;
  });

  /** A step that the code does not await may fail all the same; that must not take the worker's process down. */
  reject(error: unknown): void {
    this.promise.catch(noop);
    this.#reject(error);
  }
}

const noop = (): void => {};

/** The turn whose code waits for the answers. */
export interface ResultOwner {
  readonly state: RunState;
  readonly host: { readonly runtime: Runtime };
  /** Settles a call from what the log says; a promise when that takes reading more (the results of a map's children). */
  resolveCall(key: string, call: Deferred): void | Promise<void>;
  /** Everything that the log holds has been handed over. */
  onDeliveryIdle(): void;
}

export class ResultDelivery {
  /** Calls without an answer yet. */
  readonly pending = new Map<string, Deferred>();
  /** Every key that the code has asked for in this turn. */
  readonly requestedKeys = new Set<string>();
  /** The instant of the last answer that was handed over: user code's idea of now. */
  now: number;
  readonly #state: RunState;
  readonly #owner: ResultOwner;
  /** Calls that stand before others in the code and behind them in the log, and that have no answer yet. */
  #outOfOrder: Set<string> | null = null;
  /** The next answer in the log is to a call that the code makes only after one of those. */
  #isStuck = false;
  /** Answers, by key, whose place in the log was passed before the code made the call. */
  #passedOps: Map<string, Op> | null = null;
  /** Answers, by key, that bodies of steps got: a body that runs again makes the same calls again. */
  #opsDeliveredToBodies: Map<string, Op> | null = null;
  #nextIndex = 0;
  /** Answers that are being read, outside of the order of the log. */
  #lateReads = 0;
  #isScheduled = false;
  /** Messages are taken before anything more is handed over. */
  #isPaused = false;
  /** Nothing is handed over before there is code that could have asked. */
  #isOpen = false;
  #isClosed = false;

  /** @param createdAt when the run was made: what the code takes for now until it has its first answer */
  constructor(owner: ResultOwner, createdAt: number) {
    this.#owner = owner;
    this.#state = owner.state;
    this.now = createdAt;
  }

  /** True while an answer is on its way: the code must not be parked now. */
  get isDelivering(): boolean {
    if (this.#isScheduled || this.#lateReads > 0 || this.#isPaused) return true;
    return this.#nextIndex < this.#state.answeredCalls.length && !this.#isStuck;
  }

  /** The answer is delivered as soon as it is there, whatever else the code has not asked for yet. */
  requestOutOfOrder(key: string): Promise<unknown> {
    (this.#outOfOrder ??= new Set()).add(key);
    const result = this.request(key);
    if (this.#isOpen && !this.#isScheduled) this.#schedule();
    return result;
  }

  request(key: string): Promise<unknown> {
    this.requestedKeys.add(key);
    if (this.#isStuck) {
      this.#isStuck = false;
      if (!this.#isScheduled) this.#schedule();
    }
    const call = new Deferred();
    // Its turn came before the code asked (the code has changed since): it gets the answer at once.
    const op = this.#state.ops.get(key);
    if (op !== undefined && (this.#passedOps?.get(key) === op || this.#opsDeliveredToBodies?.get(key) === op)) {
      this.#passedOps?.delete(key);
      this.#noteDelivered(key, op);
      this.#resolveNow(key, call);
    } else this.pending.set(key, call);
    return call.promise;
  }

  /** The results of a map take reading: until they are here, the code must not be parked. */
  #resolveNow(key: string, call: Deferred): void {
    const pendingRead = this.#owner.resolveCall(key, call);
    if (pendingRead === undefined) return;
    this.#lateReads += 1;
    void pendingRead.then(() => {
      this.#lateReads -= 1;
      this.#owner.onDeliveryIdle();
    });
  }

  #noteDelivered(key: string, op: Op): void {
    if (key.includes(scopeSeparator)) (this.#opsDeliveredToBodies ??= new Map()).set(key, op);
  }

  /** For what is in the log but has no answer to wait for. */
  markRequested(key: string): void {
    this.requestedKeys.add(key);
  }

  /** A call that is not waited for any more. */
  forget(key: string): void {
    this.pending.delete(key);
    this.#outOfOrder?.delete(key);
  }

  /** A call that could not be brought under way: the log will never have an answer to it. */
  rejectCall(key: string, error: unknown): void {
    this.pending.get(key)?.reject(error);
    this.pending.delete(key);
  }

  /** The code runs. Begins to hand over what the log holds, once the code had a chance to ask. */
  startDelivery(): void {
    this.#isOpen = true;
    if (this.#state.answeredCalls.length > 0) this.#schedule();
  }

  /** More events were folded into the state. */
  deliver(): void {
    if (this.#isOpen && !this.#isScheduled) this.#deliverNext();
  }

  /** Nothing is handed over until `goOn`. */
  pauseDelivery(): void {
    this.#isPaused = true;
  }

  resumeDelivery(): void {
    this.#isPaused = false;
    this.deliver();
  }

  close(): void {
    this.#isClosed = true;
    this.pending.clear();
  }

  /** Bound once: it is scheduled for every answer. */
  readonly #onScheduled = (): void => {
    this.#isScheduled = false;
    this.#deliverNext();
  };

  #schedule(): void {
    this.#isScheduled = true;
    this.#owner.host.runtime.setImmediate(this.#onScheduled);
  }

  #deliverNext(): void {
    if (this.#isClosed || this.#isPaused || this.#deliverOutOfOrder()) return;
    const { answeredCalls } = this.#state;
    while (this.#nextIndex < answeredCalls.length) {
      if (this.#mustWait(answeredCalls[this.#nextIndex] as AnsweredCall)) break;
      const { key, at, op } = answeredCalls[this.#nextIndex++] as AnsweredCall;
      this.now = at;
      // Code that started over has forgotten what it was once told.
      if (op === undefined || this.#state.ops.get(key) !== op) continue;
      const call = this.pending.get(key);
      if (call === undefined) {
        (this.#passedOps ??= new Map()).set(key, op);
        continue;
      }
      if (this.#deliverResult(key, op, call)) return;
      // Also when this was the last: more may come in this same tick, and must not overtake what this one set off.
      if (this.#nextIndex < answeredCalls.length || this.pending.size > 0) return this.#schedule();
    }
    this.#owner.onDeliveryIdle();
  }

  /** True: the answer is being read, and the next one follows when that is done. */
  #deliverResult(key: string, op: Op, call: Deferred): boolean {
    this.pending.delete(key);
    this.#noteDelivered(key, op);
    const pendingRead = this.#owner.resolveCall(key, call);
    if (pendingRead === undefined) return false;
    this.#isScheduled = true;
    void pendingRead.then(() => this.#schedule());
    return true;
  }

  /** The code comes to this call only when it has the answer to one that stands before it. */
  #mustWait({ key, op }: AnsweredCall): boolean {
    if (this.#outOfOrder === null || this.#outOfOrder.size === 0) return false;
    this.#isStuck = op !== undefined && this.#state.ops.get(key) === op && !this.requestedKeys.has(key);
    return this.#isStuck;
  }

  /**
   * In the order of the calls: branches that run side by side make their next calls in the order in which the log has
   * them, or `#2` of one branch would be given to another.
   * True: one was handed over, and the next follows when everything that it set off has run.
   */
  #deliverOutOfOrder(): boolean {
    const [key] = this.#outOfOrder ?? [];
    const op = key === undefined ? undefined : this.#state.ops.get(key);
    if (key === undefined || op === undefined || !isAnswered(op)) return false;
    this.#outOfOrder?.delete(key);
    this.#isStuck = false;
    this.now = this.#state.answeredCalls.findLast((answered) => answered.key === key)?.at ?? this.now;
    if (!this.#deliverResult(key, op, this.pending.get(key) as Deferred)) this.#schedule();
    return true;
  }
}
