/**
 * The idle check: what a turn does when its code, and all that is under way, has had its say for now. What is left to do is
 * one value (`nextMove`), told from the phase of the turn and the state of the run; then it is done.
 */
import { type Failure, reviveFailure } from "../../core/encoding/error-record.js";
import { isCompensation, openCompensations } from "../../core/run/compensation.js";
import { stepsWhoseJobsEnded } from "../../core/run/job-runs.js";
import { shouldRunCode } from "../../core/run/park.js";
import { cancelRun, cancelWithoutCompensation, failRun } from "./handler-end.js";
import type { WholeTurn } from "./ports.js";
import { pauseRunOnError } from "./user-code.js";

/** The facts that decide what comes next. They are asked for in this order, and only as far as they are needed. */
export interface IdleView {
  /** The run is being let go of, or is not ours any more. */
  readonly isEndingTurn: boolean;
  /** A body runs, a step waits for a place, or the inbox is being read: the end of that asks again. */
  readonly isBusy: boolean;
  /** Calls wait until the code has come to everything that its log has, and may still begin. */
  readonly hasGatedCalls: boolean;
  /** Something is on its way into the log: its receipt asks again, and then the state knows what is in it. */
  readonly isWriting: boolean;
  readonly isPaused: boolean;
  readonly isCanceled: boolean;
  readonly isExpired: boolean;
  /** Answers are being handed to the code. */
  readonly isDelivering: boolean;
  readonly hasCalledCode: boolean;
  /** The run is paused, and only its code knows what the end of a job means for the step that it was for. */
  readonly mustRecordEndedJobs: boolean;
  readonly isRecordingEndedJobs: boolean;
  /** The code was stopped in the middle. */
  readonly isInterrupted: boolean;
  readonly hasWorkForCode: boolean;
  /** The code waits for something. */
  readonly isWaiting: boolean;
  /** More messages are to be expected soon: reading the log again would cost more than waiting for them. */
  readonly shouldDelayPark: boolean;
  /** What the code is about to wait for is there. */
  readonly hasMatchingSignal: boolean;
}

export type IdleAction =
  /** Something is under way whose end asks again. */
  | "nothing"
  /** Write what is there, and watch the clock, while bodies run. */
  | "watch"
  | "write"
  /** The same, and stay with the run for a moment. */
  | "linger"
  | "cancel"
  | "expire"
  | "settle jobs"
  | "call code"
  | "park"
  /** The code only waits: park, or pause again if all that it waits for are steps that an operator has to release. */
  | "park waiting";

export function nextIdleAction(view: IdleView): IdleAction {
  if (view.isEndingTurn) return "nothing";
  if (view.isBusy) return "watch";
  // They begin, or the run is paused: in either case it is not parked now.
  if (view.hasGatedCalls) return "write";
  if (view.isWriting) return "nothing";
  const { isPaused } = view;
  if (view.isCanceled && !isPaused) return "cancel";
  if (view.isExpired && !isPaused && !(view.hasCalledCode && view.isDelivering)) return "expire";
  if (isPaused && view.mustRecordEndedJobs) return "settle jobs";
  if (view.isRecordingEndedJobs && view.isDelivering) return "nothing";
  if (isPaused || view.isInterrupted) return "park";
  // News may have come after the turn began: it is looked for until the run is really let go of.
  if (!view.hasCalledCode) return view.hasWorkForCode ? "call code" : "park";
  if (view.isDelivering) return "nothing";
  if (!view.isWaiting) return "write";
  if (view.shouldDelayPark) return "linger";
  return view.hasMatchingSignal ? "write" : "park waiting";
}

/** What the parts of a turn say. */
class TurnView implements IdleView {
  readonly #turn: WholeTurn;

  constructor(turn: WholeTurn) {
    this.#turn = turn;
  }

  get isEndingTurn() {
    return this.#turn.isOver || this.#turn.phase.isEndingTurn;
  }

