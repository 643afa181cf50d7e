/**
 * The worker's heartbeat: renews its lease, frees the runs of workers whose lease has expired, and finds messages in the
 * inboxes of its runs for which no hint has arrived.
 */
import type { Logger } from "../../define/context.js";
import type { Runtime, Timer } from "../../runtime/runtime.js";
import type { ExecutingCount, Fence, HeartbeatResult, ScheduleInterest, Store } from "../../store/contract/store.js";
import { warnOfRetry } from "../../telemetry/warn-of-retry.js";
import { LoopLag } from "./loop-lag.js";

const maxListedWorkers = 3;

export interface LeaseEvents {
  /** Called when the store reports that the lease is lost, which ends the current epoch of the worker. */
  readonly onLost: () => void;
  /** Called when the lease was renewed. `at` is when the heartbeat was sent, by `Runtime.processMonotonic`. */
  readonly onRenewed?: (at: number) => void;
  /** Called with the runs of this worker that have messages in their inboxes. */
  readonly onMessages: (runIds: readonly string[]) => void;
  readonly onPausedQueues: (names: readonly string[]) => void;
  /** Called with the whole result, which also tells about the schedules of the worker. */
  readonly onResult?: (result: HeartbeatResult) => void;
}

export interface HeartbeatOptions {
  readonly store: Store;
  readonly fence: Fence;
  readonly leaseMs: number;
  readonly log: Logger;
  readonly runtime: Runtime;
  /** What the worker executes now. Each heartbeat stores it, for people who look at the workers. */
  countExecuting(): readonly ExecutingCount[];
  /** The schedules that the worker fires; absent: only those that were put by the API. */
  readonly schedules?: ScheduleInterest;
}

export class Heartbeat {
  readonly #store: Store;
  readonly #fence: Fence;
  readonly #log: Logger;
  readonly #events: LeaseEvents;
  readonly #runtime: Runtime;
  readonly #countExecuting: () => readonly ExecutingCount[];
  readonly #schedules: ScheduleInterest | undefined;
  readonly #loopLag: LoopLag;
  readonly #timer: Timer;
  #isHeartbeatInFlight = false;
  #currentPoll: Promise<void> | null = null;
  #mustPollAgain = false;
  #isStopped = false;

  constructor(options: HeartbeatOptions, events: LeaseEvents) {
    const { store, fence, leaseMs, log, runtime, countExecuting, schedules } = options;
    this.#store = store;
    this.#fence = fence;
    this.#log = log;
    this.#events = events;
    this.#runtime = runtime;
    this.#countExecuting = countExecuting;
    this.#schedules = schedules;
    this.#loopLag = new LoopLag(runtime);
    // Three heartbeats are sent per lease, so that the lease survives if one heartbeat fails and the next one is late.
    this.#timer = runtime.setInterval(() => void this.#sendHeartbeat(), Math.max(10, leaseMs / 3)).unref();
  }

  /**
   * Reads the waiting messages and paused queues that a heartbeat would return, without writing a heartbeat. Some stores
   * only hint that another process has written. If workers wrote after each such hint, they would wake each other up forever.
   */
  pollNow(): Promise<void> {
    if (this.#currentPoll !== null) {
      // The current poll may have read before the new message was written, so another poll follows it.
      this.#mustPollAgain = true;
      return this.#currentPoll;
    }
    this.#currentPoll = this.#pollUntilCurrent();
    return this.#currentPoll;
  }

  async #pollUntilCurrent(): Promise<void> {
    do {
      this.#mustPollAgain = false;
      await this.#poll();
    } while (this.#mustPollAgain && !this.#isStopped);
    // Reset in the same microtask as the check of `#mustPollAgain`, so that a request after the check starts a new poll.
    this.#currentPoll = null;
  }

  async #poll(): Promise<void> {
    try {
      const [runIdsWithMessages, pausedQueues] = await Promise.all([
        this.#store.ownedWithMessages(this.#fence),
        this.#store.maintenance.pausedQueues(),
      ]);
      if (this.#isStopped) return;
      this.#events.onPausedQueues(pausedQueues.map(({ name }) => name));
      if (runIdsWithMessages.length > 0) this.#events.onMessages(runIdsWithMessages);
    } catch (error) {
      if (!this.#isStopped)
        warnOfRetry(
          this.#log,
          "Messages and paused queues could not be read; the next heartbeat reads them again.",
          error,
        );
    }
  }

  async #sendHeartbeat(): Promise<void> {
    if (this.#isHeartbeatInFlight) return;
    this.#isHeartbeatInFlight = true;
    try {
      const sentAt = this.#runtime.processMonotonic();
      const load = { executing: this.#countExecuting(), loopLagMs: this.#loopLag.takeMaxMs() };
      const result = await this.#store.heartbeat(this.#fence, load, this.#schedules);
      const { isAlive, ownedWithMessages, reapedWorkerIds, pausedQueues } = result;
      if (this.#isStopped) return;
      if (!isAlive) return this.#events.onLost();
      this.#events.onRenewed?.(sentAt);
      if (reapedWorkerIds.length > 0) void this.#warnOfDeadWorkers(reapedWorkerIds);
      this.#events.onPausedQueues(pausedQueues);
      this.#events.onResult?.(result);
      if (ownedWithMessages.length > 0) this.#events.onMessages(ownedWithMessages);
    } catch (error) {
      if (!this.#isStopped)
        warnOfRetry(this.#log, "A heartbeat failed; the next one follows at the usual interval.", error);
    } finally {
      this.#isHeartbeatInFlight = false;
    }
  }

  /** Logs the names of the dead workers, with their ids if there are at most `maxListedWorkers`. */
  async #warnOfDeadWorkers(ids: readonly string[]): Promise<void> {
    const workers = await this.#store.workers().catch(() => []);
    const names = new Map(workers.map(({ id, name }) => [id, name]));
    const areFew = ids.length <= maxListedWorkers;
    const listed = ids.slice(0, maxListedWorkers).map((id) => {
      const name = names.get(id);
      return name === undefined ? id : areFew ? `"${name}" (${id})` : `"${name}"`;
    });
    const remainder = areFew ? "" : ` and ${ids.length - maxListedWorkers} more`;
    const owners = ids.length === 1 ? "a dead worker" : `${ids.length} dead workers`;
    this.#log.warn(`Freed the runs of ${owners}: ${listed.join(", ")}${remainder}.`);
  }

  stop(): void {
    this.#isStopped = true;
    this.#loopLag.stop();
    this.#runtime.clearInterval(this.#timer);
  }
}
