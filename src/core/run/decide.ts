/**
 * What happens to a run next, given what has happened and what is asked of it. Pure: data in, events out.
 *
 * The owner of a run decides about everything in its inbox at once; a client decides about one command on a run that
 * no worker owns. Both come here, so both mean the same. No workflow code is needed: the state is data.
 */

import { InvalidStateError } from "../errors/errors.js";
import type { Received } from "./command.js";
import { recordBlocked } from "./decide-blocked.js";
import { childEnded, childrenEnded, nodeEnded, settleMaps } from "./decide-children.js";
import { cancelRun, importDag, moveToStep, pauseRun, reattemptNode, resumeRun, skipStep } from "./decide-operator.js";
import { matchWaits, receiveSignal, resumeIfSignalled } from "./decide-signals.js";
import { passTime } from "./decide-time.js";
import { Decision } from "./decision.js";
import type { NewEvent } from "./event.js";
import { type RunState, statusOf } from "./state.js";
import type { Command } from "./stored-schema.js";

/**
 * Decides about messages in the order they came, about waits that can be satisfied and about time that has passed.
 * `nextSeq` is the number that the first of the returned events will have. `withdrawing` are waits and timers whose
 * withdrawal is on its way into the log, before these events: the state still has them open, and they must take nothing.
 */
export function decide(
  state: RunState,
  received: readonly Received[],
  now: number,
  nextSeq = state.seq + 1,
  withdrawing: ReadonlySet<string> | null = null,
): NewEvent[] {
  const decision = new Decision(state, nextSeq, withdrawing);
  matchWaits(decision);
  resumeIfSignalled(decision);
  for (const { command, at, strict, idle } of received) {
    passTime(decision, at);
    try {
      obey(decision, command, idle ?? false);
    } catch (error) {
      if (strict || !(error instanceof InvalidStateError)) throw error;
    }
  }
  settleMaps(decision);
  passTime(decision, now);
  return decision.events;
}

function obey(decision: Decision, command: Command, idle: boolean): void {
  if (decision.ended) return refuseAfterTheEnd(decision, command);
  switch (command.type) {
    case "signal":
      return receiveSignal(decision, command);
    case "pause":
      return pauseRun(decision, command.reason);
    case "resume":
      return resumeRun(decision, command, idle);
    case "resumeAt":
      return moveToStep(decision, command.step);
    case "skip":
      return skipStep(decision, idle);
    case "cancel":
      return cancelRun(decision, command);
    case "start":
      if (decision.state.startedAt === null) return;
      throw new InvalidStateError("The run has been started already.");
    case "reattempt":
      return reattemptNode(decision, command);
    case "import":
      return importDag(decision, command.dag);
    case "jobGone":
      return;
    case "child":
      return childEnded(decision, command);
    case "children":
      return childrenEnded(decision, command);
    case "blocked":
      return recordBlocked(decision, command);
    case "nodes":
      for (const result of command.results) nodeEnded(decision, result);
      return;
    default:
      // A command without a case would be taken out of the inbox and forgotten: the compiler asks for one.
      command satisfies never;
  }
}

/** A terminal run never changes; only cancelling what is canceled is taken as said already. */
function refuseAfterTheEnd(decision: Decision, command: Command): void {
  const status = statusOf(decision.state);
  if (command.type === "cancel" && status === "canceled") return;
  throw new InvalidStateError(`The run is ${status} and cannot take "${command.type}".`);
}