  get isBusy() {
    const { attempts, slots, inboxProcessor } = this.#turn;
    return attempts.isBusy || slots.waitingCount > 0 || inboxProcessor.isBusy;
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
  if (!turn.isOver && turn.isDraining) turn.slots.cancelAll();
  const { pendingWrites } = turn;
  switch (nextIdleAction(new TurnView(turn))) {
    case "nothing":
      return;
    case "watch":
      if (!pendingWrites.isEmpty && !turn.writer.hasUnacknowledgedWrites) void turn.submit([]);
      if (turn.results.pending.size > 0) turn.inboxProcessor.scheduleDueTimer();
      return;
    case "write":
      if (!pendingWrites.isEmpty) void turn.submit([]);
      return;
    case "linger":
      if (!pendingWrites.isEmpty) void turn.submit([]);
      return turn.inboxProcessor.scheduleDueTimer();
    case "cancel":
      return endCanceled(turn, turn.state.cancelRequest?.reason ?? null);
    case "expire":
      return endExpired(turn, turn.state.timeoutFailure as Failure);
    case "settle jobs":
      turn.phase.on({ type: "jobs ended", steps: stepsWhoseJobsEnded(turn.state) });
      return turn.handler.call();
    case "call code":
      return turn.handler.call();
    case "park":
      return parkUnlessCheckIsDue(turn);
    case "park waiting":
      if (!pauseIfAllPendingStepsArePaused(turn)) parkUnlessCheckIsDue(turn);
  }
}

/** The end of the look asks again. */
function parkUnlessCheckIsDue(turn: WholeTurn): void {
  if (!turn.inboxProcessor.isCheckDue) void turn.park();
}

/**
 * Only some of the steps that the run was paused at were released, and the code asks for nothing else: the run is paused at the
 * others. What it does not ask for (a step that now comes after one that is held) counts for nothing, although it may be due.
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
  // What is in there may be no more than a word about changed code: the state has to know it first.
  if (!pendingWrites.isEmpty) void turn.submit([]).then(() => turn.scheduleIdleCheck());
  else turn.pauseWithError(pausedStep.reason, pausedStep.error, pausedStep.key);
  return true;
}

/**
 * A wait that is about to begin may be for a signal that came before it, and a wait that lost a race gives back the signal
 * that it had taken, perhaps to a wait that is open. That is decided as soon as it is in the log.
 */
function hasSignalForPendingWait({ state, pendingWrites }: WholeTurn): boolean {
  return pendingWrites.events.some(({ type, node }) => {
    if (type === "wait.started") return state.pendingSignals.length > 0;
    const withdrawnOp = type === "wait.withdrawn" ? state.ops.get(node as string) : undefined;
    return withdrawnOp?.kind === "wait" && withdrawnOp.phase === "completed";
  });
}

/** Only its code knows how to undo what it has done: it is run once more for that, and begins nothing new. */
function endCanceled(turn: WholeTurn, reason: string | null): void {
  if (turn.state.cancelRequest?.force === true) return void cancelWithoutCompensation(turn, reason);
  const mustCompensate = openCompensations(turn.state).length > 0;
  if (mustCompensate && !turn.phase.hasCalledCode) return turn.handler.call();
  if (mustCompensate && (turn.results.isDelivering || turn.phase.isUnwinding)) return waitForCompensation(turn);
  pauseRunOnError(turn, () => cancelRun(turn, reason));
}

/** The time limit of the run has passed: what it did is undone, which only its code knows how to, and onFailure is called. */
export function endExpired(turn: WholeTurn, error: Failure): void {
  if (turn.phase.isUnwinding) return waitForCompensation(turn);
  if (!turn.phase.hasCalledCode) {
    if (openCompensations(turn.state).length > 0) return turn.handler.call();
    turn.handler.skip();
  }
  pauseRunOnError(turn, () => failRun(turn, reviveFailure(error)));
}

/** Undoing, and onFailure, may have to wait for their next attempt. */
function waitForCompensation(turn: WholeTurn): void {
  const { results, phase } = turn;
  if (!phase.isUnwinding || results.isDelivering) return;
  const isCompensationOrLastStep = (key: string) => isCompensation(key) || key === phase.lastStep;
  if ([...results.pending.keys()].some(isCompensationOrLastStep)) void turn.park();
}

/** After a death it is not known what the code had seen. */
export function hasWorkForCode(turn: WholeTurn): boolean {
  return turn.deliveries > 1 || shouldRunCode(turn.state, turn.run.waiting, turn.storeNow());
}
