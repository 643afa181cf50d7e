/**
 * Regroups a batch for the sections of the commit's statement: by table instead of by run, with several changes of one
 * row merged, and in the order in which rows are locked.
 */

import { createTransition } from "../../core/run/transition.js";
import type { Batch, CursorWrite, Fence, Message, NewRun, SeenRun, Transition } from "../contract/store.js";
import { endedSchedulesOf } from "../shared/ended-schedules.js";
import { type EventRow, packEvents } from "../shared/event-rows.js";
import { isRunId } from "./ids.js";

/** How a task's row changes. With `deliver` and `release` the run need not be owned by the writer. */
export const changeKind = { drain: 0, park: 1, finish: 2, deliver: 3, release: 4 } as const;

export interface TaskChange {
  readonly runId: string;
  readonly kind: number;
  readonly status: string | null;
  /** The `waiting` of a run that parks, the output of a run that finishes. */
  readonly waitingOrOutput: string | null;
  readonly error: string | null;
  /** The value `startedNow` means the instant of the commit. */
  readonly startedAt: number | null;
  /** When a run that parks wakes up. For a run that finishes, the number of events in its log. */
  readonly wakeAt: number | null;
  readonly wakeInMs: number | null;
  /** The number of messages that the change drains or delivers. */
  readonly messageCount: number;
  /** null leaves the task's route as it is. */
  readonly route: string | null;
  /** null leaves the task's priority as it is. */
  readonly priority: number | null;
  readonly releasesSlots: boolean;
}

export const startedNow = -1;
/** A value of `wakeInMs`: the task keeps its state and due time. */
export const dueUnchanged = -1;

export interface NewEventRow extends EventRow {
  readonly runId: string;
  readonly seq: number;
}

export interface RunCursor extends CursorWrite {
  readonly runId: string;
}

export interface CommitWork {
  readonly fence: Fence | null;
  /** Runs that the worker keeps and whose tasks do not change: the statement checks the owner but locks no task. */
  readonly keptRunIds: readonly string[];
  /** The task rows that change, in the order in which they are locked. */
  readonly taskChanges: readonly TaskChange[];
  readonly events: readonly NewEventRow[];
  readonly drained: readonly { readonly runId: string; readonly id: number }[];
  readonly messages: readonly Message[];
  readonly starts: readonly NewRun[];
  readonly children: readonly NewRun[];
  /**
   * Whether the statement may assume the common case (new ids, no messages). If the assumption is wrong, the statement
   * fails, and the store sends it again without the assumption.
   */
  readonly isOptimistic: boolean;
  /** Whether the statement may assume that no new run exists already or is refused. */
  readonly areAllRunsNew: boolean;
  readonly cursors: readonly RunCursor[];
  /** The schedules whose runs end, in the order in which their rows are locked. */
  readonly endedSchedules: readonly string[];
  /** Whether this process itself has written the end of every log that the batch appends to. */
  readonly areLogEndsKnown: boolean;
  /** What the sender of the messages has seen of their one receiver; null: the messages are right in any case. */
  readonly seen: SeenRun | null;
  /** Messages to children that this batch creates; no other part of the same statement can see the children's rows. */
  readonly messagesToNewRuns: readonly Message[];
}

export function toCommitWork(
  batch: Batch,
  isOptimistic = false,
  isLogEndKnown: IsLogEndKnown = () => false,
): CommitWork {
  const { transitions, fence } = batch;
  // Plain loops without intermediate arrays, because this runs for every commit and most of the lists are empty.
  const newRunIds = new Set<string>();
  const allMessages: Message[] = [];
  const releasedIds = new Set<string>();
  const ownChanges: TaskChange[] = [];
  const keptRunIds: string[] = [];
  const drained: { runId: string; id: number }[] = [];
  for (const transition of transitions) {
    const { runId, next } = transition;
    for (const { id } of transition.newChildren) newRunIds.add(id);
    for (const message of transition.messages) if (isRunId(message.to)) allMessages.push(message);
    for (const id of transition.releasedChildIds) if (isRunId(id)) releasedIds.add(id);
    for (const id of transition.drainedInboxIds) drained.push({ runId, id });
    // A client's commit always locks the task, because no fence protects the run from other writers.
    if (next.kind === "keep" && transition.drainedInboxIds.length === 0 && fence !== null) keptRunIds.push(runId);
    else ownChanges.push(toTaskChange(transition));
  }
  const messages = newRunIds.size === 0 ? allMessages : allMessages.filter(({ to }) => !newRunIds.has(to));
  const children = newRunIds.size === 0 ? [] : childrenOf(transitions, releasedIds);
  return {
    fence,
    keptRunIds,
    taskChanges: withReceivers(ownChanges, messages, releasedIds, newRunIds).sort(byRunId),
    events: eventsOf(transitions),
    drained,
    messages,
    starts: sortByKey(batch.starts),
    children: sortByKey(children),
    isOptimistic,
    areAllRunsNew: isOptimistic && batch.starts.every(isPlainStart) && children.every(isPlainStart),
    cursors: cursorsOf(transitions),
    endedSchedules: endedSchedulesOf(transitions),
    areLogEndsKnown:
      fence !== null && transitions.every((transition) => isTransitionEndKnown(transition, isLogEndKnown)),
    seen: null,
    messagesToNewRuns: newRunIds.size === 0 ? [] : allMessages.filter(({ to }) => newRunIds.has(to)),
  };
}

export type IsLogEndKnown = (runId: string, end: number) => boolean;

/** The first append to a log needs no check: if event number 1 exists, the primary key makes the statement fail. */
const isTransitionEndKnown = ({ runId, afterSeq, events }: Transition, isLogEndKnown: IsLogEndKnown) =>
  events.length === 0 || afterSeq === 0 || isLogEndKnown(runId, afterSeq);

