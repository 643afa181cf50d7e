/**
 * Looks at the worker's schedules when they are due. When that is, the worker learns from its heartbeats and from hints, so
 * schedules cost an idle worker no statements of their own.
 */

import type { Logger } from "../../define/context.js";
import { maxTimerMs, type Runtime, type Timer } from "../../runtime/runtime.js";
import type { HeartbeatResult, ScheduleInterest, Store } from "../../store/contract/store.js";
import { warnOfRetry } from "../../telemetry/warn-of-retry.js";

/** What a worker needs of the schedules that it fires. */
export interface ScheduleService {
  readonly interest: ScheduleInterest;
  /** Makes the set of schedules that the worker declares the one in force, unless that of another live worker is newer. */
  claimSet(): Promise<void>;
  /** Fires all schedules of this worker that are due. Tells how many it changed, and how many another process had changed. */
  fireDue(): Promise<{ readonly changed: number; readonly lost: number }>;
  /** When the next one must be looked at, by the clock of the store; null: none. */
  nextAt(): Promise<number | null>;
}

export interface DueSchedulesOptions {
  readonly service: ScheduleService;
  readonly store: Store;
  readonly log: Logger;
  readonly runtime: Runtime;
  /** Whether a test decides when the worker looks. */
  isDriven(): boolean;
}

/** After a look that failed. */
const retryDelayMs = 1_000;
const minDelayMs = 10;
/**
 * A worker that another one has forestalled looks this much later from then on, and at a random moment. So one of several
 * workers fires the schedules, and the others, which would only repeat its reads and wait for its locks, find nothing due.
 * They take over when it does not come in time. The time doubles while looks change nothing of what is due.
 */
const yieldMs = { min: 25, max: 75 } as const;
const maxFruitlessLooks = 6;

export class DueSchedules {
  readonly #options: DueSchedulesOptions;
  #isRunning = false;
  #timer: Timer | null = null;
  /** When the timer fires, by the monotonic clock; infinite when none is set. */
  #wakesAt = Number.POSITIVE_INFINITY;
  #look: Promise<void> | null = null;
  #mustLookAgain = false;
  #mustClaimSet = true;
  /** How many looks in a row found something due and changed nothing; 1 also if others have changed a part of it. */
  #fruitlessLooks = 0;

  constructor(options: DueSchedulesOptions) {
    this.#options = options;
  }

  /** Registers the schedules that the worker declares. A failure is logged, and the registration is tried again. */
  async start(): Promise<void> {
    this.#isRunning = true;
    await this.#tryTo(() => this.#claimSet());
    this.#lookSoon();
  }

  /** Resolves when the current look has ended. */
  async stop(): Promise<void> {
    this.#isRunning = false;
    this.#options.runtime.clearTimeout(this.#timer);
    this.#wakesAt = Number.POSITIVE_INFINITY;
    await this.#look;
  }

  /** Called after a hint that a schedule may have to be looked at earlier than was known. */
  onHint(): void {
    // While a look is in progress it may have missed the change, so another one follows it.
    if (this.#fruitlessLooks > 0 && this.#look === null) this.#wakeWithin(0);
    else this.#lookSoon();
  }

  #lookSoon(): void {
    if (!this.#isRunning || this.#options.isDriven()) return;
    if (this.#look === null) void this.#lookNow();
    else this.#mustLookAgain = true;
  }

  onHeartbeat({ nextScheduleInMs, scheduleSetInForce }: HeartbeatResult): void {
    const { app, setKey } = this.#options.service.interest;
    // Another set of the application is in force; this one may be next, when the workers that declare the other have ended.
    if (app !== null && scheduleSetInForce !== setKey) {
      this.#mustClaimSet = true;
      this.#lookSoon();
    } else if (nextScheduleInMs !== null) this.#wakeWithin(nextScheduleInMs);
  }

  #lookNow(): Promise<void> {
    this.#look = this.#lookUntilCurrent();
    return this.#look;
  }

  async #lookUntilCurrent(): Promise<void> {
    do {
      this.#mustLookAgain = false;
      await this.#lookOnce();
    } while (this.#mustLookAgain && this.#isRunning);
    // Reset in the same microtask as the check of `#mustLookAgain`, so that a hint after the check starts a new look.
    this.#look = null;
  }

  async #lookOnce(): Promise<void> {
    const { service, store } = this.#options;
    await this.#tryTo(async () => {
      if (this.#mustClaimSet) await this.#claimSet();
      const { changed, lost } = await service.fireDue();
      if (lost === 0) this.#fruitlessLooks = changed > 0 ? 0 : Math.min(1, this.#fruitlessLooks);
      else this.#fruitlessLooks = changed > 0 ? 1 : Math.min(maxFruitlessLooks, this.#fruitlessLooks + 1);
      const nextAt = await service.nextAt();
      if (nextAt !== null) this.#wakeIn(nextAt - (await store.now()));
    });
  }

  async #claimSet(): Promise<void> {
    await this.#options.service.claimSet();
    this.#mustClaimSet = false;
  }

  async #tryTo(look: () => Promise<void>): Promise<void> {
    try {
      await look();
    } catch (error) {
      if (!this.#isRunning) return;
      warnOfRetry(this.#options.log, "Schedules could not be looked at; they are looked at again soon.", error);
      this.#wakeIn(retryDelayMs);
    }
  }

  /** @param share 0 for the shortest time, 1 for the longest */
  #yieldedMs(share: number): number {
    if (this.#fruitlessLooks === 0) return 0;
    return (yieldMs.min + share * (yieldMs.max - yieldMs.min)) * 2 ** (this.#fruitlessLooks - 1);
  }

  /** Unlike `#wakeIn`, keeps an earlier timer: a stream of hints must not postpone the look for ever. */
  #wakeWithin(delayMs: number): void {
    if (this.#wakesAt > this.#options.runtime.monotonic() + delayMs + this.#yieldedMs(1)) this.#wakeIn(delayMs);
  }

  #wakeIn(delayMs: number): void {
    const { runtime, isDriven } = this.#options;
    runtime.clearTimeout(this.#timer);
    if (!this.#isRunning || isDriven()) return;
    const wake = () => {
      this.#wakesAt = Number.POSITIVE_INFINITY;
      this.#lookSoon();
    };
    const waitMs = Math.min(maxTimerMs, Math.max(minDelayMs, delayMs + this.#yieldedMs(runtime.random())));
    this.#wakesAt = runtime.monotonic() + waitMs;
    this.#timer = runtime.setTimeout(wake, waitMs).unref();
  }
}
