/**
 * Decides when a worker claims due runs, and how many. It claims when the store sends a hint, when a known parked run becomes
 * due, when a slot becomes free, and at the poll interval.
 */

import { adaptivePollInterval } from "../../concurrency/poll-interval.js";
import type { Logger } from "../../define/context.js";
import { maxTimerMs, type Runtime, type Timer } from "../../runtime/runtime.js";
import type { Store } from "../../store/contract/store.js";
import { warnOfRetry } from "../../telemetry/warn-of-retry.js";
import type { Session } from "../session/session.js";
import type { RunClaims } from "./run-claims.js";

/** How many runs one claim takes at most. */
const maxClaimSize = 256;
/** If few slots are free, the claim waits this long for more, so that one claim fills several slots. */
const refillDelayMs = 5;
const errorRetryDelayMs = 200;

export interface ClaimerOptions {
  readonly runtime: Runtime;
  readonly workerName: string;
  readonly store: Store;
  readonly log: Logger;
  readonly concurrency: number;
  readonly pollMs: number;
  /** How long after a claim has failed the database may still execute it. */
  readonly lateClaimMs: number;
  /** The session that executes the claimed runs; null while nothing may be claimed. */
  readonly session: () => Session | null;
  /** How many runs the worker is executing. */
  readonly activeCount: () => number;
  readonly claims: RunClaims;
  /** Called when the store reports that the session's fence is no longer valid. */
  readonly onLost: (session: Session) => void;
}

export class Claimer {
  readonly #options: ClaimerOptions;
  readonly #runtime: Runtime;
  #isRunning = false;
  /** When a claim last returned runs, by the monotonic clock of this process. */
  #lastBusyAt = Number.NEGATIVE_INFINITY;
  #pollTimer: Timer | null = null;
  #dueTimer: Timer | null = null;
  #refillTimer: Timer | null = null;
  #lateClaimTimer: Timer | null = null;
  #retryTimer: Timer | null = null;
  #currentClaim: Promise<void> | null = null;
  #mustClaimAgain = false;
  /** When the earliest known parked run becomes due, in the store's time. */
  #nextDueAt: number | null = null;
  /** The earliest due time of the runs that were parked during a claim; the claim's `nextDueAt` may not include them. */
  #parkedDuringClaimDueAt: number | null = null;
  /** How many different workflow versions the runs of the last non-empty claim belonged to. */
  #busyRouteCount = 1;
  #claimedCount = 0;
  /**
   * Whether the connection failed during a claim or commit, so that the worker may own runs that its session does not
   * know.
   */
  #mustReconcile = false;
  /** Whether more due runs probably exist: the last claim reached its limit, or a hint arrived while no slot was free. */
  #hasBacklog = false;
  /** The number of slots that the current claim may fill; no other run may use them until the claim has ended. */
  #reservedSlots = 0;

  constructor(options: ClaimerOptions) {
    this.#options = options;
    this.#runtime = options.runtime;
  }

  start(): void {
    this.#isRunning = true;
    this.#schedulePoll();
    this.claimSoon();
  }

  /** Resolves when the current claim has ended. */
  async stop(): Promise<void> {
    this.#isRunning = false;
    this.#clearTimers();
    await this.#currentClaim;
    // A claim that fails starts timers.
    this.#clearTimers();
  }

  #clearTimers(): void {
    const timers = [this.#pollTimer, this.#dueTimer, this.#refillTimer, this.#lateClaimTimer, this.#retryTimer];
    for (const timer of timers) this.#runtime.clearTimeout(timer);
  }

  get freeSlots(): number {
    return this.#options.concurrency - this.#options.activeCount() - this.#reservedSlots;
  }

  /** Whether other runs may be waiting for a slot of this worker. */
  get hasWaitingRuns(): boolean {
    return this.#hasBacklog || this.freeSlots <= 0;
  }

  get nextDueAt(): number | null {
    return this.#nextDueAt;
  }

  /** How many runs have been claimed so far. */
  get claimedCount(): number {
    return this.#claimedCount;
  }

  /** Resolves when the current claim has ended and the turns of its runs have started; null if there is no claim. */
  get currentClaim(): Promise<void> | null {
    return this.#currentClaim;
  }

  get reservedSlots(): number {
    return this.#reservedSlots;
  }

  /** Called when the connection failed during a commit: the next claim first reads which runs the worker owns. */
  reconcileSoon(): void {
    this.#mustReconcile = true;
    this.claimSoon();
  }

