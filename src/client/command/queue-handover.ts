/**
 * What happens to the runs that wait for the end of a run, when it is canceled while it waits itself: they wait for the run
 * before it from then on, and that run gets its keys back. All of it is part of the commit that ends the run, which is
 * refused if the run before it ends meanwhile.
 */
import type { ReceivedCommand } from "../../core/run/command.js";
import { decide } from "../../core/run/decide.js";
import { startQueuedRuns } from "../../core/run/decide-queued-starts.js";
import { evolve, fold } from "../../core/run/fold.js";
import { encodeMessage, type Message } from "../../core/run/message.js";
import { parkByClient, parkNotStarted } from "../../core/run/park.js";
import type { RunState } from "../../core/run/state.js";
import type { Command } from "../../core/run/stored-schema.js";
import { createTransition, emptyList } from "../../core/run/transition.js";
import type { Batch, KeyMove, RunRecord, Store, TaskRecord, Transition } from "../../store/contract/store.js";
import { findRunBefore } from "../start/start-origin.js";

/** Whether only a worker may write to the log: a worker owns the run, or its inbox has messages that must be applied first. */
export const isBusy = (task: TaskRecord): boolean => task.state === "owned" || task.pendingMessages > 0;

export interface QueueHandover extends Pick<Batch, "keyChange"> {
  /** Messages of the transition that ends the run. */
  readonly messages: readonly Message[];
  /** Transitions of other runs. */
  readonly transitions: readonly Transition[];
}

/** @param state the state of the run after its end */
export async function handOverQueue(
  store: Store,
  run: RunRecord,
  state: RunState,
  now: number,
): Promise<QueueHandover | null> {
  const before = state.startedAt === null ? await findRunBefore(store, run) : null;
  if (before === null) return { messages: startQueuedRuns(state), transitions: emptyList };
  const [task] = await store.tasks([before.id]);
  // It has ended since it was read.
  if (task === undefined) return null;
  const moves = await keysOf(store, run, before.id);
  const link = await linkQueuedRuns(store, before.id, task, state.queuedStarts ?? emptyList, now);
  return {
    ...link,
    keyChange: { openRun: { id: before.id, message: null }, moves, keylessRunId: run.id, replacement: null },
  };
}

/** The keys that the run holds. They were taken from the run before it, or from one that has passed them on. */
async function keysOf(store: Store, run: RunRecord, to: string): Promise<readonly KeyMove[]> {
  const [row] = await store.maintenance.audit.runsById([run.id]);
  const moves: KeyMove[] = [];
  if (row?.startKey != null) moves.push({ runId: run.id, key: "startKey", value: row.startKey, to });
  if (row?.heroKey != null) moves.push({ runId: run.id, key: "heroKey", value: row.heroKey, to });
  return moves;
}

/** A message would make a run begin that waits itself, so a run without an owner gets the events that it would lead to. */
async function linkQueuedRuns(
  store: Store,
  before: string,
  task: TaskRecord,
  queuedRuns: readonly string[],
  now: number,
): Promise<Omit<QueueHandover, "keyChange">> {
  const commands = queuedRuns.map((run): QueueStart => ({ type: "queueStart", run }));
  const transition = commands.length === 0 || isBusy(task) ? null : await queueTransition(store, before, commands, now);
  if (transition !== null) return { messages: emptyList, transitions: [transition] };
  return { messages: commands.map((command) => encodeMessage(before, command)), transitions: emptyList };
}

export type QueueStart = Extract<Command, { type: "queueStart" }>;

/**
 * The transition of a run that no worker owns, and whose inbox is empty, that records which runs wait for its end. null if
 * the run does not exist.
 */
export async function queueTransition(
  store: Store,
  runId: string,
  commands: readonly QueueStart[],
  now: number,
): Promise<Transition | null> {
  const state = fold((await store.logs([runId])).get(runId) ?? []);
  // Read after the log, so that it belongs to the same state if the commit finds the log unchanged.
  const [row, [task]] = await Promise.all([store.run(runId), store.tasks([runId])]);
  if (row === null) return null;
  const received = commands.map((command): ReceivedCommand => ({ command, at: now, strict: true, isUnowned: true }));
  const afterSeq = state.seq;
  const events = decide(state, received, now);
  for (const event of events) evolve(state, { ...event, seq: state.seq + 1, at: now });
  const next =
    state.startedAt === null
      ? parkNotStarted(state, false, row.waiting)
      : parkByClient(state, { waiting: row.waiting, deliveries: task?.deliveries ?? 0, afterSeq });
  return createTransition(runId, afterSeq, { events, next });
}
