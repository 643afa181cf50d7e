/**
 * The idle check: what a turn does when neither its code nor anything it has started can make progress right now. The
 * action is one value (`nextIdleAction`), computed from the phase of the turn and the state of the run.
 */
import { type Failure, reviveFailure } from "../../core/encoding/error-record.js";
import { isCompensation, openCompensations } from "../../core/run/compensation.js";
import { stepsWhoseJobsEnded } from "../../core/run/job-runs.js";
import { shouldRunCode } from "../../core/run/park.js";
import { cancelRun, cancelWithoutCompensation, failRun } from "./handler-end.js";
import type { WholeTurn } from "./ports.js";
import { pauseRunOnError } from "./user-code.js";

/** The facts that decide the next action. `nextIdleAction` reads each fact only when it needs it. */
export interface IdleView {
  /** Whether the last commit of the turn is under way, or the worker no longer owns the run. */
  readonly isEndingTurn: boolean;
  /**
   * Whether a step body runs, a step waits for a slot, or the inbox is being processed; the idle check runs again after
   * it.
   */
  readonly isBusy: boolean;
  /** Whether new calls wait for the replay to reach every call in the log, and may still start. */
  readonly hasGatedCalls: boolean;
  /**
   * Whether a commit is under way; the idle check runs again when the commit is acknowledged and folded into the state.
   */
  readonly isWriting: boolean;
  readonly isPaused: boolean;
  readonly isCanceled: boolean;
  readonly isExpired: boolean;
  /** Whether results are being delivered to the code. */
  readonly isDelivering: boolean;
  readonly hasCalledCode: boolean;
  /** Whether jobs of the run's steps have ended. In a paused run, the code is called only to record their outcome. */
  readonly mustRecordEndedJobs: boolean;
  readonly isRecordingEndedJobs: boolean;
  /** Whether the code was stopped before it ended; the next owner of the run calls it again. */
  readonly isInterrupted: boolean;
  readonly hasWorkForCode: boolean;
  /** Whether the code awaits the result of at least one call. */
  readonly isWaiting: boolean;
  /** Whether more messages are expected soon, so that waiting for them is cheaper than reading the log again later. */
  readonly shouldDelayPark: boolean;
  /** Whether a signal that has already arrived may match a wait that is among the pending writes. */
  readonly hasMatchingSignal: boolean;
}

export type IdleAction =
  /** Another operation is under way, and the idle check runs again when it ends. */
  | "nothing"
  /** While step bodies run: commit the pending writes and set a timer for the next due time. */
  | "watch timers"
  /** Commit the pending writes. */
  | "write"
  /** Commit the pending writes and park the run a moment later, unless messages arrive. */
  | "delay park"
  | "cancel"
  | "expire"
  | "record ended jobs"
  | "call code"
  | "park"
  /** Park the run, or pause it again if an operator has to release every step that its code awaits. */
  | "park or pause again";

export function nextIdleAction(view: IdleView): IdleAction {
  if (view.isEndingTurn) return "nothing";
  if (view.isBusy) return "watch timers";
  // The gate will either start the gated calls or pause the run, so the run is not parked now.
  if (view.hasGatedCalls) return "write";
  if (view.isWriting) return "nothing";
  const { isPaused } = view;
  if (view.isCanceled && !isPaused) return "cancel";
  if (view.isExpired && !isPaused && !(view.hasCalledCode && view.isDelivering)) return "expire";
  if (isPaused && view.mustRecordEndedJobs) return "record ended jobs";
  if (view.isRecordingEndedJobs && view.isDelivering) return "nothing";
  if (isPaused || view.isInterrupted) return "park";
  // If the code has not been called in this turn, it is called only if there is work for it, for example a received
  // signal.
  if (!view.hasCalledCode) return view.hasWorkForCode ? "call code" : "park";
  if (view.isDelivering) return "nothing";
  if (!view.isWaiting) return "write";
  if (view.shouldDelayPark) return "delay park";
  return view.hasMatchingSignal ? "write" : "park or pause again";
}