function withReceivers(
  ownChanges: TaskChange[],
  messages: readonly Message[],
  releasedIds: ReadonlySet<string>,
  newRunIds: ReadonlySet<string>,
): TaskChange[] {
  if (messages.length === 0 && releasedIds.size === 0) return ownChanges;
  const changes = new Map(ownChanges.map((change) => [change.runId, change]));
  for (const runId of releasedIds)
    if (!newRunIds.has(runId)) changes.set(runId, emptyTaskChange(runId, changeKind.release));
  // A message also makes a parked run ready, so it replaces a release.
  for (const { to } of messages)
    changes.set(to, {
      ...emptyTaskChange(to, changeKind.deliver),
      messageCount: (changes.get(to)?.messageCount ?? 0) + 1,
    });
  return [...changes.values()];
}

const childrenOf = (transitions: readonly Transition[], releasedIds: ReadonlySet<string>): NewRun[] =>
  transitions.flatMap((transition) => transition.newChildren.map((run) => releaseIfHeld(run, releasedIds)));

/** The work of a commit that only delivers messages. */
export function messageWork(messages: readonly Message[], seen: SeenRun | null = null): CommitWork {
  const work = toCommitWork({ fence: null, starts: [], transitions: [createTransition("", 0, { messages })] });
  return { ...work, seen, taskChanges: work.taskChanges.filter(({ kind }) => kind === changeKind.deliver) };
}

const releaseIfHeld = (run: NewRun, releasedIds: ReadonlySet<string>): NewRun =>
  run.due.kind === "held" && releasedIds.has(run.id) ? { ...run, due: { kind: "now" } } : run;

function toTaskChange({ runId, next, drainedInboxIds, afterSeq, events }: Transition): TaskChange {
  const messageCount = drainedInboxIds.length;
  if (next.kind === "keep") return { ...emptyTaskChange(runId, changeKind.drain), messageCount };
  const startedAt = next.startedAt === "now" ? startedNow : next.startedAt;
  const { status } = next;
  if (next.kind === "finish") {
    const end = { waitingOrOutput: next.output, error: next.error, startedAt, wakeAt: afterSeq + events.length };
    const releasesSlots = next.releasesSlots === true;
    return { ...emptyTaskChange(runId, changeKind.finish), status, ...end, messageCount, releasesSlots };
  }
  const { wakeAt, route = null, priority = null } = next;
  const wakeInMs = next.keepsDueTime ? dueUnchanged : next.wakeInMs;
  const schedule = { wakeAt, wakeInMs, route, priority };
  return {
    ...emptyTaskChange(runId, changeKind.park),
    status,
    waitingOrOutput: next.waiting,
    startedAt,
    ...schedule,
    messageCount,
    releasesSlots: next.releasesSlots === true,
  };
}

const emptyTaskChange = (runId: string, kind: number): TaskChange => ({
  runId,
  kind,
  status: null,
  waitingOrOutput: null,
  error: null,
  startedAt: null,
  wakeAt: null,
  wakeInMs: null,
  messageCount: 0,
  route: null,
  priority: null,
  releasesSlots: false,
});

function eventsOf(transitions: readonly Transition[]): NewEventRow[] {
  const rows: NewEventRow[] = [];
  for (const { runId, afterSeq, events } of transitions) {
    if (events.length === 0) continue;
    const { type, node, attempt, outcome, data, span } = packEvents(events);
    rows.push({ runId, seq: afterSeq + 1, span, type, node, attempt, outcome, data });
  }
  return rows.sort(byRunId);
}

/** Sorts runs that have keys by key, so that two batches with the same keys do not deadlock. */
function sortByKey(runs: readonly NewRun[]): readonly NewRun[] {
  if (runs.every(hasNoKey)) return runs;
  // Of two runs with the same key the first must win, so the caller's order is kept.
  if (runs.length < 2 || hasDuplicates(runs.map(startKeyOf)) || hasDuplicates(runs.map(({ heroKey }) => heroKey)))
    return runs;
  return runs.toSorted(
    (a, b) =>
      compare(startKeyOf(a) ?? "", startKeyOf(b) ?? "") ||
      compare(a.heroKey ?? "", b.heroKey ?? "") ||
      compare(a.id, b.id),
  );
}

/** The row of a start deadline is written for the runs that the statement returns as created. */
const isPlainStart = (run: NewRun) => hasNoKey(run) && run.startBy === undefined;

const hasNoKey = ({ startKey, heroKey }: NewRun) => startKey === null && heroKey === null;

const startKeyOf = ({ workflow, startKey }: NewRun) =>
  startKey === null ? null : JSON.stringify([workflow, startKey]);

function hasDuplicates(keys: readonly (string | null)[]): boolean {
  const presentKeys = keys.filter((key) => key !== null);
  return new Set(presentKeys).size < presentKeys.length;
}

/** Merges the writes to one (run, node) into one, because a row cannot be updated twice in one statement. */
function cursorsOf(transitions: readonly Transition[]): RunCursor[] {
  const rows = new Map<string, RunCursor>();
  for (const { runId, cursors } of transitions) {
    for (const write of cursors) {
      const key = `${runId}/${write.node}`;
      rows.set(key, { ...rows.get(key), ...withoutUndefined(write), runId });
    }
  }
  return [...rows.values()].sort((a, b) => compare(a.runId, b.runId) || compare(a.node, b.node));
}

function withoutUndefined({ node, cursor, progress }: CursorWrite): CursorWrite {
  return { node, ...(cursor === undefined ? {} : { cursor }), ...(progress === undefined ? {} : { progress }) };
}

const byRunId = (a: { readonly runId: string }, b: { readonly runId: string }) => compare(a.runId, b.runId);
const compare = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);
