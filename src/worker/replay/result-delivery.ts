/**
 * Delivers the results in the log to the calls of user code that await them, in log order and one at a time. Each
 * delivery is a macrotask of its own, so that all code triggered by the previous delivery has run. Live execution and
 * replay deliver alike, so `Promise.all` and `Promise.race` over steps, timers and signals always end the same way.
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
  /** Settles a call with its recorded result; returns a promise if the results of a map's children have to be read. */
  resolveCall(key: string, call: Deferred): void | Promise<void>;
  /**
   * Called when all results in the log have been delivered, or when the next one waits for a call that the code has not
   * made.
   */
  onDeliveryIdle(): void;
}

export class ResultDelivery {
  /** By key: the calls that have not received a result yet. */
  readonly pending = new Map<string, Deferred>();
  /** The keys of all calls that the code has made in this turn. */
  readonly requestedKeys = new Set<string>();
  /** The time of the last delivered result, which is the value of `ctx.now()`. */
  now: number;
  readonly #state: RunState;
  readonly #owner: ResultOwner;
  /** Calls without a result whose position in the code is earlier than in the log: see `ReplayGate.isOutOfOrder`. */
  #outOfOrder: Set<string> | null = null;
  /** Whether delivery waits, because the next result belongs to a call that the code makes after one of `#outOfOrder`. */
  #isStuck = false;
  /** By key: results that delivery has passed in the log before the code made the call, because the code has changed. */
  #passedOps: Map<string, Op> | null = null;
  /**
   * By key: results that step bodies have received. A body that runs again makes the same calls and receives them
   * again.
   */
  #opsDeliveredToBodies: Map<string, Op> | null = null;
  /** The position in `answeredCalls` of the next result to deliver. */
  #nextIndex = 0;
  /** How many map results are being read from the store outside of log order. */
  #lateReads = 0;
  #isScheduled = false;
  /** Whether the inbox is being processed; nothing is delivered during that time. */
  #isPaused = false;
  /** Whether the code has been called. Nothing is delivered before that, because the code has not made its calls yet. */
  #isOpen = false;
  #isClosed = false;

  /** @param createdAt when the run was created: the value of `ctx.now()` until the first result */
  constructor(owner: ResultOwner, createdAt: number) {
    this.#owner = owner;
    this.#state = owner.state;
    this.now = createdAt;
  }

  /** Whether results remain to be delivered; the run must not be parked until they are. */
  get isDelivering(): boolean {
    if (this.#isScheduled || this.#lateReads > 0 || this.#isPaused) return true;
    return this.#nextIndex < this.#state.answeredCalls.length && !this.#isStuck;
  }

  /** Requests a result that is delivered as soon as it is in the log, even before results that precede it in the log. */
  requestOutOfOrder(key: string): Promise<unknown> {
    const result = this.request(key);
    // A result that delivery had passed in the log is delivered already.
    if (!this.pending.has(key)) return result;
    (this.#outOfOrder ??= new Set()).add(key);
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
    // The result is delivered at once if delivery has already passed it in the log, or if a step body that runs again
    // received it before.
    const op = this.#state.ops.get(key);
    if (op !== undefined && (this.#passedOps?.get(key) === op || this.#opsDeliveredToBodies?.get(key) === op)) {
      this.#passedOps?.delete(key);
      this.#noteDelivered(key, op);
      this.#resolveNow(key, call);
    } else this.pending.set(key, call);
    return call.promise;
  }

  /** The results of a map are read from the store first; until they are read, the run must not be parked. */
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

  /** Records that the code has made a call that is in the log but has no result to await. */
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
    this.forget(key);
  }

  /**
   * Called just before the code is called. The first delivery is a macrotask later, when the code has made its first
   * calls.
   */
  startDelivery(): void {
    this.#isOpen = true;
    if (this.#state.answeredCalls.length > 0) this.#schedule();
  }

  /** Called when more events were folded into the state. */
  deliver(): void {
    if (this.#isOpen && !this.#isScheduled) this.#deliverNext();
  }

  /** Stops delivery until `resumeDelivery` is called. */
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

  /**
   * A field instead of a method, because it is passed to `setImmediate` for every result and must not be bound each
   * time.
   */
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
      // This result is obsolete if the call was reset after it, because the handler rewound or an operator reopened the
      // node.
      if (op === undefined || this.#state.ops.get(key) !== op) continue;
      const call = this.pending.get(key);
      if (call === undefined) {
        (this.#passedOps ??= new Map()).set(key, op);
        continue;
      }
      if (this.#deliverResult(key, op, call)) return;
      // Also scheduled after the last result: a result that arrives in this tick must not be delivered before the code
      // that this delivery triggered has run.
      if (this.#nextIndex < answeredCalls.length || this.pending.size > 0) return this.#schedule();
    }
    this.#owner.onDeliveryIdle();
  }

  /** Returns true if the result is still being read from the store; delivery then continues after the read. */
  #deliverResult(key: string, op: Op, call: Deferred): boolean {
    this.forget(key);
    this.#noteDelivered(key, op);
    const pendingRead = this.#owner.resolveCall(key, call);
    if (pendingRead === undefined) return false;
    this.#isScheduled = true;
    void pendingRead.then(() => this.#schedule());
    return true;
  }

  /** Returns true if the code has not made this call, and may make it only after an out-of-order call has its result. */
  #mustWait({ key, op }: AnsweredCall): boolean {
    if (this.#outOfOrder === null || this.#outOfOrder.size === 0) return false;
    this.#isStuck = op !== undefined && this.#state.ops.get(key) === op && !this.requestedKeys.has(key);
    return this.#isStuck;
  }

  /**
   * Delivers the result of the oldest out-of-order call, if the log has it. Results are delivered in the order of these
   * calls, so that parallel branches make their next calls in the order of the log; otherwise a call that is numbered `#2`
   * in one branch could get the result of another branch. Returns true if a result was delivered; the next delivery is a
   * macrotask later.
   */
  #deliverOutOfOrder(): boolean {
    const [key] = this.#outOfOrder ?? [];
    const op = key === undefined ? undefined : this.#state.ops.get(key);
    if (key === undefined || op === undefined || !isAnswered(op)) return false;
    this.#isStuck = false;
    this.now = this.#state.answeredCalls.findLast((answered) => answered.key === key)?.at ?? this.now;
    if (!this.#deliverResult(key, op, this.pending.get(key) as Deferred)) this.#schedule();
    return true;
  }
}
