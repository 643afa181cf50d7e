/** A turn comes to rest: the code has had its say for now. What it left is written, and the run parked if there is nothing but waiting left to do. */

import { type Failure, reviveFailure } from "../../core/encoding/error-record.js";
import { isCompensation, openCompensations } from "../../core/run/compensation.js";
import { stepsWhoseJobsEnded } from "../../core/run/job-runs.js";
import { isNewsForCode } from "../../core/run/park.js";
import { cancel, cancelAtOnce, fail } from "./handler-end.js";
import type { Turn } from "./turn.js";
import { pauseIfItFails } from "./user-code.js";

export function comeToRest(turn: Turn): void {
  const { state, course, journal, outbox, answers, attention } = turn;
  if (turn.over || course.leaving) return;
  if (course.halted) turn.lines.leaveAll();
  if (turn.executions.busy || turn.lines.waiting > 0 || attention.busy) {
    if (!outbox.empty && !journal.unsettled) void turn.submit([]);
    if (answers.pending.size > 0) attention.setAlarm();
    return;
  }
  // They begin, or the run is paused: in either case it is not parked now.
  if (turn.holdsCalls && !course.halted) return outbox.empty ? undefined : void turn.submit([]);
  // Its receipt stirs again, and then the state knows what is in it.
  if (journal.unsettled) return;
  if (state.cancel !== null && state.paused === null) return restCanceled(turn, state.cancel.reason);
  if (state.expired !== null && state.paused === null && !(turn.codeRuns && answers.delivering))
    return endExpired(turn, state.expired);
  if (state.paused !== null && settlesJobs(turn)) return turn.runCode();
  if (course.settling !== null && answers.delivering) return;
  if (state.paused !== null || course.cutShort) return parkUnlessLookIsDue(turn);
  // News may have come after the turn began: it is looked for until the run is really let go of.
  if (!turn.codeRuns) return hasWorkForCode(turn) ? turn.runCode() : void turn.park();
  if (answers.delivering) return;
  const waits = answers.pending.size > 0;
  const lingers = waits && turn.linger.isWorthIt(state, outbox);
  if (waits && !lingers && !signalIsThere(turn)) return pauseAgain(turn) ? undefined : parkUnlessLookIsDue(turn);
  if (!outbox.empty) void turn.submit([]);
  if (lingers) attention.setAlarm();
}

/** The end of the look stirs the turn again. */
function parkUnlessLookIsDue(turn: Turn): void {
  if (!turn.attention.lookIsDue) void turn.park();
}

/**
 * What runs when a run is paused may finish, and its end is recorded. The job of a class's step runs elsewhere: when it has
 * ended, only the class's code knows what that means for the step.
 */
function settlesJobs({ codeRuns, deliveries, state, course }: Turn): boolean {
  if (codeRuns || deliveries > 1 || state.cancel !== null || course.stopping) return false;
  const ended = stepsWhoseJobsEnded(state);
  if (ended.size === 0) return false;
  course.settling = ended;
  return true;
}

/**
 * Only some of the steps that the run was paused at were released, and the code asks for nothing else: the run is paused at the
 * others. What it does not ask for (a step that now comes after one that is held) counts for nothing, although it may be due.
 */
function pauseAgain(turn: Turn): boolean {
  const { state, outbox, answers } = turn;
  let stuck: { readonly key: string; readonly reason: string; readonly error: Failure | null } | null = null;
  for (const key of answers.pending.keys()) {
    const op = state.ops.get(key);
    if (op?.kind !== "step" || op.held === null) return false;
    stuck ??= { key, ...op.held };
  }
  if (stuck === null) return false;
  // What is in there may be no more than a word about changed code: the state has to know it first.
  if (!outbox.empty) void turn.submit([]).then(() => turn.stir());
  else turn.hold(stuck.reason, stuck.error, stuck.key);
  return true;
}

/**
 * A wait that is about to begin may be for a signal that came before it, and a wait that lost a race gives back the signal
 * that it had taken, perhaps to a wait that is open. That is decided as soon as it is in the log.
 */
function signalIsThere({ state, outbox }: Turn): boolean {
  return outbox.events.some(({ type, node }) => {
    if (type === "wait.started") return state.signals.length > 0;
    const lost = type === "wait.withdrawn" ? state.ops.get(node as string) : undefined;
    return lost?.kind === "wait" && lost.phase === "completed";
  });
}

/** Only its code knows how to undo what it has done: it is run once more for that, and begins nothing new. */
function restCanceled(turn: Turn, reason: string | null): void {
  if (turn.state.cancel?.force === true) return void cancelAtOnce(turn, reason);
  const mustUndo = openCompensations(turn.state).length > 0;
  if (mustUndo && !turn.codeRuns) return turn.runCode();
  if (mustUndo && (turn.answers.delivering || turn.course.undoing)) return waitForUndoing(turn);
  pauseIfItFails(turn, () => cancel(turn, reason));
}

/** The time limit of the run has passed: what it did is undone, which only its code knows how to, and onFailure is called. */
export function endExpired(turn: Turn, error: Failure): void {
  if (turn.course.undoing || turn.course.failing) return waitForUndoing(turn);
  if (!turn.codeRuns) {
    if (openCompensations(turn.state).length > 0) return turn.runCode();
    turn.skipCode();
  }
  pauseIfItFails(turn, () => fail(turn, reviveFailure(error)));
}

/** Undoing, and onFailure, may have to wait for their next attempt. */
function waitForUndoing(turn: Turn): void {
  const { answers, course } = turn;
  if (!(course.undoing || course.failing) || answers.delivering) return;
  const isLast = (key: string) => isCompensation(key) || key === course.lastStep;
  if ([...answers.pending.keys()].some(isLast)) void turn.park();
}

/** After a death nobody knows what the code had seen. */
export function hasWorkForCode(turn: Turn): boolean {
  return turn.deliveries > 1 || isNewsForCode(turn.state, turn.run.waiting, turn.storeNow());
}
