/** A run that retries another run (its predecessor) first copies the predecessor's recorded work into its own log. */

import type { Failure } from "../../core/encoding/error-record.js";
import { InvalidStateError } from "../../core/errors/errors.js";
import { cancelFailure } from "../../core/run/cancel-reason.js";
import { decide } from "../../core/run/decide.js";
import { startQueuedRuns } from "../../core/run/decide-queued-starts.js";
import { type NewEvent, newEvent, type StoredEvent } from "../../core/run/event.js";
import { finishRun } from "../../core/run/finish.js";
import { fold } from "../../core/run/fold.js";
import { createFork } from "../../core/run/fork.js";
import { retriedRunIdOf } from "../../core/run/lineage.js";
import { decodeMessage } from "../../core/run/message.js";
import { writeParkingNote } from "../../core/run/parking-note.js";
import { type RunState, statusOf } from "../../core/run/state.js";
import { onFailureStep } from "../../core/run/step-name.js";
import { createTransition, keepOwner } from "../../core/run/transition.js";
import type {
  CursorRow,
  CursorWrite,
  NextTaskState,
  RunRecord,
  Store,
  Transition,
} from "../../store/contract/store.js";
import type { GroupCommitter } from "../commit/group-committer.js";
import type { TurnSnapshot } from "./turn-host.js";

/** The predecessor was canceled and usually ends at once. The delay between checks grows the longer it takes to end. */
const recheckDelayMs = { min: 500, max: 30_000 };

export type InheritResult =
  | { readonly kind: "inherited"; readonly log: readonly StoredEvent[] }
  /** The predecessor has not ended, so this run was parked until `dueAt`. */
  | { readonly kind: "parked"; readonly dueAt: number; readonly now: number }
  /** Messages arrived before the commit that would have parked or ended the run, so the worker still owns it. */
  | { readonly kind: "has messages" }
  /** The predecessor has completed, or this run was canceled, so this run has ended. */
  | { readonly kind: "finished" };

export interface InheritOptions {
  readonly store: Store;
  readonly committer: GroupCommitter;
  /** Whether the workflow has an `onFailure`. */
  readonly hasOnFailure: boolean;
  /** Repeats the read until the database is reachable. */
  retryUntilReachable<T>(read: () => Promise<T>): Promise<T>;
}

/** Whether the run has a predecessor whose work is not in its log yet. */
export const mustInherit = ({ run, log }: TurnSnapshot): boolean => retriedRunIdOf(run) !== null && !hasInherited(log);

const hasInherited = (log: readonly StoredEvent[]): boolean => log.some(({ type }) => type === "run.forked");

export async function inheritFromPredecessor(snapshot: TurnSnapshot, options: InheritOptions): Promise<InheritResult> {
  const { run, log: toLog } = snapshot;
  const { store, retryUntilReachable } = options;
  const foundPredecessor = await findPredecessor(run, options);
  if (foundPredecessor === "open") return parkUntilPredecessorEnds(snapshot, options);
  const { predecessor, log: fromLog } = foundPredecessor;
  const fromRunId = predecessor.id;
  const cursors = await retryUntilReachable(() => store.cursors(fromRunId));
  const fork = createFork({
    fromRunId,
    fromLog,
    toRunId: run.id,
    toLog,
    onFailure: options.hasOnFailure ? onFailureStep : null,
  });
  if (predecessor.status === "completed") {
    // The predecessor completed before its cancel took effect, so this run completes with the same output.
    const end = createEnd(run, fold(toLog), "completed", predecessor.output, null);
    const { isStillOwned } = await submit(snapshot, options, { events: fork.events, ...end });
    return { kind: isStillOwned ? "has messages" : "finished" };
  }
  const keptCursors = cursors.filter(({ node }) => fork.keepsCursor(node));
  const { at } = await submit(snapshot, options, {
    events: fork.events,
    next: keepOwner,
    cursors: keptCursors.map(toCursorWrite),
  });
  return { kind: "inherited", log: [...toLog, ...toStoredEvents(fork.events, toLog.length, at)] };
}

interface Predecessor {
  readonly predecessor: RunRecord;
  readonly log: readonly StoredEvent[];
}

/**
 * Finds the ended run to inherit from; "open" if the predecessor has not ended. If the predecessor is itself a retry that
 * was canceled before it inherited anything, it has no recorded work, so its own predecessor is used instead.
 */
