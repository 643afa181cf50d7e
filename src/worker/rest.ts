/** A turn comes to rest: the code has had its say for now. What it left is written, and the run parked if there is nothing but waiting left to do. */
import { isCompensation, openCompensations } from "../core/compensation.js";
import { type Failure, reviveFailure } from "../core/failure.js";
import { cancel, fail } from "./ending.js";
import { isNewsForCode } from "./parking.js";
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
  // Its receipt stirs again, and then the state knows what is in it.
  if (journal.unsettled) return;
  if (state.cancel !== null && state.paused === null) return restCanceled(turn, state.cancel.reason);
  if (state.expired !== null && state.paused === null && !(turn.codeRuns && answers.delivering))
    return endExpired(turn, state.expired);
  if (state.paused !== null || course.cutShort) return void turn.park();
  // News may have come after the turn began: it is looked for until the run is really let go of.
  if (!turn.codeRuns) return hasWorkForCode(turn) ? turn.runCode() : void turn.park();
  if (answers.delivering) return;
  const waits = answers.pending.size > 0;
  const lingers = waits && turn.linger.isWorthIt(state, outbox);
  if (waits && !lingers && !signalIsThere(turn)) return void turn.park();
  if (!outbox.empty) void turn.submit([]);
  if (lingers) attention.setAlarm();
}

/** A wait that is about to begin may be for a signal that came before it: it is decided as soon as the wait is in the log. */
function signalIsThere({ state, outbox }: Turn): boolean {
  const opensWait = outbox.events.some((one) => one.type === "wait.started");
  const givesBack = outbox.events.some((one) => one.type === "wait.withdrawn");
  return opensWait && (state.signals.length > 0 || givesBack);
}

/** Only its code knows how to undo what it has done: it is run once more for that, and begins nothing new. */
function restCanceled(turn: Turn, reason: string | null): void {
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
export function hasWorkForCode({ deliveries, run, state, journal }: Turn): boolean {
  return deliveries > 1 || isNewsForCode(run, state, journal.storeNow());
}
