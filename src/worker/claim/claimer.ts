/**
 * When a worker asks for runs that are due, and for how many: when it is told of some, when one that it knows of becomes
 * due, when it has room again, and now and then without any reason.
 */

import { adaptivePollInterval } from "../../concurrency/poll-interval.js";
import type { Logger } from "../../define/context.js";
import { maxTimerMs, type Runtime, type Timer } from "../../runtime/runtime.js";
import type { Route, Store } from "../../store/contract/store.js";
import { warnOfRetry } from "../../telemetry/warn-of-retry.js";
import type { Session } from "../session/session.js";

/** Of one claim. */
const maxClaimSize = 256;
const refillDelayMs = 5;
const errorRetryDelayMs = 200;

export interface ClaimerOptions {
  readonly runtime: Runtime;
  readonly workerName: string;
  readonly store: Store;
  readonly log: Logger;
  readonly concurrency: number;
  readonly pollMs: number;
  /** Who takes what is claimed; null: nothing may be claimed now. */
  readonly session: () => Session | null;
  /** How many runs it has. */
  readonly activeCount: () => number;
  readonly routes: () => readonly Route[];
  readonly onLost: (session: Session) => void;
}

export class Claimer {
  readonly #options: ClaimerOptions;
  readonly #runtime: Runtime;
  #isRunning = false;
  /** When there last was something to do; our own monotonic clock. */
  #lastBusyAt = Number.NEGATIVE_INFINITY;
  #pollTimer: Timer | null = null;
  #dueTimer: Timer | null = null;
  #refillTimer: Timer | null = null;
  #currentClaim: Promise<void> | null = null;
  #mustClaimAgain = false;
  /** When the earliest parked run that we know of becomes due. */
  #nextDueAt: number | null = null;
  /** The earliest due time of runs that were parked while a claim was under way: its answer does not know of them. */
  #parkedDuringClaimDueAt: number | null = null;
  /** How many of our workflows the last claim found runs of. */
  #busyRouteCount = 1;
  #claimedCount = 0;
  /** The answer to a claim or commit was lost: there may be runs that are ours without our knowing. */
  #mustReconcile = false;
  /** The last claim came back full: there is probably more. */
  #hasBacklog = false;
  /** Places that a claim under way may fill. */
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

  /** Comes back when no claim is under way any more. */
  async stop(): Promise<void> {
    this.#isRunning = false;
    for (const timer of [this.#pollTimer, this.#dueTimer, this.#refillTimer]) this.#runtime.clearTimeout(timer);
    await this.#currentClaim;
  }

  get freeSlots(): number {
    return this.#options.concurrency - this.#options.activeCount() - this.#reservedSlots;
  }

  /** Whether other runs wait for a place. */
  get hasWaitingRuns(): boolean {
    return this.#hasBacklog || this.freeSlots <= 0;
  }

  get nextDueAt(): number | null {
    return this.#nextDueAt;
  }

  /** How many runs it has claimed so far. */
  get claimedCount(): number {
    return this.#claimedCount;
  }

  /** The claim that is under way, and what it takes to open what it has found. */
  get currentClaim(): Promise<void> | null {
    return this.#currentClaim;
  }

  get reservedSlots(): number {
    return this.#reservedSlots;
  }

  /** An answer was lost: the next claim first asks which runs are ours. */
  reconcileSoon(): void {
    this.#mustReconcile = true;
    this.claimSoon();
  }

  claimSoon(): void {
    const session = this.#isRunning ? this.#options.session() : null;
    if (session === null) return;
    if (this.#currentClaim !== null) {
      // It may have looked before what we are told of was there.
      this.#mustClaimAgain = true;
      return;
    }
    if (this.freeSlots <= 0) {
      // Whatever we were told of is still there when there is room.
      this.#hasBacklog = true;
      return;
    }
    this.#currentClaim = this.#claim(session).finally(() => {
      this.#currentClaim = null;
      if (!this.#mustClaimAgain) return;
      this.#mustClaimAgain = false;
      this.claimSoon();
    });
  }

  async #claim(session: Session): Promise<void> {
    const { store, log, workerName } = this.#options;
    const limit = Math.min(this.freeSlots, maxClaimSize);
    this.#reservedSlots += limit;
    this.#parkedDuringClaimDueAt = null;
    try {
      if (this.#mustReconcile) {
        this.#mustReconcile = false;
        await session.reconcile();
      }
      // A share for each workflow that had something lately. What is found beyond the limit was locked for nothing.
      const limitPerRoute = Math.max(Math.ceil(limit / this.#busyRouteCount), Math.min(limit, 20));
      const { fence } = session.committer;
      const claim = await store.claim({ fence, routes: this.#options.routes(), limit, limitPerRoute });
      if (claim.kind === "fenced") return this.#options.onLost(session);
      this.#hasBacklog = claim.tasks.length >= Math.min(limit, limitPerRoute);
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
      if (!session.isDead) this.#runtime.setTimeout(() => this.claimSoon(), errorRetryDelayMs).unref();
    } finally {
      this.#reservedSlots -= limit;
    }
  }

  /** A run was let go of: there is room, and, if it was parked, something that becomes due. */
  onRunReleased(parking: { readonly dueAt: number; readonly now: number } | null): void {
    if (this.#hasBacklog) this.#refill();
    if (parking === null) return;
    this.#parkedDuringClaimDueAt = Math.min(parking.dueAt, this.#parkedDuringClaimDueAt ?? parking.dueAt);
    if (this.#nextDueAt === null || parking.dueAt < this.#nextDueAt) this.#wakeAt(parking.dueAt, parking.now);
  }

  /** At once when there is much room; a moment later when there is little, so that claims take several runs at a time. */
  #refill(): void {
    if (this.freeSlots >= this.#options.concurrency >> 1) return this.claimSoon();
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
    // A run that is due later than a timer can count is claimed for in vain, and the answer says again when it is due.
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

  /** There was something to do: more may come soon. */
  #noteBusy(): void {
    const now = this.#runtime.monotonic();
    const wasQuiet = now - this.#lastBusyAt > 1_000;
    this.#lastBusyAt = now;
    if (wasQuiet && !this.#options.store.hasCrossProcessHints) this.#schedulePoll();
  }
}