async function findPredecessor(
  run: RunRecord,
  { store, retryUntilReachable }: InheritOptions,
): Promise<Predecessor | "open"> {
  for (let predecessorId = retriedRunIdOf(run) as string; ; ) {
    const predecessor = await retryUntilReachable(() => store.run(predecessorId));
    if (predecessor === null) throw createPredecessorMissingError(run, predecessorId);
    if (predecessor.finishedAt === null) return "open";
    // The log is read after the row shows that the run has ended, because from then on the log never changes.
    const log = (await retryUntilReachable(() => store.logs([predecessorId]))).get(predecessorId) ?? [];
    const earlierRunId = retriedRunIdOf(predecessor);
    if (earlierRunId === null || hasInherited(log)) return { predecessor, log };
    predecessorId = earlierRunId;
  }
}

/**
 * Parks the run until the predecessor has ended. Until then it may still run and compensate steps, so its log can grow.
 */
async function parkUntilPredecessorEnds(snapshot: TurnSnapshot, options: InheritOptions): Promise<InheritResult> {
  const { run, log: ownLog, inbox, claimedAt: now } = snapshot;
  const state = fold(ownLog);
  const receivedCommands = inbox.flatMap((row) => {
    const command = decodeMessage(row);
    return command === null ? [] : [{ command, at: row.at, strict: false }];
  });
  const events = decide(state, receivedCommands, now);
  // A worker claimed the run, so its start time has passed. This event lets the run start as soon as it is resumed.
  if (pausesRun(state, events) && !state.becameDueWhilePaused) events.push(newEvent("run.became_due", {}));
  fold(toStoredEvents(events, ownLog.length, now), state);
  const drainedInboxIds = inbox.map(({ id }) => id);
  if (state.cancelRequest !== null) {
    // The run has not executed any step, so there is nothing to compensate.
    const { reason, code } = state.cancelRequest;
    const end = createEnd(run, state, "canceled", null, cancelFailure(reason, code));
    const { isStillOwned } = await submit(snapshot, options, { events, drainedInboxIds, ...end });
    return { kind: isStillOwned ? "has messages" : "finished" };
  }
  const { min, max } = recheckDelayMs;
  const recheckInMs = Math.min(max, Math.max(min, Math.floor((now - run.createdAt) / 2)));
  const parkState = createParkState(state, state.paused === null ? recheckInMs : null);
  const receipt = await submit(snapshot, options, { events, next: parkState, drainedInboxIds });
  if (receipt.isStillOwned) return { kind: "has messages" };
  return { kind: "parked", dueAt: receipt.at + recheckInMs, now: receipt.at };
}

const pausesRun = (state: RunState, events: readonly NewEvent[]) =>
  events.reduce(
    (isPaused, { type }) => (type === "run.paused" ? true : type === "run.resumed" ? false : isPaused),
    state.paused !== null,
  );

function createParkState(state: RunState, wakeInMs: number | null): NextTaskState {
  const status = statusOf(state) as "pending" | "waiting" | "paused";
  return { kind: "park", status, waiting: writeParkingNote(state, null), startedAt: null, wakeAt: null, wakeInMs };
}

async function submit(
  snapshot: TurnSnapshot,
  { committer }: InheritOptions,
  fields: Pick<Transition, "events" | "next"> & Partial<Transition>,
): Promise<{ readonly at: number; readonly isStillOwned: boolean }> {
  const { run, log } = snapshot;
  const receipt = await committer.submit(createTransition(run.id, log.length, fields));
  if (receipt.kind === "evicted") throw receipt.error;
  // The store refused to end the run because messages had arrived; the caller opens the run again and processes them.
  return receipt.kind === "unread" ? { at: snapshot.claimedAt, isStillOwned: true } : receipt;
}

function createEnd(
  run: RunRecord,
  state: RunState,
  status: "completed" | "canceled",
  output: string | null,
  failure: Failure | null,
): Pick<Transition, "next" | "messages"> {
  // The run has not started any children yet.
  return finishRun(
    run,
    { status, output, error: failure },
    status === "completed" ? "now" : null,
    startQueuedRuns(state),
  );
}

const createPredecessorMissingError = (run: RunRecord, predecessorId: string) =>
  new InvalidStateError(
    `Run ${run.id} retries run ${predecessorId}, which no longer exists, so its remaining steps are unknown. Cancel run ${run.id}.`,
    { runId: run.id, status: run.status },
  );

const toStoredEvents = (events: readonly NewEvent[], afterSeq: number, at: number): StoredEvent[] =>
  events.map((event, index) => ({ ...event, seq: afterSeq + index + 1, at }));

const toCursorWrite = ({ node, cursor, progress }: CursorRow): CursorWrite => ({ node, cursor, progress });