/** Reads the facts from the parts of the turn. */
class TurnView implements IdleView {
  readonly #turn: WholeTurn;

  constructor(turn: WholeTurn) {
    this.#turn = turn;
  }

  get isEndingTurn() {
    return this.#turn.isOver || this.#turn.phase.isEndingTurn;
  }

  get isBusy() {
    const { attempts, slots, slotPark, inboxProcessor } = this.#turn;
    return attempts.isBusy || slots.waitingCount > 0 || slotPark.isLeaving || inboxProcessor.isBusy;
  }

  get hasGatedCalls() {
    return this.#turn.handler.hasGatedCalls && !this.#turn.isDraining;
  }

  get isWriting() {
    return this.#turn.writer.hasUnacknowledgedWrites;
  }

  get isPaused() {
    return this.#turn.state.paused !== null;
  }

  get isCanceled() {
    return this.#turn.state.cancelRequest !== null;
  }

  get isExpired() {
    return this.#turn.state.timeoutFailure !== null;
  }

  get isDelivering() {
    return this.#turn.results.isDelivering;
  }

  get hasCalledCode() {
    return this.#turn.phase.hasCalledCode;
  }

  get mustRecordEndedJobs() {
    const { deliveries, state, phase } = this.#turn;
    if (phase.hasCalledCode || deliveries > 1 || state.cancelRequest !== null || phase.isStopping) return false;
    return stepsWhoseJobsEnded(state).size > 0;
  }

  get isRecordingEndedJobs() {
    return this.#turn.phase.endedJobSteps !== null;
  }

  get isInterrupted() {
    return this.#turn.phase.isInterrupted;
  }

