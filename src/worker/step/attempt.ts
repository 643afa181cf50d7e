/** One attempt at one step: what its function gets, its time limit and its abort signal. */

import { TimeoutError } from "../../core/errors/errors.js";
import type { RetryPolicy } from "../../core/naming/retry-policy.js";
import type { FlowControlInterrupt } from "../../core/run/flow-control.js";
import type { Logger, ResumedBy, StepTools } from "../../define/context.js";
import type { Runtime, Timer } from "../../runtime/runtime.js";
import { maxTimerMs } from "../../runtime/runtime.js";
import { boundLogger } from "../../telemetry/safe-logger.js";

/** How to undo a step. */
export interface Compensator {
  readonly body: Body;
  readonly retry: RetryPolicy;
  /** It is a declared step's, with a scope of its own. */
  readonly declared: boolean;
}

export interface AttemptHost {
  readonly runId: string;
  readonly host: { readonly runtime: Runtime };
  readonly log: Logger;
  /** The run whose id the idempotency key of this step begins with: this one, unless it goes on for another. */
  keyOwner(node: string): string;
  /** Calls it, and knows meanwhile whose code runs. */
  callBody(attempt: Attempt, body: Body): unknown;
  /** In tests, the time that passes only when the test says so. */
  readonly virtualNow: number | null;
  progress(node: string, done: number, total?: number, message?: string): void;
  /** The signal that ended the pause which this step had asked for. */
  resumedBy(node: string): ResumedBy | null;
}

export type Body = (step: StepTools) => unknown;

export class Attempt implements StepTools {
  readonly key: string;
  readonly attempt: number;
  readonly #startedMs: number;
  readonly #startedVirtualMs: number | null;
  /** Whether the log has its start: written late for steps that take long, first with `onCrash: "pause"`. */
  isStartRecorded = false;
  /** Flow control that this body raised, as far as that is known. */
  raisedInterrupt: FlowControlInterrupt | null = null;
  readonly #host: AttemptHost;
  #log: Logger | null = null;
  #controller: AbortController | null = null;
  #abortReason: unknown;
  #aborted = false;
  #timer: Timer | null = null;
  #resumedBy: ResumedBy | null | undefined;

  constructor(host: AttemptHost, key: string, attempt: number) {
    this.#host = host;
    this.#startedMs = host.host.runtime.monotonic();
    this.#startedVirtualMs = host.virtualNow;
    this.key = key;
    this.attempt = attempt;
  }

  /**
   * The same for all attempts at this step of this run: an attempt that timed out or whose worker died may have had its
   * effect, so a provider must be able to recognise the next one.
   */
  get idempotencyKey(): string {
    return `${this.#host.keyOwner(this.key)}:${this.key}`;
  }

  get abortSignal(): AbortSignal {
    // Most steps never look at it; a controller for each would cost more than their record.
    if (this.#controller === null) {
      this.#controller = new AbortController();
      if (this.#aborted) this.#controller.abort(this.#abortReason);
    }
    return this.#controller.signal;
  }

  /** Its lines are known by run, step and attempt, where the logger can do that. */
  get log(): Logger {
    return (this.#log ??= boundLogger(this.#host.log, { step: this.key, attempt: this.attempt }));
  }

  /** Read once: the log forgets it when the step ends, and its body may look at it later. */
  get resumedBy(): ResumedBy | null {
    if (this.#resumedBy === undefined) this.#resumedBy = this.#host.resumedBy(this.key);
    return this.#resumedBy;
  }

  /** Bound, because code takes it out by name: `({ progress }) => …`. */
  get progress(): StepTools["progress"] {
    return (done, total, message) => this.#host.progress(this.key, done, total, message);
  }

  /** How long it has taken so far, by the clock that its run goes by. */
  get elapsedMs(): number {
    if (this.#startedVirtualMs !== null) return (this.#host.virtualNow as number) - this.#startedVirtualMs;
    return this.elapsedRealMs;
  }

  get elapsedRealMs(): number {
    return Math.max(0, Math.round(this.#host.host.runtime.monotonic() - this.#startedMs));
  }

  abort(reason: unknown): void {
    if (this.#aborted) return;
    this.#aborted = true;
    this.#abortReason = reason;
    this.#controller?.abort(reason);
  }

  /**
   * Runs the body; after the time limit it is aborted and given up on, whatever it still does. Not async, and it calls
   * back at once when the body does: most steps have no use for the two kilobytes of promises that would cost.
   */
  run(
    body: Body,
    timeoutMs: number | null,
    onReturned: (value: unknown) => void,
    onThrown: (error: unknown) => void,
  ): void {
    let value: unknown;
    let promise: Promise<unknown> | null;
    try {
      value = this.#host.callBody(this, body);
      promise = isThenable(value) ? Promise.resolve(value) : null;
    } catch (error) {
      return onThrown(error);
    }
    if (promise === null) return onReturned(value);
    // A limit beyond what a timer can count is no limit: it must not fire early.
    if (timeoutMs === null || timeoutMs > maxTimerMs) return void promise.then(onReturned, onThrown);
    this.#awaitWithTimeout(promise, timeoutMs).then(onReturned, onThrown);
  }

  async #awaitWithTimeout(promise: Promise<unknown>, timeoutMs: number): Promise<unknown> {
    const timeout = new Promise<never>((_, reject) => {
      this.#timer = this.#host.host.runtime.setTimeout(() => {
        const error = new TimeoutError(`Step "${this.key}" took longer than its time limit of ${timeoutMs} ms.`);
        this.abort(error);
        reject(error);
      }, timeoutMs);
    });
    // The promise that loses the race below may still reject later; that must not end the process.
    promise.catch(() => {});
    try {
      return await Promise.race([promise, timeout]);
    } finally {
      this.dispose();
    }
  }

  /** The turn does not listen any more, so the time limit is of no interest either. */
  dispose(): void {
    if (this.#timer !== null) this.#host.host.runtime.clearTimeout(this.#timer);
  }
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  if ((typeof value !== "object" || value === null) && typeof value !== "function") return false;
  return typeof (value as { then?: unknown }).then === "function";
}
