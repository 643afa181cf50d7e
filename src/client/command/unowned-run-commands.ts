/**
 * Applies commands to a run that no worker owns: the client computes the events from the log and commits them itself.
 *
 * The client reads the log first, and the store refuses the commit unless the log still ends at the same event. The rows
 * that are read after the log therefore belong to the same state, because every commit that changes the rows of a started
 * run also appends an event. The exception is the start time of a run that has not started: its parent changes it without an
 * event, so a client never overwrites it.
 */

import type { Failure } from "../../core/encoding/error-record.js";
import { DamagedDataError, InvalidStateError, RunChangedError } from "../../core/errors/errors.js";
import { withAncestryHashes as addAncestryHashes } from "../../core/graph/ancestry-hash.js";
import { cancelChildren, cancelUnawaitedChildren, hasOpenChildren } from "../../core/run/cancel-children.js";
import { cancelData, cancelFailure } from "../../core/run/cancel-reason.js";
import type { ReceivedCommand } from "../../core/run/command.js";
import { openCompensations } from "../../core/run/compensation.js";
import { decide } from "../../core/run/decide.js";
import { dataOf, type NewEvent, newEvent } from "../../core/run/event.js";
import { finishRun } from "../../core/run/finish.js";
import { evolve, fold, foldBeforeDamage } from "../../core/run/fold.js";
import type { Message } from "../../core/run/message.js";
import { parkByClient, parkNotStarted } from "../../core/run/park.js";
import type { RunState } from "../../core/run/state.js";
import type { Command } from "../../core/run/stored-schema.js";
import { isTerminalEvent } from "../../core/run/terminal-event.js";
import { createTransition, emptyList } from "../../core/run/transition.js";
import type { Logger } from "../../define/context.js";
import type { Runtime } from "../../runtime/runtime.js";
import type { Batch, CursorWrite, NextTaskState, RunRecord, Store } from "../../store/contract/store.js";
import { logPause, publishCommit } from "../../telemetry/publish.js";
import type { RunTally } from "../../telemetry/run-tally.js";
import { readParents } from "../inspect/run-graph.js";
import { withSlotRelease } from "./held-slots.js";
import { handOverQueue, isBusy, type QueueHandover } from "./queue-handover.js";

export interface CommandServices {
  readonly runtime: Runtime;
  readonly store: Store;
  readonly log: Logger;
  readonly tally: RunTally;
}

/**
 * "lost race": a worker claimed the run, or another process wrote to it, between the client's reads and its commit, so
 * nothing was written. "lost race before it began": the same for a run that has not started.
 */
export type CommandOutcome = "done" | "lost race" | "lost race before it began";

export async function applyCommands(
  { store, log, tally }: CommandServices,
  runId: string,
  commands: readonly Command[],
  expectedLastEvent: number | null = null,
): Promise<CommandOutcome> {
  const [command] = commands as [Command];
  const { state, isDamaged } = await readState(store, runId, command);
  // The commit is refused if the log grows after this read, so the comparison is exact.
  if (expectedLastEvent !== null && state.seq !== expectedLastEvent)
    throw new RunChangedError({ runId, lastEvent: state.seq, expectedLastEvent });
  const isForced = command.type === "cancel" && (command.force === true || isDamaged);
  const [run, [task], now] = await Promise.all([store.run(runId), store.tasks([runId]), store.now()]);
  const lostRace: CommandOutcome = state.startedAt === null ? "lost race before it began" : "lost race";
  if (run === null || task === undefined || isBusy(task)) return lostRace;
  const { seq: lastSeq, paused: pausedBefore } = state;
  const needsCompensation = openCompensations(state).length > 0;
  const receivedCommands = commands.map(
    (command): ReceivedCommand => ({ command, at: now, strict: true, isUnowned: true }),
  );
  // A run that exceeded its time limit and has steps to compensate does not end here, because only a worker can compensate.
  const decidedEvents = decide(state, receivedCommands, now).filter(
    ({ type }) => !needsCompensation || type !== "run.failed",
  );
  const events = await withAncestryHashes(store, run, state, decidedEvents);
  if (command.type === "start" && task.dueAt !== null)
    throw new InvalidStateError(`Run ${runId} has been started already.`, { runId, status: run.status });
  if (events.length === 0 && command.type !== "start") return "done";
  const cancelMessages = isForced ? cancelChildren(run.id, state) : cancelUnawaitedChildren(run.id, state, events);
  const isCanceled = events.some(({ type }) => type === "run.cancel_requested");
  if (isCanceled && (isForced || (!hasOpenChildren(state) && !needsCompensation)))
    events.push(canceledEvent(command, events));
  for (const event of events) evolve(state, { ...event, seq: state.seq + 1, at: now });
  const { next, messages } = nextAndMessages(run, state, events, {
    isStarted: command.type === "start",
    deliveries: task.deliveries,
    afterSeq: lastSeq,
    cancelMessages,
  });
  const release = await withSlotRelease({ store, log }, { run, task, next });
  const handover = state.ending === null ? noHandover : await handOverQueue(store, run, state, now);
  if (handover === null) return lostRace;
  const eventsToWrite = events.filter((event) => !isTerminalEvent(event));
  const cursors = state.stepStructure !== null ? cursorResets(eventsToWrite) : emptyList;
  const transition = createTransition(run.id, lastSeq, {
    events: eventsToWrite,
    next: release.next,
    messages: handover.messages.length === 0 ? messages : [...messages, ...handover.messages],
    cursors,
  });
  try {
    const { transitions, keyChange } = handover;
    const batch: Batch = { fence: null, transitions: [transition, ...transitions], starts: [] };
    const result = await store.commit(keyChange === undefined ? batch : { ...batch, keyChange });
    if (result.kind !== "committed") return lostRace;
    await release.announce();
    publishCommit(log, run, { ...transition, at: result.at });
    tally.record(run.workflow, { ...transition, at: result.at });
    if (state.paused !== null && state.paused !== pausedBefore) logPause(log, run, state.paused);
    return "done";
  } catch (error) {
    if (!(await wasWritten(store, run.id, lastSeq, eventsToWrite))) throw error;
    await release.announce();
    return "done";
  }
}