  /** Returns whether a claim will begin, or has begun, after this call. */
  claimSoon(): boolean {
    const session = this.#isRunning ? this.#options.session() : null;
    if (session === null) return false;
    if (this.#currentClaim !== null) {
      // The current claim may have read the tasks before the new run became due.
      this.#mustClaimAgain = true;
      return true;
    }
    if (this.freeSlots <= 0) {
      // The due runs are claimed when a slot becomes free.
      this.#hasBacklog = true;
      return false;
    }
    this.#currentClaim = this.#claim(session).finally(() => {
      this.#currentClaim = null;
      if (!this.#mustClaimAgain) return;
      this.#mustClaimAgain = false;
      this.claimSoon();
    });
    return true;
  }

  async #claim(session: Session): Promise<void> {
    const { log, workerName } = this.#options;
    const limit = Math.min(this.freeSlots, maxClaimSize);
    this.#reservedSlots += limit;
    this.#parkedDuringClaimDueAt = null;
    try {
      if (this.#mustReconcile) {
        this.#mustReconcile = false;
        await session.reconcile();
      }
      // Each route is searched for only a share of the limit: if the store searched every route for the whole limit, it
      // would lock more rows than the claim returns. The share is at least 20, so that a route that becomes busy is not
      // limited to a few runs per claim.
      const limitPerRoute = Math.max(Math.ceil(limit / this.#busyRouteCount), Math.min(limit, 20));
      const { fence } = session.committer;
      const claim = await this.#options.claims.claim({ fence, limit, limitPerRoute });
      if (claim.kind === "fenced") return this.#options.onLost(session);
      this.#hasBacklog = claim.hasMore;
      if (this.#hasBacklog) this.#mustClaimAgain = true;
      const dueAt = this.#hasBacklog ? this.#nextDueAt : claim.nextDueAt;
      const parkedDueAt = this.#parkedDuringClaimDueAt;
      this.#wakeAt(dueAt === null ? parkedDueAt : Math.min(dueAt, parkedDueAt ?? dueAt), claim.at);
      this.#claimedCount += claim.tasks.length;
      if (claim.tasks.length > 0) {
        this.#busyRouteCount = new Set(claim.tasks.map(({ run }) => `${run.workflow}\u0000${run.version}`)).size;
        this.#noteBusy();
      }
      await session.openClaimed(claim.tasks, claim.at);
    } catch (error) {
      warnOfRetry(log, `Worker "${workerName}" could not claim runs.`, error);
      this.#mustReconcile = true;
      if (!session.isDead) this.#retrySoon();
      this.#reconcileLater();
    } finally {
      this.#reservedSlots -= limit;
    }
  }

  #retrySoon(): void {
    this.#runtime.clearTimeout(this.#retryTimer);
    this.#retryTimer = this.#runtime.setTimeout(() => this.claimSoon(), errorRetryDelayMs).unref();
  }

  /**
   * A server that has lost the connection may execute the claim after the owned runs were read again, and no other worker
   * takes these runs as long as this one is alive.
   */
  #reconcileLater(): void {
    this.#runtime.clearTimeout(this.#lateClaimTimer);
    const timer = this.#runtime.setTimeout(() => this.reconcileSoon(), this.#options.lateClaimMs);
    this.#lateClaimTimer = timer.unref();
  }

  /** Called when the session released a run, so that a slot is free; `parking` is set if the run becomes due later. */
  onRunReleased(parking: { readonly dueAt: number; readonly now: number } | null): void {
    if (this.#hasBacklog) this.#refill();
    if (parking === null) return;
    this.#parkedDuringClaimDueAt = Math.min(parking.dueAt, this.#parkedDuringClaimDueAt ?? parking.dueAt);
    if (this.#nextDueAt === null || parking.dueAt < this.#nextDueAt) this.#wakeAt(parking.dueAt, parking.now);
  }

  /** Claims at once if half of the slots are free, otherwise after `refillDelayMs`, so that one claim takes several runs. */
  #refill(): void {
    if (!this.#isRunning) return;
    if (this.freeSlots >= this.#options.concurrency >> 1) {
      this.claimSoon();
      return;
    }
    this.#refillTimer ??= this.#runtime.setTimeout(() => {
      this.#refillTimer = null;
      this.claimSoon();
    }, refillDelayMs);
  }

  #wakeAt(dueAt: number | null, now: number): void {
    this.#runtime.clearTimeout(this.#dueTimer);
    this.#dueTimer = null;
    this.#nextDueAt = dueAt;
    if (dueAt === null || !this.#isRunning) return;
    // If the delay exceeds the maximum of a timer, the timer fires early; the claim then returns the same due time again.
    const inMs = Math.max(0, dueAt - now) + 1;
    const onDue = () => {
      this.#nextDueAt = null;
      this.claimSoon();
    };
    this.#dueTimer = this.#runtime.setTimeout(onDue, inMs).unref();
  }

  #schedulePoll(): void {
    const { store, pollMs } = this.#options;
    this.#runtime.clearTimeout(this.#pollTimer);
    if (pollMs > maxTimerMs || !this.#isRunning) return;
    const delay = store.hasCrossProcessHints
      ? pollMs
      : adaptivePollInterval(this.#runtime.monotonic() - this.#lastBusyAt, pollMs);
    this.#pollTimer = this.#runtime.setTimeout(() => {
      this.claimSoon();
      this.#schedulePoll();
    }, delay);
  }

  /**
   * Called when a claim returned runs. More may follow, so a store without hints between processes is polled faster
   * now.
   */
  #noteBusy(): void {
    const now = this.#runtime.monotonic();
    const wasQuiet = now - this.#lastBusyAt > 1_000;
    this.#lastBusyAt = now;
    if (wasQuiet && !this.#options.store.hasCrossProcessHints) this.#schedulePoll();
  }
}
