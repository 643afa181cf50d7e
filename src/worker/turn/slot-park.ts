/**
 * Parks a run that does nothing but wait for slots of step limits: it gives up the slots that it holds as a run, and its memory.
 * Its steps keep their places. When one of them has a slot, the run is due.
 */
import type { Timer } from "../../runtime/runtime.js";
import type { SlotParkPort, WholeTurn } from "./ports.js";

/** Most slots are free sooner. A run that is parked must be claimed again, and its code replayed. */
const patienceMs = 1_000;

export class SlotPark implements SlotParkPort {
  readonly #turn: WholeTurn;
  /** Since when the run does nothing but wait, by the clock of `#now`. */
  #since: number | null = null;
  /** What the turn had done then: whatever it does afterwards, it begins to wait again. */
  #progress = "";
  #timer: Timer | null = null;
  #isLeaving = false;

  constructor(turn: WholeTurn) {
    this.#turn = turn;
  }

  /** Whether the waits are being given to the run. The idle check runs again when that is done. */
  get isLeaving(): boolean {
    return this.#isLeaving;
  }

  /** When the run is to be parked, by the clock of a test; null if it is not waiting, or no test controls the clock. */
  get dueAt(): number | null {
    return this.#turn.virtualNow === null || this.#since === null || !this.#isOnlyWaiting
      ? null
      : this.#since + patienceMs;
  }

  /** Called whenever the turn may have come to do nothing but wait. */
  check(): void {
    if (this.#isLeaving || !this.#isOnlyWaiting) return;
    const now = this.#now;
    const { attempts, state } = this.#turn;
    const progress = `${attempts.startedCount} ${state.seq}`;
    if (this.#since === null || this.#progress !== progress) {
      this.#since = now;
      this.#progress = progress;
    }
    const remainingMs = this.#since + patienceMs - now;
    if (remainingMs > 0) this.#checkIn(remainingMs);
    else void this.leave();
  }

  /** Gives the waits to the run. The idle check then parks it, or waits on if it has something else to do after all. */
  async leave(): Promise<void> {
    const turn = this.#turn;
    this.stop();
    this.#isLeaving = true;
    await turn.slots.leaveAll();
    this.#isLeaving = false;
    if (turn.phase.isStopping) turn.slots.cancelWaits();
    turn.scheduleIdleCheck();
  }

  /**
   * Whether there is nothing left for this worker to do, because all waits belong to the run.
   *
   * @param isStopping whether the worker stops
   */
  canPark(isStopping: boolean): boolean {
    const { slots } = this.#turn;
    return (
      slots.leftKeys.length > 0 && slots.waitingCount === 0 && this.#isQuiet && (isStopping || !this.#turn.isDraining)
    );
  }

  stop(): void {
    this.#turn.host.runtime.clearTimeout(this.#timer);
    this.#timer = null;
    this.#since = null;
  }

  get #isOnlyWaiting(): boolean {
    const { slots, isDraining } = this.#turn;
    return slots.waitingCount > 0 && slots.canLeaveAll && !isDraining && this.#isQuiet;
  }

  /** Whether no body is executed, and nothing is written or delivered. */
  get #isQuiet(): boolean {
    const { phase, attempts, inboxProcessor, writer, pendingWrites, results, handler } = this.#turn;
    return (
      phase.current.kind === "running" &&
      phase.endedJobSteps === null &&
      !attempts.isBusy &&
      !inboxProcessor.isBusy &&
      !inboxProcessor.isCheckDue &&
      !writer.hasUnacknowledgedWrites &&
      pendingWrites.isEmpty &&
      results.pending.size > 0 &&
      !results.isDelivering &&
      !handler.hasGatedCalls
    );
  }

  get #now(): number {
    return this.#turn.virtualNow ?? this.#turn.host.runtime.monotonic();
  }

  #checkIn(delayMs: number): void {
    const { host, virtualNow } = this.#turn;
    if (virtualNow !== null || this.#timer !== null) return;
    this.#timer = host.runtime.setTimeout(() => {
      this.#timer = null;
      this.#turn.scheduleIdleCheck();
    }, delayMs);
  }
}
