/**
 * Delivers the results in the log to the calls of user code that await them, in log order and one at a time: a
 * macrotask passes before the next delivery, so that all code that the last one triggered has run. This is the same
 * live and on replay, so `Promise.all` and `Promise.race` over steps, timers and signals always end the same way.
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

  /** A step that the code does not await may fail; its unhandled rejection must not crash the worker's process. */
  reject(error: unknown): void {
    this.promise.catch(noop);
    this.#reject(error);
  }
}

const noop = (): void => {};

/** The turn whose code awaits the results. */
export interface ResultOwner {
  readonly state: RunState;
  readonly host: { readonly runtime: Runtime };
  /** Settles a call from the log; returns a promise when more rows have to be read (results of a map's children). */
  resolveCall(key: string, call: Deferred): void | Promise<void>;
  /** All results in the log have been delivered, or delivery is stuck. */
  onDeliveryIdle(): void;
}

export class ResultDelivery {
  /** Calls without a result yet. */
  readonly pending = new Map<string, Deferred>();
  /** The keys of all calls that the code has made in this turn. */
  readonly requestedKeys = new Set<string>();
  /** The time of the last delivered result, which is the value of `ctx.now()`. */
  now: number;
  readonly #state: RunState;
  readonly #owner: ResultOwner;
  /** Calls without a result yet that come before others in the code but after them in the log. */
  #outOfOrder: Set<string> | null = null;
  /** The next result in the log is for a call that the code can only make after one of `#outOfOrder`. */
  #isStuck = false;
  /** By key: results whose position in the log was passed before the code made the call. */
  #passedOps: Map<string, Op> | null = null;
  /** By key: results that step bodies received; a body that runs again makes the same calls again. */
  #opsDeliveredToBodies: Map<string, Op> | null = null;
  /** The position in `answeredCalls` of the next result to deliver. */
  #nextIndex = 0;
  /** Results that are being read outside of log order. */
  #lateReads = 0;
  #isScheduled = false;
  /** The inbox is being processed, and nothing is delivered meanwhile. */
  #isPaused = false;
  /** The code has been called. Nothing is delivered before that, because the code could not have made its calls. */
  #isOpen = false;
  #isClosed = false;

  /** @param createdAt when the run was created: the value of `ctx.now()` until the first result */
  constructor(owner: ResultOwner, createdAt: number) {
    this.#owner = owner;
    this.#state = owner.state;
    this.now = createdAt;
  }

  /** True while a result is being delivered; the run must not be parked then. */
  get isDelivering(): boolean {
    if (this.#isScheduled || this.#lateReads > 0 || this.#isPaused) return true;
    return this.#nextIndex < this.#state.answeredCalls.length && !this.#isStuck;
  }

  /** The result is delivered as soon as it is in the log, even before results that precede it there. */
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
    // Delivered at once when its position in the log was passed (the code has changed), or when a body runs again.
    const op = this.#state.ops.get(key);
    if (op !== undefined && (this.#passedOps?.get(key) === op || this.#opsDeliveredToBodies?.get(key) === op)) {
      this.#passedOps?.delete(key);
      this.#noteDelivered(key, op);
      this.#resolveNow(key, call);
    } else this.pending.set(key, call);
    return call.promise;
  }

  /** The results of a map are read from the store; until then, the run must not be parked. */
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

  /** Notes a call that is in the log but has no result to await. */
  markRequested(key: string): void {
    this.requestedKeys.add(key);
  }

  /** Drops a call that is no longer awaited. */
  forget(key: string): void {
    this.pending.delete(key);
    this.#outOfOrder?.delete(key);
  }

  /** Rejects a call that could not be started: the log will never have a result for it. */
  rejectCall(key: string, error: unknown): void {
    this.pending.get(key)?.reject(error);
    this.pending.delete(key);
  }

  /** Called when the code starts. The first delivery is a macrotask later, after the code has made its first calls. */
  startDelivery(): void {
    this.#isOpen = true;
    if (this.#state.answeredCalls.length > 0) this.#schedule();
  }

  /** Called when more events were folded into the state. */
  deliver(): void {
    if (this.#isOpen && !this.#isScheduled) this.#deliverNext();
  }

  /** Nothing is delivered until `resumeDelivery`. */
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

  /** Bound once, because it is scheduled for every result. */
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
      // The call was reset meanwhile (the handler rewound, or the node was reopened), so this result is obsolete.
      if (op === undefined || this.#state.ops.get(key) !== op) continue;
      const call = this.pending.get(key);
      if (call === undefined) {
        (this.#passedOps ??= new Map()).set(key, op);
        continue;
      }
      if (this.#deliverResult(key, op, call)) return;
      // Also after the last one: a result that arrives in this tick must not overtake the code that this one triggered.
      if (this.#nextIndex < answeredCalls.length || this.pending.size > 0) return this.#schedule();
    }
    this.#owner.onDeliveryIdle();
  }

  /** True when the result is still being read; the next one follows after that. */
  #deliverResult(key: string, op: Op, call: Deferred): boolean {
    this.pending.delete(key);
    this.#noteDelivered(key, op);
    const pendingRead = this.#owner.resolveCall(key, call);
    if (pendingRead === undefined) return false;
    this.#isScheduled = true;
    void pendingRead.then(() => this.#schedule());
    return true;
  }

  /** True when the code has not made this call and awaits an out-of-order call that may come before it. */
  #mustWait({ key, op }: AnsweredCall): boolean {
    if (this.#outOfOrder === null || this.#outOfOrder.size === 0) return false;
    this.#isStuck = op !== undefined && this.#state.ops.get(key) === op && !this.requestedKeys.has(key);
    return this.#isStuck;
  }

  /**
   * Delivers in the order of the calls, so that parallel branches make their next calls in the order of the log;
   * otherwise `#2` of one branch could get the result of another. True when a result was delivered; the next one
   * follows a macrotask later.
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
