/**
 * Decides which events follow from a run's state, the commands that the run has received, and the time. `decide` is a pure
 * function without I/O.
 *
 * The worker that owns a run calls `decide` for all messages of the run's inbox at once; a client calls it for one command
 * to a run that no worker owns. So a command has the same effect in both cases, and the client does not need the workflow's
 * code.
 */

import { InvalidStateError } from "../errors/errors.js";
import type { ReceivedCommand } from "./command.js";
import { recordBlocked } from "./decide-blocked.js";
import { collectMapChildEnds, recordChildEnd, recordEndedMapChildren, recordNodeEnd } from "./decide-children.js";
import {
  cancelRun,
  cancelUnstarted,
  importDag,
  moveToStep,
  pauseRun,
  reattemptNode,
  resumeRun,
  skipStep,
} from "./decide-operator.js";
import { queueStart } from "./decide-queued-starts.js";
import { matchWaits, receiveSignal, resumeIfSignalled } from "./decide-signals.js";
import { fireDueTimers } from "./decide-time.js";
import { Decision } from "./decision.js";
import { type NewEvent, newEvent } from "./event.js";
import { applyLimitFull } from "./full-limit.js";
import { type RunState, statusOf } from "./state.js";
import type { Command } from "./stored-schema.js";

/**
 * Applies the commands in the order in which they were received, completes waits whose signals have arrived, and fires
 * timers.
 *
 * @param nextSeq the number that the first of the returned events will have
 * @param withdrawnKeys the keys of waits and timers whose withdrawal is being written before the returned events. In the
 * state they are still open, but they must not consume signals or fire.
 * @param isExecuting whether the body of a step is running. The start of an attempt is not in the log at once, so in the
 * state such a step may still wait for its next attempt.
 */
export function decide(
  state: RunState,
  commands: readonly ReceivedCommand[],
  now: number,
  nextSeq = state.seq + 1,
  withdrawnKeys: ReadonlySet<string> | null = null,
  isExecuting: (key: string) => boolean = () => false,
): NewEvent[] {
  const decision = new Decision(state, nextSeq, withdrawnKeys, isExecuting);
  matchWaits(decision);
  resumeIfSignalled(decision);
  for (const { command, at, strict, isUnowned } of commands) {
    fireDueTimers(decision, at);
    try {
      applyAuditedCommand(decision, command, isUnowned ?? false);
    } catch (error) {
      if (strict || !(error instanceof InvalidStateError)) throw error;
    }
  }
  recordEndedMapChildren(decision);
  fireDueTimers(decision, now);
  return decision.events;
}

/**
 * Records who gave the command, before its effect. A command without an effect, such as a second cancel or a repeated
 * signal, is not recorded. A start has an effect although it writes no event of its own: it makes the run due.
 */
function applyAuditedCommand(decision: Decision, command: Command, isUnowned: boolean): void {
  const { audit, type } = command;
  if (audit === undefined) return applyCommand(decision, command, isUnowned);
  const { events } = decision;
  const eventCount = events.length;
  events.push(newEvent("command.accepted", {}, { command: type, ...audit }));
  let isApplied = false;
  try {
    applyCommand(decision, command, isUnowned);
    isApplied = true;
  } finally {
    const hasEffect = events.length > eventCount + 1 || (isApplied && type === "start");
    if (!hasEffect) events.pop();
  }
}

function applyCommand(decision: Decision, command: Command, isUnowned: boolean): void {
  if (decision.isEnded) return refuseForEndedRun(decision, command);
  switch (command.type) {
    case "signal":
      return receiveSignal(decision, command);
    case "pause":
      return pauseRun(decision, command.reason);
    case "resume":
      return resumeRun(decision, command, isUnowned);
    case "resumeAt":
      return moveToStep(decision, command.step);
    case "skip":
      return skipStep(decision, isUnowned);
    case "cancel":
      return cancelRun(decision, command);
    case "start":
      if (decision.state.startedAt === null) return;
      throw new InvalidStateError("The run has been started already.");
    case "queueStart":
      return queueStart(decision, command);
    case "startOverdue":
      return isUnowned ? cancelUnstarted(decision, command.startBy) : undefined;
    case "limitFull":
      return applyLimitFull(decision, command);
    case "reattempt":
      return reattemptNode(decision, command);
    case "import":
      return importDag(decision, command.dag);
    case "jobGone":
      // Only the owner of the run acts on this command, because it must first read whether a worker has the job.
      return;
    case "child":
      return recordChildEnd(decision, command);
    case "children":
      return collectMapChildEnds(decision, command);
    case "blocked":
      return recordBlocked(decision, command);
    case "nodes":
      for (const result of command.results) recordNodeEnd(decision, result);
      return;
    default:
      // The compiler requires a case for every command, because a command without a case would be deleted without an
      // effect.
      command satisfies never;
  }
}

/**
 * Throws, because a run that has ended never changes. Only a second cancel of a canceled run is accepted, without an
 * effect.
 */
function refuseForEndedRun(decision: Decision, command: Command): void {
  const status = statusOf(decision.state);
  if (command.type === "cancel" && status === "canceled") return;
  throw new InvalidStateError(`The run is ${status} and cannot take "${command.type}".`);
}
