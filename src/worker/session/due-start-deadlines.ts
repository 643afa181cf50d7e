/**
 * Cancels runs that have not begun in time when the earliest start deadline has come. When that is, the worker learns from its
 * heartbeats and from hints, so deadlines cost an idle worker no statements of their own.
 */
import type { Logger } from "../../define/context.js";
import { maxTimerMs, type Runtime, type Timer } from "../../runtime/runtime.js";
import type { HeartbeatResult } from "../../store/contract/store.js";
import { warnOfRetry } from "../../telemetry/warn-of-retry.js";

/** What a worker needs of the runs that must begin by an instant. */
export interface StartDeadlineService {
  /** Cancels the runs that have not begun in time. Returns how long until the next deadline; null: there is none. */
  cancelDue(): Promise<number | null>;
  /** When the earliest deadline comes, by the clock of the store; null: there is none. */
  nextAt(): Promise<number | null>;
}

export interface DueStartDeadlinesOptions {
  readonly service: StartDeadlineService;
  readonly log: Logger;
  readonly runtime: Runtime;
  /** Whether a test decides when the worker looks. */
  isDriven(): boolean;
}

/** After a look that failed. */
const retryDelayMs = 1_000;
/**
 * All workers know the same deadline. They look at random moments of this time after it, so that usually one of them cancels
 * the runs and the others find nothing due.
 */
const spreadMs = 50;

export class DueStartDeadlines {
  readonly #options: DueStartDeadlinesOptions;
  #isRunning = false;
  #timer: Timer | null = null;
  /** When the timer fires, by the monotonic clock; infinite when none is set. */
  #wakesAt = Number.POSITIVE_INFINITY;
  #look: Promise<void> | null = null;

  constructor(options: DueStartDeadlinesOptions) {
    this.#options = options;
  }

  /** Cancels what is overdue before the worker claims, so that after a downtime it does not begin runs that came too late. */
  async start(): Promise<void> {
    this.#isRunning = true;
    if (!this.#options.isDriven()) await this.#lookNow();
  }

  /** Resolves when the current look has ended. */
  async stop(): Promise<void> {
    this.#isRunning = false;
    this.#options.runtime.clearTimeout(this.#timer);
    this.#wakesAt = Number.POSITIVE_INFINITY;
    await this.#look;
  }

  /** Called when a run was created that must begin within this time. */
  onHint(inMs: number): void {
    this.#wakeWithin(inMs);
  }

  onHeartbeat({ nextStartDeadlineInMs }: Pick<HeartbeatResult, "nextStartDeadlineInMs">): void {
    if (nextStartDeadlineInMs !== null) this.#wakeWithin(nextStartDeadlineInMs);
  }

  #lookNow(): Promise<void> {
    this.#look ??= this.#lookOnce();
    return this.#look;
  }

  async #lookOnce(): Promise<void> {
    let nextInMs: number | null = retryDelayMs;
    try {
      nextInMs = await this.#options.service.cancelDue();
    } catch (error) {
      const problem = "Runs that have not begun in time could not be canceled; they are looked at again soon.";
      if (this.#isRunning) warnOfRetry(this.#options.log, problem, error);
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
