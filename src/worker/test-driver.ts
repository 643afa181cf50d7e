/**
 * Lets a test control a worker: the worker claims runs only during `runUntilIdle` and `runOneStep`, adopts no new runs, and
 * uses the test's clock. Without a clock, the worker is not controlled and claims runs on its own.
 */
import type { Runtime } from "../runtime/runtime.js";
import { yieldToEventLoop } from "../runtime/wait.js";
import { inCleanContext } from "../telemetry/async-context.js";
import type { Claimer } from "./claim/claimer.js";
import type { HostedTurn } from "./turn/turn-host.js";

/** The worker's session, as the driver sees it. */
interface DrivenSession {
  readonly size: number;
  readonly turns: ReadonlyMap<string, DrivenTurn>;
  readonly stepSlots: DrivenSlots | null;
}

interface DrivenTurn {
  readonly isWaitingForSlots: boolean;
  readonly isLeavingSlots: boolean;
  checkInbox(): Promise<void>;
  /** Parks the run if its steps have waited for long enough. Returns when that is due; null: the run does not wait. */
  parkIfWaitedLong(): number | null;
}

/** The slots of limits that steps wait for. */
interface DrivenSlots {
  readonly isSettled: boolean;
  readonly nextAt: number | null;
  settled(): Promise<void>;
  onHint(): void;
}

/** Fires schedules and cancels runs that have not begun in time. */
interface DrivenTimedWork {
  /** Returns how many of the schedules could not be fired, because they have changed meanwhile. */
  doDueWork(): Promise<{ readonly lost: number }>;
  /** Offers slots to runs that no worker executes. Returns when that is due next; null: never. */
  offerSlots(): Promise<number | null>;
}

export class TestDriver {
  /** The store's clock, which the test advances; null: no test controls the worker. */
  clock: (() => number) | null = null;
  readonly #claimer: Claimer;
  readonly #timedWork: DrivenTimedWork;
  readonly #runtime: Runtime;
  readonly #session: () => DrivenSession | null;
  #driveCount = 0;
  #nextOfferAt: number | null = null;
  #singleStep: { readonly runId: string; ended: boolean } | null = null;

  constructor(claimer: Claimer, timedWork: DrivenTimedWork, runtime: Runtime, session: () => DrivenSession | null) {
    this.#claimer = claimer;
    this.#timedWork = timedWork;
    this.#runtime = runtime;
    this.#session = session;
  }

  get takesRuns(): boolean {
    if (this.clock !== null && this.#driveCount === 0) return false;
    return this.#singleStep?.ended !== true;
  }

  /** False while a test runs a single step, which must not be interrupted at a checkpoint. */
  get allowsInterruptions(): boolean {
    return this.#singleStep === null;
  }

  onStepEnded(turn: HostedTurn): void {
    if (this.#singleStep?.runId !== turn.runId) return;
    this.#singleStep.ended = true;
    turn.stop();
  }

  runUntilIdle(): Promise<number | null> {
    this.#singleStep = null;
    return this.#drive();
  }

  async runOneStep(runId: string): Promise<{ readonly ended: boolean; readonly nextDueAt: number | null }> {
    const singleStep = { runId, ended: false };
    this.#singleStep = singleStep;
    const nextDueAt = await this.#drive();
    return { ended: singleStep.ended, nextDueAt };
  }

  async #drive(): Promise<number | null> {
    this.#driveCount += 1;
    try {
      return await inCleanContext(() => this.#runUntilIdle());
    } finally {
      this.#driveCount -= 1;
    }
  }

  async #runUntilIdle(): Promise<number | null> {
    // The clock may have been moved to the instant at which a rate lets a step begin.
    this.#session()?.stepSlots?.onHint();
    for (;;) {
      this.#parkLongWaits();
      await this.#waitUntilIdle();
      // Read before schedules fire: a hint may let the worker claim their runs at once, and their ends may make more due.
      const before = this.#claimer.claimedCount;
      const { lost } = await this.#timedWork.doDueWork();
      // Other workers learn from their heartbeats when slots are to be offered.
      const looks = this.clock !== null || this.#session()?.stepSlots != null;
      this.#nextOfferAt = looks ? await this.#timedWork.offerSlots() : null;
      this.#claimer.claimSoon();
      await this.#waitUntilIdle();
      // A schedule that a run's end has changed meanwhile is still due.
      if (this.#claimer.claimedCount === before && lost === 0 && !this.#parkLongWaits()) return this.#nextDueAt;
    }
  }

  get #nextDueAt(): number | null {
    const { stepSlots = null, turns = new Map<string, DrivenTurn>() } = this.#session() ?? {};
    const parks = [...turns.values()].map((turn) => turn.parkIfWaitedLong());
    const instants = [this.#claimer.nextDueAt, stepSlots?.nextAt ?? null, this.#nextOfferAt, ...parks].filter(
      (at) => at !== null,
    );
    return instants.length === 0 ? null : Math.min(...instants);
  }

  /** Returns whether a run is being parked. */
  #parkLongWaits(): boolean {
    let parksRun = false;
    for (const turn of this.#session()?.turns.values() ?? []) {
      turn.parkIfWaitedLong();
      parksRun ||= turn.isLeavingSlots;
    }
    return parksRun;
  }

  /** Whether the worker does anything but wait for slots, which may need the clock to move. */
  get #isBusy(): boolean {
    const session = this.#session();
    if (this.#claimer.currentClaim !== null || this.#claimer.reservedSlots > 0) return true;
    if (session === null || session.size === 0) return false;
    const waitingCount = [...session.turns.values()].filter(({ isWaitingForSlots }) => isWaitingForSlots).length;
    return session.size > waitingCount || session.stepSlots?.isSettled === false;
  }

  /** Resolves when the worker executes no runs and no claim is in progress. */
  async #waitUntilIdle(): Promise<void> {
    while (this.#isBusy) {
      this.#parkLongWaits();
      await this.#claimer.currentClaim;
      await this.#session()?.stepSlots?.settled();
      await Promise.all([...(this.#session()?.turns.values() ?? [])].map((turn) => turn.checkInbox()));
      await yieldToEventLoop(this.#runtime);
    }
  }
}
