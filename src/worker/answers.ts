/**
 * Hands the answers in the log to the calls of user code that wait for them, in the order of the log, one at a time:
 * before the next one is handed over, everything the last one set off has run (a macrotask passes). Live and on replay
 * alike, so that `Promise.all` and `Promise.race` over steps, timers and signals always end the same way.
 */
import { scopeMark } from "../core/scope.js";
import type { Answered, Op, RunState } from "../core/state.js";

export class Deferred {
  resolve: (value: unknown) => void = nobody;
  #refuse: (error: unknown) => void = nobody;
  readonly promise = new Promise<unknown>((resolve, reject) => {
    this.resolve = resolve;
    this.#refuse = reject;
  });

  /** A step that nobody awaits may fail all the same; that must not take the worker's process down. */
  reject(error: unknown): void {
    this.promise.catch(nobody);
    this.#refuse(error);
  }
}

const nobody = (): void => {};

/** Settles a call from what the log says; a promise when that takes reading more (the results of a map's children). */
export type Settle = (key: string, call: Deferred) => void | Promise<void>;

export class Answers {
  /** Calls without an answer yet. */
  readonly pending = new Map<string, Deferred>();
  /** Every key that this activation asked for. */
  readonly asked = new Set<string>();
  /** The instant of the last answer that was handed over: user code's idea of now. */
  now: number;
  readonly #state: RunState;
  readonly #settle: Settle;
  readonly #onIdle: () => void;
  /** What the log knew when this activation began: until the code has asked for all of it, it is replaying. */
  readonly #recorded: Set<string> | null;
  /** Those whose turn came before the code asked. */
  #passed: Map<string, Op> | null = null;
  /** Those of step bodies that were handed over: a body that is run again asks again. */
  #handed: Map<string, Op> | null = null;
  #cursor = 0;
  /** Answers that are being read, outside of the order of the log. */
  #late = 0;
  #scheduled = false;
  /** Nothing is handed over before there is code that could have asked. */
  #open = false;
  #closed = false;

  constructor(options: { state: RunState; bornAt: number; settle: Settle; onIdle: () => void }) {
    this.#state = options.state;
    this.#settle = options.settle;
    this.#onIdle = options.onIdle;
    const { ops } = options.state;
    this.#recorded = ops.size === 0 ? null : new Set(ops.keys());
    this.now = options.bornAt;
  }

  /** True while there is something that this code did before and has not come to yet. */
  get replaying(): boolean {
    return this.#recorded !== null && this.#recorded.size > 0;
  }

  /** True while an answer is on its way: the code must not be parked now. */
  get delivering(): boolean {
    return this.#scheduled || this.#late > 0 || this.#cursor < this.#state.answered.length;
  }

  ask(key: string): Promise<unknown> {
    this.asked.add(key);
    this.#recorded?.delete(key);
    const call = new Deferred();
    // Its turn came before the code asked (the code has changed since): it gets the answer at once.
    const op = this.#state.ops.get(key);
    if (op !== undefined && (this.#passed?.get(key) === op || this.#handed?.get(key) === op)) {
      this.#passed?.delete(key);
      this.#noteHanded(key, op);
      this.#settleNow(key, call);
    } else this.pending.set(key, call);
    return call.promise;
  }

  /** The results of a map take reading: until they are here, the code must not be parked. */
  #settleNow(key: string, call: Deferred): void {
    const later = this.#settle(key, call);
    if (later === undefined) return;
    this.#late += 1;
    void later.then(() => {
      this.#late -= 1;
      this.#onIdle();
    });
  }

  #noteHanded(key: string, op: Op): void {
    if (key.includes(scopeMark)) (this.#handed ??= new Map()).set(key, op);
  }

  /** For what is in the log but has no answer to wait for. */
  note(key: string): void {
    this.asked.add(key);
    this.#recorded?.delete(key);
  }

  /** A call that is not waited for any more. */
  forget(key: string): void {
    this.pending.delete(key);
  }

  /** A call that could not be brought under way: the log will never have an answer to it. */
  refuse(key: string, error: unknown): void {
    this.pending.get(key)?.reject(error);
    this.pending.delete(key);
  }

  /** The code runs. Begins to hand over what the log holds, once the code had a chance to ask. */
  open(): void {
    this.#open = true;
    if (this.#state.answered.length > 0) this.#schedule();
  }

  /** More events were folded into the state. */
  deliver(): void {
    if (this.#open && !this.#scheduled) this.#next();
  }

  close(): void {
    this.#closed = true;
    this.pending.clear();
  }

  #schedule(): void {
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      this.#next();
    });
  }

  #next(): void {
    if (this.#closed) return;
    const { answered } = this.#state;
    while (this.#cursor < answered.length) {
      const { key, at, op } = answered[this.#cursor++] as Answered;
      this.now = at;
      // Code that started over has forgotten what it was once told.
      if (op === undefined || this.#state.ops.get(key) !== op) continue;
      const call = this.pending.get(key);
      if (call === undefined) {
        (this.#passed ??= new Map()).set(key, op);
        continue;
      }
      this.pending.delete(key);
      this.#noteHanded(key, op);
      const later = this.#settle(key, call);
      if (later !== undefined) {
        this.#scheduled = true;
        void later.then(() => this.#schedule());
        return;
      }
      // Also when this was the last: more may come in this same tick, and must not overtake what this one set off.
      if (this.#cursor < answered.length || this.pending.size > 0) return this.#schedule();
    }
    this.#onIdle();
  }
}
