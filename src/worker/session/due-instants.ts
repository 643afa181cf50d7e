/**
 * Does work of all workers at instants that are in the database: cancels runs that have not begun in time, and offers slots of
 * limits. When the next instant comes, the worker learns from its heartbeats and from hints, so an idle worker sends no statements
 * of its own for that.
 */
import type { Logger } from "../../define/context.js";
import { maxTimerMs, type Runtime, type Timer } from "../../runtime/runtime.js";
import { warnOfRetry } from "../../telemetry/warn-of-retry.js";

export interface DueInstantsOptions {
  /** Does what is due. Returns how long until the next instant; null: there is none. */
  doDue(): Promise<number | null>;
  /** What is logged when that fails. */
  readonly problem: string;
  /** Whether the worker looks when it starts, before it claims runs. */
  readonly looksAtStart: boolean;
  readonly log: Logger;
  readonly runtime: Runtime;
  /** Whether a test decides when the worker looks. */
  isDriven(): boolean;
}

/** After a look that failed. */
const retryDelayMs = 1_000;
/**
 * All workers know the same instant. They look at random moments of this time after it, so that usually one of them does the work
 * and the others find nothing due.
 */
const spreadMs = 50;

export class DueInstants {
  readonly #options: DueInstantsOptions;
  #isRunning = false;
  #timer: Timer | null = null;
  /** When the timer fires, by the monotonic clock; infinite when none is set. */
  #wakesAt = Number.POSITIVE_INFINITY;
  #look: Promise<void> | null = null;

  constructor(options: DueInstantsOptions) {
    this.#options = options;
  }

  async start(): Promise<void> {
    this.#isRunning = true;
    if (this.#options.looksAtStart && !this.#options.isDriven()) await this.#lookNow();
  }

  /** Resolves when the current look has ended. */
  async stop(): Promise<void> {
    this.#isRunning = false;
    this.#options.runtime.clearTimeout(this.#timer);
    this.#wakesAt = Number.POSITIVE_INFINITY;
    await this.#look;
  }

  /** Called when something may be due within this time; null: nothing is known to be. */
  expect(inMs: number | null): void {
    if (inMs !== null) this.#wakeWithin(inMs);
  }

  #lookNow(): Promise<void> {
    this.#look ??= this.#lookOnce();
    return this.#look;
  }

  async #lookOnce(): Promise<void> {
    let nextInMs: number | null = retryDelayMs;
    try {
      nextInMs = await this.#options.doDue();
    } catch (error) {
      if (this.#isRunning) warnOfRetry(this.#options.log, this.#options.problem, error);
    }
    this.#look = null;
    if (nextInMs !== null) this.#wakeWithin(nextInMs);
  }

  /** Keeps an earlier timer. */
  #wakeWithin(delayMs: number): void {
    const { runtime, isDriven } = this.#options;
    if (!this.#isRunning || isDriven()) return;
    const waitMs = Math.min(maxTimerMs, Math.max(0, delayMs) + 1 + runtime.random() * spreadMs);
    const wakesAt = runtime.monotonic() + waitMs;
    if (this.#wakesAt <= wakesAt) return;
    runtime.clearTimeout(this.#timer);
    this.#wakesAt = wakesAt;
    const wake = () => {
      this.#wakesAt = Number.POSITIVE_INFINITY;
      void this.#lookNow();
    };
    this.#timer = runtime.setTimeout(wake, waitMs).unref();
  }
}