const noHandover: QueueHandover = { messages: emptyList, transitions: emptyList };

/**
 * Folds the log. If the log is damaged, only a cancel is possible: it uses the events before the damage. No step is then
 * compensated, because the list of completed steps may be incomplete, and only the children in those events are canceled.
 */
async function readState(
  store: Store,
  runId: string,
  command: Command,
): Promise<{ readonly state: RunState; readonly isDamaged: boolean }> {
  const log = (await store.logs([runId])).get(runId) ?? [];
  try {
    return { state: fold(log), isDamaged: false };
  } catch (error) {
    if (command.type !== "cancel")
      throw error instanceof DamagedDataError ? error.ofRun(runId, damagedLogAdvice) : error;
    const [row] = await store.maintenance.audit.runsById([runId]);
    return { state: foldBeforeDamage(log, row?.lastEventSeq ?? 0), isDamaged: true };
  }
}

const damagedLogAdvice = "Restore what is missing and resume(), or end the run with cancel().";

/** Adds the ancestry hash of a step whose output an operator gave in `resume({ output })`. */
async function withAncestryHashes(
  store: Store,
  run: RunRecord,
  state: RunState,
  events: NewEvent[],
): Promise<NewEvent[]> {
  if (state.stepStructure === null || !events.some(({ type }) => type === "step.completed")) return events;
  return addAncestryHashes(events, state, await readParents(store, run, state));
}

/** Deletes the cursors of skipped steps, so that such a step starts from its beginning if the run returns to it. */
function cursorResets(events: readonly NewEvent[]): CursorWrite[] {
  return events.flatMap(({ type, node }) => (type === "step.skipped" && node !== null ? [{ node, cursor: null }] : []));
}

function canceledEvent(command: Command, events: readonly NewEvent[]): NewEvent {
  if (command.type === "cancel") return newEvent("run.canceled", {}, cancelData(command.reason, null));
  const request = events.find(({ type }) => type === "run.cancel_requested") as NewEvent;
  const { reason = null, code } = dataOf(request, "run.cancel_requested");
  return newEvent("run.canceled", {}, cancelData(reason, code));
}

/** After a failed commit: whether the events were written and only the reply was lost. */
async function wasWritten(store: Store, runId: string, lastSeq: number, events: readonly NewEvent[]): Promise<boolean> {
  const writtenEvents = await store.log(runId, { after: lastSeq, limit: events.length });
  return (
    writtenEvents.length === events.length &&
    events.every(
      (event, index) => writtenEvents[index]?.type === event.type && writtenEvents[index]?.data === event.data,
    )
  );
}

function nextAndMessages(
  run: RunRecord,
  state: RunState,
  events: readonly NewEvent[],
  {
    isStarted,
    deliveries,
    afterSeq,
    cancelMessages,
  }: {
    readonly isStarted: boolean;
    readonly deliveries: number;
    readonly afterSeq: number;
    readonly cancelMessages: readonly Message[];
  },
): { readonly next: NextTaskState; readonly messages: readonly Message[] } {
  if (state.ending !== null) {
    const { status } = state.ending;
    const end = { status, output: null, error: failureOf(status, events) };
    return finishRun(run, end, state.startedAt, cancelMessages);
  }
  const next =
    state.startedAt === null
      ? parkNotStarted(state, isStarted, run.waiting)
      : parkByClient(state, { waiting: run.waiting, deliveries, afterSeq });
  return { next, messages: cancelMessages };
}

function failureOf(status: string, events: readonly NewEvent[]): Failure | null {
  const last = events.at(-1) as NewEvent;
  if (status === "failed") return dataOf(last, "run.failed").error;
  const { reason = null, code } = dataOf(last, "run.canceled");
  return cancelFailure(reason, code);
}
