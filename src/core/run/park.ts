/**
 * Computes what is written when the owner or a client parks a run: when the run wakes up, its route, and its parking note.
 */
import { dataOf, type NewEvent } from "./event.js";
import { evolve } from "./fold.js";
import {
  isOlderThanLog,
  openLanesIn,
  seenVersionIn,
  withParkedSteps,
  withSlotsOf,
  writeParkingNote,
} from "./parking-note.js";
import { type RunState, statusOf } from "./state.js";
import type { NextTaskState } from "./transition.js";
import { nextDueAt } from "./waiting.js";

type Park = Extract<NextTaskState, { kind: "park" }>;

/** Determines which workers claim the task, and with which priority. */
export interface TaskRouting {
  readonly route: string;
  readonly priority: number;
}

export interface OwnerParkOptions {
  /** The caller must not use the state after the call, because the pending events are folded into it. */
  readonly state: RunState;
  /** The events that are written with the park, and when the earliest timer or wait among them is due. */
  readonly pending: {
    readonly events: readonly NewEvent[];
    readonly wakeInMs: number | null;
    readonly wakeAt: number | null;
  };
  /** The latest time of the store's clock that the owner knows. */
  readonly storeNow: number;
  /** Whether the worker stopped the workflow's code before it had finished. The next owner must then call it at once. */
  readonly wasCodeStopped: boolean;
  /** Returns whether the code still waits for this call; undefined when the worker did not call the code in this turn. */
  readonly isAwaited: ((key: string) => boolean) | undefined;
  /**
   * The `wakeVersion` that the code has seen: "all" if the worker called the code in this turn; null when it is unknown.
   */
  readonly seenVersion: number | "all" | null;
  readonly routing: TaskRouting | null;
  /** Whether steps of the run may wait for slots of limits while no worker executes it. */
  readonly mayHaveParkedSteps?: boolean;
}

/** Computes the park of a run by the worker that owns it. */
export function parkByOwner({
  state,
  pending,
  storeNow,
  wasCodeStopped,
  isAwaited,
  seenVersion,
  routing,
  mayHaveParkedSteps = false,
}: OwnerParkOptions): Park {
  const isInterrupted = wasCodeStopped && state.paused === null;
  const stateDueAt = nextDueAt(state, isAwaited);
  const wakeInMs = isInterrupted ? 0 : state.paused === null ? pending.wakeInMs : null;
  // The note describes the state after the pending events, so they are folded now, with provisional timestamps.
  for (const event of pending.events) evolve(state, { ...event, seq: state.seq + 1, at: storeNow });
  const dueAt = state.paused !== null ? null : earlier(stateDueAt, pending.wakeAt);
  const recheckMs = pauseRecheckMs(pending.events);
  return {
    kind: "park",
    status: statusOf(state) as Park["status"],
    waiting: withParkedSteps(
      writeParkingNote(state, isInterrupted ? null : seenVersion === "all" ? state.wakeVersion : seenVersion),
      mayHaveParkedSteps,
    ),
    startedAt: state.startedAt,
    wakeAt: state.paused !== null && recheckMs === null ? state.paused.recheckAt : dueAt,
    wakeInMs: state.paused !== null ? recheckMs : wakeInMs,
    ...routing,
  };
}

/** The recheck delay of a pause that is written with this park. It begins at the commit, whose time is not known yet. */
function pauseRecheckMs(events: readonly NewEvent[]): number | null {
  const pausedEvent = events.findLast(({ type }) => type === "run.paused");
  return pausedEvent === undefined ? null : (dataOf(pausedEvent, "run.paused").recheckMs ?? null);
}

function earlier(a: number | null, b: number | null): number | null {
  return a === null ? b : b === null ? a : Math.min(a, b);
}

/** What the store has of a run before a client writes to it. */
export interface RowOfRun {
  /** The parking note. */
  readonly waiting: string | null;
  /** Of the task; if it is not 0, the last owner has died without parking the run. */
  readonly deliveries: number;
  /** The number of events in the log. */
  readonly afterSeq: number;
}

/**
 * Computes the park when a client has written events to a run that no worker owns. The run becomes ready if its code has
 * not seen all reasons to run; otherwise it keeps waiting as before.
 *
 * If the last owner has died without parking the run, or a late commit has released it, the note is older than what that owner
 * has done. The task is then due although the log need not give a reason for it.
 */
export function parkByClient(state: RunState, { waiting, deliveries, afterSeq }: RowOfRun): Park {
  const isNoteCurrent = deliveries === 0 && !isOlderThanLog(waiting, afterSeq);
  const seenVersion = isNoteCurrent ? seenVersionIn(waiting) : null;
  const hasUnseenChanges = state.paused === null && (seenVersion === null || state.wakeVersion > seenVersion);
  return {
    kind: "park",
    status: statusOf(state) as Park["status"],
    waiting: withSlotsOf(waiting, writeParkingNote(state, seenVersion)),
    startedAt: null,
    wakeAt: hasUnseenChanges ? null : nextDueAt(state),
    wakeInMs: hasUnseenChanges ? 0 : null,
  };
}

/**
 * Computes the park when a client has written events to a run that has not started. The run keeps its start time, even
 * while it is paused. If the start time passes during the pause, the worker that claims the run records `run.became_due`,
 * and the run starts as soon as it is resumed.
 *
 * @param isStartRequested whether the client's command is to start the run now
 * @param waiting the parking note in the run's row, which names the slots that the run keeps: a worker may have admitted it
 * while it was paused
 */
export function parkNotStarted(state: RunState, isStartRequested: boolean, waiting: string | null): Park {
  const isPaused = state.paused !== null;
  const openLanes = openLanesIn(waiting);
  const hasNote = isPaused || openLanes.length > 0;
  const startsNow = isStartRequested || (!isPaused && state.becameDueWhilePaused);
  return {
    kind: "park",
    status: isPaused ? "paused" : "pending",
    waiting: hasNote ? withSlotsOf(waiting, writeParkingNote(state, null)) : null,
    startedAt: null,
    wakeAt: null,
    wakeInMs: startsNow ? 0 : null,
    ...(startsNow ? {} : { keepsDueTime: true }),
  };
}

/**
 * Whether a worker that has claimed a parked run must call the workflow's code. The end of some, but not all, children of a
 * map, for example, is no reason.
 */
export function shouldRunCode(state: RunState, waiting: string | null, now: number): boolean {
  if (waiting === null) return true;
  const seenVersion = seenVersionIn(waiting);
  if (seenVersion === null || state.wakeVersion > seenVersion) return true;
  for (const op of state.ops.values()) {
    if (op.kind !== "step") continue;
    if (op.phase === "awaiting_attempt" && op.pauseCause === null && (op.dueAt ?? 0) <= now) return true;
    if (op.phase === "started" && op.deadlineAt !== null && op.deadlineAt <= now) return true;
  }
  return false;
}
