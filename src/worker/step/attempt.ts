/** One attempt at one step: the tools that its function receives, its time limit and its abort signal. */

import { InvalidInputError, TimeoutError } from "../../core/errors/errors.js";
import type { RetryPolicy } from "../../core/naming/retry-policy.js";
import type { FlowControlInterrupt } from "../../core/run/flow-control.js";
import type { Logger, ResumedBy, StepTools } from "../../define/context.js";
import type { Runtime, Timer } from "../../runtime/runtime.js";
import { maxTimerMs } from "../../runtime/runtime.js";
import { boundLogger } from "../../telemetry/safe-logger.js";

/** The function that undoes a completed step, and how often it is retried. */
export interface Compensator {
  readonly body: Body;
  readonly retry: RetryPolicy;
  /** Whether the step is declared (class or graph style): its body then has a call scope of its own. */
  readonly declared: boolean;
}

/** The part of the turn that an attempt uses. */
export interface AttemptHost {
  readonly runId: string;
  readonly host: { readonly runtime: Runtime };
  readonly log: Logger;
  /** The run id that starts the step's idempotency key: this run, or the first run in its line of retries. */
  keyOwner(node: string): string;
  /** Calls the body; until the body returns, the turn knows that code of this attempt is on the stack. */
  callBody(attempt: Attempt, body: Body): unknown;
  /** The virtual time in tests that control the clock; otherwise null. */
  readonly virtualNow: number | null;
  progress(node: string, done: number, total?: number, message?: string): void;
  /** The signal that ended the pause which this step requested, or null. */
  resumedBy(node: string): ResumedBy | null;
}

export type Body = (step: StepTools) => unknown;

export class Attempt implements StepTools {
  readonly key: string;
  readonly attempt: number;
  readonly #startedMs: number;
  readonly #startedVirtualMs: number | null;
  /**
   * Whether the `step.started` event was created. It is written for attempts that take longer than 100 ms, for bodies
   * that wait for something durable, and with `onCrash: "pause"` before the body runs.
   */
  isStartRecorded = false;
  /** Flow control that this attempt's body raised and that the engine has not applied yet. */
  raisedInterrupt: FlowControlInterrupt | null = null;
  readonly #host: AttemptHost;
  #log: Logger | null = null;
  #controller: AbortController | null = null;
  #abortReason: unknown;
  #isAborted = false;
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
   * The same for all attempts at this step: an attempt that timed out or whose worker died may have taken effect, so an
   * external service must be able to recognise the next attempt as the same request.
   */
  get idempotencyKey(): string {
    return `${this.#host.keyOwner(this.key)}:${this.key}`;
  }

  get abortSignal(): AbortSignal {
    // Created on first use: most steps never read the signal, and a controller costs more than the step's event.
    if (this.#controller === null) {
      this.#controller = new AbortController();
      if (this.#isAborted) this.#controller.abort(this.#abortReason);
    }
    return this.#controller.signal;
  }

  /** A logger that adds the step and the attempt to each line, if the user's logger supports child loggers. */
  get log(): Logger {
    return (this.#log ??= boundLogger(this.#host.log, { step: this.key, attempt: this.attempt }));
  }

  /** Cached on the first read: the run state drops the signal when the step ends, but the body may read it after that. */
  get resumedBy(): ResumedBy | null {
    if (this.#resumedBy === undefined) this.#resumedBy = this.#host.resumedBy(this.key);
    return this.#resumedBy;
  }

  /** A bound function, because user code destructures it: `({ progress }) => …`. */
  get progress(): StepTools["progress"] {
    return (done, total, message) => this.#host.progress(this.key, done, total, message);
  }

  get spent(): StepTools["spent"] {
    return () => {
      throw new InvalidInputError(`Step "${this.key}" has no limit whose units it could spend.`);
    };
  }

  /** How long the attempt has taken so far, in virtual time if the test controls the clock. */
  get elapsedMs(): number {
    if (this.#startedVirtualMs !== null) return (this.#host.virtualNow as number) - this.#startedVirtualMs;
    return this.elapsedRealMs;
  }

  get elapsedRealMs(): number {
    return Math.max(0, Math.round(this.#host.host.runtime.monotonic() - this.#startedMs));
  }

  abort(reason: unknown): void {
    if (this.#isAborted) return;
    this.#isAborted = true;
    this.#abortReason = reason;
    this.#controller?.abort(reason);
  }

  /**
   * Runs the body. After the time limit, the attempt is aborted and the body's result is ignored, even if the body is
   * still running. The outcome is passed to a callback, because a promise would cost about two kilobytes per step.
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
    // Node's timers overflow beyond `maxTimerMs` and would fire at once, so a longer time limit is ignored.
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
    // If the timeout wins the race, the body's promise may still reject, and an unhandled rejection ends the process.
    promise.catch(() => {});
    try {
      return await Promise.race([promise, timeout]);
    } finally {
      this.dispose();
    }
  }

  /** Clears the timer of the time limit, once the turn no longer waits for the attempt. */
  dispose(): void {
    if (this.#timer !== null) this.#host.host.runtime.clearTimeout(this.#timer);
  }
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  if ((typeof value !== "object" || value === null) && typeof value !== "function") return false;
  return typeof (value as { then?: unknown }).then === "function";
}