  get hasWorkForCode() {
    return hasWorkForCode(this.#turn);
  }

  get isWaiting() {
    return this.#turn.results.pending.size > 0;
  }

  get shouldDelayPark() {
    return this.#turn.parkDelay.shouldDelay(this.#turn.state, this.#turn.pendingWrites);
  }

  get hasMatchingSignal() {
    return hasSignalForPendingWait(this.#turn);
  }
}

export function advanceWhenIdle(turn: WholeTurn): void {
  if (!turn.isOver && !turn.phase.isEndingTurn && parksForSlots(turn)) return void turn.park(undefined, true);
  const { pendingWrites } = turn;
  switch (nextIdleAction(new TurnView(turn))) {
    case "nothing":
      return;
    case "watch timers":
      if (!pendingWrites.isEmpty && !turn.writer.hasUnacknowledgedWrites) void turn.submit([]);
      if (turn.results.pending.size > 0) turn.inboxProcessor.scheduleDueTimer();
      return turn.slotPark.check();
    case "write":
      if (!pendingWrites.isEmpty) void turn.submit([]);
      return;
    case "delay park":
      if (!pendingWrites.isEmpty) void turn.submit([]);
      return turn.inboxProcessor.scheduleDueTimer();
    case "cancel":
      return endCanceled(turn, turn.state.cancelRequest?.reason ?? null);
    case "expire":
      return endExpired(turn, turn.state.timeoutFailure as Failure);
    case "record ended jobs":
      turn.phase.on({ type: "jobs ended", steps: stepsWhoseJobsEnded(turn.state) });
      return turn.handler.call();
    case "call code":
      return turn.handler.call();
    case "park":
      return parkUnlessCheckIsDue(turn);
    case "park or pause again":
      if (!pauseIfAllPendingStepsArePaused(turn)) parkUnlessCheckIsDue(turn);
  }
}

/**
 * Whether the run is to be parked because all that it waits for are slots of step limits, and it has given its waits to the run.
 * Otherwise the steps wait on, or do not start any more.
 */
function parksForSlots({ slots, slotPark, phase, isDraining }: WholeTurn): boolean {
  const isStopping = phase.isStopping && !phase.isHandingOver && !phase.ignoresHandlerResult;
  if (isDraining && !isStopping) slots.cancelAll();
  if (slotPark.isLeaving) return false;
  if (isStopping && slots.waitingCount > 0) {
    // The next owner of the run goes on waiting at the same places.
    void slotPark.leave();
    return false;
  }
  if (slotPark.canPark(isStopping)) return true;
  if (!isDraining) slots.returnAll();
  return false;
}

/** If an inbox check is due, the run is not parked now: the idle check runs again after the inbox check. */
function parkUnlessCheckIsDue(turn: WholeTurn): void {
  if (!turn.inboxProcessor.isCheckDue) void turn.park();
}

/**
 * Pauses the run again if the operator released only some of the paused steps and the code awaits only steps that are
 * still paused. Steps that the code does not await, because they now come after a paused step, are ignored even if they
 * are due.
 */
function pauseIfAllPendingStepsArePaused(turn: WholeTurn): boolean {
  const { state, pendingWrites, results } = turn;
  let pausedStep: { readonly key: string; readonly reason: string; readonly error: Failure | null } | null = null;
  for (const key of results.pending.keys()) {
    const op = state.ops.get(key);
    if (op?.kind !== "step" || op.pauseCause === null) return false;
    pausedStep ??= { key, ...op.pauseCause };
  }
  if (pausedStep === null) return false;
  // The pending writes may change the state, so they are committed first and the idle check runs again.
  if (!pendingWrites.isEmpty) void turn.submit([]).then(() => turn.scheduleIdleCheck());
  else turn.pauseWithError(pausedStep.reason, pausedStep.error, pausedStep.key);
  return true;
}

/**
 * Whether a pending event may lead to a match of a signal with a wait, once it is in the log: a new wait may match a
 * signal that arrived before it, and a wait that lost a race returns the signal that it received, which another wait may
 * match.
 */
function hasSignalForPendingWait({ state, pendingWrites }: WholeTurn): boolean {
  return pendingWrites.events.some(({ type, node }) => {
    if (type === "wait.started") return state.pendingSignals.length > 0;
    const withdrawnOp = type === "wait.withdrawn" ? state.ops.get(node as string) : undefined;
    return withdrawnOp?.kind === "wait" && withdrawnOp.phase === "completed";
  });
}

/** If steps must be compensated, the code is called first, because it defines the compensations; no other step starts. */
function endCanceled(turn: WholeTurn, reason: string | null): void {
  if (turn.state.cancelRequest?.force === true) return void cancelWithoutCompensation(turn, reason);
  const mustCompensate = openCompensations(turn.state).length > 0;
  if (mustCompensate && !turn.phase.hasCalledCode) return turn.handler.call();
  if (mustCompensate && (turn.results.isDelivering || turn.phase.isUnwinding)) return waitForCompensation(turn);
  pauseRunOnError(turn, () => cancelRun(turn, reason));
}

/**
 * Ends a run that timed out. If steps must be compensated, the code is called first, because it defines the
 * compensations.
 */
export function endExpired(turn: WholeTurn, error: Failure): void {
  if (turn.phase.isUnwinding) return waitForCompensation(turn);
  if (!turn.phase.hasCalledCode) {
    if (openCompensations(turn.state).length > 0) return turn.handler.call();
    turn.handler.skip();
  }
  pauseRunOnError(turn, () => failRun(turn, reviveFailure(error)));
}

/** Parks the run while a compensation or onFailure waits for its retry. */
function waitForCompensation(turn: WholeTurn): void {
  const { results, phase, attempts } = turn;
  if (!phase.isUnwinding || results.isDelivering) return;
  const isCompensationOrLastStep = (key: string) => isCompensation(key) || key === phase.lastStep;
  const awaited = [...results.pending.keys()].filter(isCompensationOrLastStep);
  // After the grace period of a cancel, the turn waits for no body, but a compensation must not be parked while it runs: it
  // has no due time, so no worker would ever continue it.
  if (awaited.length > 0 && !awaited.some((key) => attempts.has(key))) void turn.park();
}

/**
 * Whether the code must be called. After a worker died, it always is, because the results that it had seen are unknown.
 */
export function hasWorkForCode(turn: WholeTurn): boolean {
  return turn.deliveries > 1 || shouldRunCode(turn.state, turn.run.waiting, turn.storeNow());
}
