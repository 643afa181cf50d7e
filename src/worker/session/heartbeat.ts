/** The worker's sign of life: renews its lease, frees the runs of workers that fell silent, hears of mail it missed. */
import type { Logger } from "../../define/context.js";
import type { Runtime, Timer } from "../../runtime/runtime.js";
import type { Fence, Store } from "../../store/contract/store.js";
import { warnOfRetry } from "../../telemetry/warn-of-retry.js";

const maxListedWorkers = 3;

export interface LeaseEvents {
  /** The store says that this epoch is over. */
  readonly onLost: () => void;
  /** It was renewed, at this time or later (by `threadClock`). */
  readonly onRenewed?: (at: number) => void;
  readonly onMessages: (runIds: readonly string[]) => void;
  readonly onPausedQueues: (names: readonly string[]) => void;
}

export class Heartbeat {
  readonly #store: Store;
  readonly #fence: Fence;
  readonly #log: Logger;
  readonly #events: LeaseEvents;
  readonly #runtime: Runtime;
  readonly #timer: Timer;
  #isHeartbeatInFlight = false;
  #currentPoll: Promise<void> | null = null;
  #mustPollAgain = false;
  #isStopped = false;

  constructor(store: Store, fence: Fence, leaseMs: number, log: Logger, events: LeaseEvents, runtime: Runtime) {
    this.#store = store;
    this.#fence = fence;
    this.#log = log;
    this.#events = events;
    this.#runtime = runtime;
    // Three beats to a lease: one may be lost, and one late.
    this.#timer = runtime.setInterval(() => void this.#sendHeartbeat(), Math.max(10, leaseMs / 3)).unref();
  }

  /**
   * Something may have changed: looks for what a beat would bring, but only looks. Where a hint says no more than that
   * another process wrote, workers that answered it with a beat would wake each other up for ever.
   */
  pollNow(): Promise<void> {
    if (this.#currentPoll !== null) {
      // A look that is under way may have been too early: then another one follows.
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
    // At once: who asks a moment later must not be taken for one who asked in time.
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
      if (!this.#isStopped) warnOfRetry(this.#log, "A look for news failed; the next heartbeat will tell.", error);
    }
  }

  async #sendHeartbeat(): Promise<void> {
    if (this.#isHeartbeatInFlight) return;
    this.#isHeartbeatInFlight = true;
    try {
      const sentAt = this.#runtime.processMonotonic();
      const { isAlive, ownedWithMessages, reapedWorkerIds, pausedQueues } = await this.#store.heartbeat(this.#fence);
      if (this.#isStopped) return;
      if (!isAlive) return this.#events.onLost();
      this.#events.onRenewed?.(sentAt);
      if (reapedWorkerIds.length > 0) void this.#warnOfDeadWorkers(reapedWorkerIds);
      this.#events.onPausedQueues(pausedQueues);
      if (ownedWithMessages.length > 0) this.#events.onMessages(ownedWithMessages);
    } catch (error) {
      if (!this.#isStopped) warnOfRetry(this.#log, "A heartbeat failed; the next one will tell.", error);
    } finally {
      this.#isHeartbeatInFlight = false;
    }
  }

  /** By the names that people gave them; the ids help as long as there are few. */
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
    this.#runtime.clearInterval(this.#timer);
  }
}
