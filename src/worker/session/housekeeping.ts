/**
 * Periodic maintenance by every worker: deletes runs that are older than the retention, deletes the rows of workers that died
 * long ago, warns of stuck runs, pauses runs whose jobs have vanished, and lets runs go on that wait for limits which their
 * workflows do not have any more. Each worker starts after a random delay, so that
 * few workers do the same work at once; if several do, no harm is done.
 */

import type { Logger } from "../../define/context.js";
import { maxTimerMs, type Runtime, type Timer } from "../../runtime/runtime.js";
import type { Route, Store } from "../../store/contract/store.js";
import { warnOfRetry } from "../../telemetry/warn-of-retry.js";
import { StuckRuns } from "./stuck-runs.js";
import { jobMissingGraceMs, VanishedJobs } from "./vanished-jobs.js";

export interface HousekeepingOptions {
  readonly runtime: Runtime;
  readonly store: Store;
  readonly log: Logger;
  /**
   * Deletes the runs that are older than the retention, until none is left or `stop` is aborted; null: no retention is
   * set.
   */
  readonly prune: ((stop: AbortSignal) => Promise<{ readonly runs: number }>) | null;
  /**
   * How often old data is deleted. Stuck runs are checked at least every 5 minutes, vanished jobs at least every
   * minute.
   */
  readonly everyMs: number;
  readonly registry: { readonly unlimitedRoutes: readonly Route[] };
}

const stuckCheckIntervalMs = 5 * 60_000;
/**
 * Workers of the release that had the limit may sort further runs until the last of them has stopped, so looking once, when a
 * worker starts, would not be enough.
 */
const unsortIntervalMs = 60_000;
const maxUnsortCalls = 1_000;
const deleteDeadWorkersAfterMs = 24 * 3_600_000;
/** The figures per minute take 1,440 rows a day for each workflow. */
const keepFiguresMs = 14 * 24 * 3_600_000;

/** The ledger of schedules proves what ran for more than a year. */
const keepOccurrencesMs = 400 * 24 * 3_600_000;
const occurrencesPerDeletion = 1_000;

const cleaning = "cleaning";

export class Housekeeping {
  readonly #options: HousekeepingOptions;
  readonly #stuckRuns: StuckRuns;
  readonly vanishedJobs: VanishedJobs;
  readonly #stopController = new AbortController();
  readonly #timers = new Map<string, Timer>();
  readonly #activeTasks = new Set<Promise<void>>();
  #nextCleaningAt: number | null = null;

  constructor(options: HousekeepingOptions) {
    this.#options = options;
    const { store, log, runtime } = options;
    this.vanishedJobs = new VanishedJobs(store, runtime);
    this.#stuckRuns = new StuckRuns(store, log, runtime, this.vanishedJobs);
  }

  start(): void {
    const { everyMs } = this.#options;
    this.#repeat(cleaning, everyMs, () => this.deleteOldData());
    this.#repeat("looking for stuck runs", Math.min(everyMs, stuckCheckIntervalMs), () => this.#stuckRuns.check());
    this.#repeat("looking for vanished jobs", Math.min(everyMs, jobMissingGraceMs), () => this.vanishedJobs.check());
    this.#repeat("looking for runs that wait for former limits", Math.min(everyMs, unsortIntervalMs), () =>
      this.#releaseFromFormerLimits(),
    );
  }

  /** When old data is deleted next, by the clock of the process; null if that is not planned. */
  get nextCleaningAt(): number | null {
    return this.#nextCleaningAt;
  }

  /** Resolves when the current tasks have stopped; a deletion stops after its current batch. */
  async stop(): Promise<void> {
    this.#stopController.abort();
    this.#nextCleaningAt = null;
    for (const timer of this.#timers.values()) this.#options.runtime.clearTimeout(timer);
    await Promise.all(this.#activeTasks);
  }

  async deleteOldData(): Promise<void> {
    const { runtime, store, log, prune } = this.#options;
    const deletedWorkers = await store.maintenance.deleteDeadWorkers({
      lastHeartbeatBefore: runtime.now() - deleteDeadWorkersAfterMs,
    });
    if (deletedWorkers.length > 0)
      log.debug(`Deleted the records of ${deletedWorkers.length} worker(s) that died more than a day ago.`);
    const oldestMinute = Math.floor(((await store.now()) - keepFiguresMs) / 60_000);
    await store.maintenance.questions.deleteFigures({ before: oldestMinute });
    await this.#deleteOldOccurrences();
    const { runs } = (await prune?.(this.#stopController.signal)) ?? { runs: 0 };
    if (runs > 0) log.info(`Deleted ${runs} run(s) that ended longer ago than the retention.`);
  }

  /** No worker admits the runs of a class whose workflow has lost its limits. */
  async #releaseFromFormerLimits(): Promise<void> {
    const { store, registry } = this.#options;
    for (let call = 0; call < maxUnsortCalls && !this.#stopController.signal.aborted; call += 1)
      if ((await store.limits.unsort(registry.unlimitedRoutes)) === 0) return;
  }

  async #deleteOldOccurrences(): Promise<void> {
    const { store } = this.#options;
    const before = (await store.now()) - keepOccurrencesMs;
    const options = { before, limit: occurrencesPerDeletion };
    while (!this.#stopController.signal.aborted)
      if ((await store.schedules.deleteOccurrences(options)) < occurrencesPerDeletion) return;
  }

  /**
   * Runs the task first after 5 to 10 % of the interval: not at startup, but early enough for processes that restart
   * often.
   */
  #repeat(taskName: string, everyMs: number, work: () => Promise<void>): void {
    const { runtime } = this.#options;
    if (everyMs > maxTimerMs) return;
    const schedule = (delayMs: number) => {
      if (taskName === cleaning) this.#nextCleaningAt = runtime.now() + delayMs;
      const timer = runtime.setTimeout(() => {
        const task = this.#runSafely(taskName, work).finally(() => {
          this.#activeTasks.delete(task);
          if (!this.#stopController.signal.aborted) schedule(everyMs);
        });
        this.#activeTasks.add(task);
      }, delayMs);
      this.#timers.set(taskName, timer.unref());
    };
    schedule((everyMs / 20) * (1 + runtime.random()));
  }

  async #runSafely(taskName: string, work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      if (!this.#stopController.signal.aborted)
        warnOfRetry(this.#options.log, `Housekeeping failed (${taskName}); it is tried again later.`, error);
    }
  }
}
