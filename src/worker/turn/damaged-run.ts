/**
 * A run whose log cannot be folded is paused with the reason, or ended if its inbox contains a cancel. The pause is
 * appended to the damaged log, together with the received messages, so that an operator can restore the missing rows and
 * resume the run.
 */

import { type Failure, toFailure } from "../../core/encoding/error-record.js";
import { DamagedDataError } from "../../core/errors/errors.js";
import { cancelChildren } from "../../core/run/cancel-children.js";
import { decide } from "../../core/run/decide.js";
import { startQueuedRuns } from "../../core/run/decide-queued-starts.js";
import { type NewEvent, newEvent } from "../../core/run/event.js";
import { finishRun } from "../../core/run/finish.js";
import { foldBeforeDamage } from "../../core/run/fold.js";
import { decodeMessage } from "../../core/run/message.js";
import { writePauseNote } from "../../core/run/parking-note.js";
import type { RunState } from "../../core/run/state.js";
import type { Command } from "../../core/run/stored-schema.js";
import { createTransition } from "../../core/run/transition.js";
import type { InboxRow, Transition } from "../../store/contract/store.js";
import type { TurnSnapshot } from "./turn-host.js";

export interface DamagedRun {
  readonly transition: Transition;
  readonly reason: string;
}

/** @param lastSeq the highest sequence number among the stored events of the run; the pause is appended after it */
export function damagedRun({ run, log, inbox, claimedAt }: TurnSnapshot, lastSeq: number, thrown: unknown): DamagedRun {
  const error = thrown instanceof DamagedDataError ? thrown.ofRun(run.id) : thrown;
  const failure = toFailure(error);
  const reason = failure.message;
  const state = foldBeforeDamage(log, lastSeq);
  const commands = inbox.flatMap(decodeReadable);
  const events = eventsToKeep(state, commands);
  const drainedInboxIds = inbox.map(({ id }) => id);
  const cancelCommand = commands.find(({ type }) => type === "cancel");
  if (cancelCommand?.type === "cancel") {
    const cancelError: Failure | null =
      cancelCommand.reason === null ? null : { name: "RunCanceledError", message: cancelCommand.reason };
    const data = { ...(cancelCommand.reason === null ? {} : { reason: cancelCommand.reason }), force: true as const };
    const end = { status: "canceled", output: null, error: cancelError } as const;
    const eventsWithCancel = [...events, newEvent("run.cancel_requested", {}, data)];
    return {
      transition: createTransition(run.id, lastSeq, {
        events: eventsWithCancel,
        drainedInboxIds,
        ...finishRun(run, end, state.startedAt, [...cancelChildren(run.id, state), ...startQueuedRuns(state)]),
      }),
      reason,
    };
  }
  events.push(newEvent("run.paused", {}, { reason, error: failure }));
  // A worker claimed the run, so its start time has passed. This event lets the run start as soon as it is resumed.
  if (state.startedAt === null) events.push(newEvent("run.became_due", {}));
  const pauseNote = writePauseNote(reason, claimedAt);
  const next = {
    kind: "park",
    status: "paused",
    waiting: pauseNote,
    startedAt: null,
    wakeAt: null,
    wakeInMs: null,
  } as const;
  return { transition: createTransition(run.id, lastSeq, { events, next, drainedInboxIds }), reason };
}

/** The transition that pauses a run whose writes the store refused. */
export function unwritableRun(runId: string, after: number, error: unknown, waiting: string | null): Transition {
  const failure = toFailure(error);
  // `run.became_due` lets a run that has not started yet start when it is resumed: it was claimed, so it was due.
  const events = [
    newEvent("run.paused", {}, { reason: failure.message, error: failure }),
    newEvent("run.became_due", {}),
  ];
  const parkFields = { status: "paused", waiting, startedAt: null, wakeAt: null, wakeInMs: null } as const;
  return createTransition(runId, after, { events, next: { kind: "park", ...parkFields } });
}

function decodeReadable(row: InboxRow): Command[] {
  try {
    const command = decodeMessage(row);
    return command === null ? [] : [command];
  } catch {
    return [];
  }
}

const childCommandTypes = new Set<Command["type"]>(["child", "children", "nodes"]);

/**
 * Creates the events that record the received signals and results of children. Signals are not matched with waits,
 * because the damaged part of the log may already contain the events that the match would lead to.
 */
function eventsToKeep(state: RunState, commands: readonly Command[]): NewEvent[] {
  const fromChildren = commands.filter(({ type }) => childCommandTypes.has(type));
  const receivedCommands = fromChildren.map((command) => ({ command, at: 0, strict: false }));
  const events =
    receivedCommands.length === 0 ? [] : decide({ ...state, pendingSignals: [], paused: null }, receivedCommands, 0);
  for (const command of commands) {
    if (command.type !== "signal") continue;
    const { name, payload, key } = command;
    if (key !== null && state.signalKeys?.has(key)) continue;
    events.push(newEvent("signal.received", {}, key === null ? { name } : { name, key }, { payload }));
  }
  return events;
}
