/** What parking a run writes: when it wakes up, for which workers, and its note. The same for its owner and for clients. */
import { dataOf, type NewEvent } from "./event.js";
import { evolve } from "./fold.js";
import { seenVersionIn, writeParkingNote } from "./parking-note.js";
import { type RunState, statusOf } from "./state.js";
import type { NextTaskState } from "./transition.js";
import { nextDueAt } from "./waiting.js";

type Park = Extract<NextTaskState, { kind: "park" }>;

/** Which workers are asked for the run, and how urgently. */
export interface TaskRouting {
  readonly route: string;
  readonly priority: number;
}

export interface OwnerParkOptions {
  /** Not to be used afterwards: what is written with the park is folded into it. */
  readonly state: RunState;
  /** What is written with the park, and when the earliest wait that it opens is due: in milliseconds, or at an instant. */
  readonly pending: {
    readonly events: readonly NewEvent[];
    readonly wakeInMs: number | null;
    readonly wakeAt: number | null;
  };
  /** The store's time, as the owner last heard it. */
  readonly storeNow: number;
  /** Its code was stopped in the middle, or before it could begin: it is to be run again at once. */
  readonly wasCodeStopped: boolean;
  /** What its code still asks for; undefined when the code was not run. */
  readonly isAwaited: ((key: string) => boolean) | undefined;
  /** How many answers its code has seen: all of them if it was run; null when that is not known. */
  readonly seenVersion: number | "all" | null;
  readonly routing: TaskRouting | null;
}

/** A worker lets go of its run. */
export function parkByOwner({
  state,
  pending,
  storeNow,
  wasCodeStopped,
  isAwaited,
  seenVersion,
  routing,
}: OwnerParkOptions): Park {
  const isInterrupted = wasCodeStopped && state.paused === null;
  const stateDueAt = nextDueAt(state, isAwaited);
  const wakeInMs = isInterrupted ? 0 : state.paused === null ? pending.wakeInMs : null;
  // The events get a provisional stamp, only to be summed up in the note.
  for (const one of pending.events) evolve(state, { ...one, seq: state.seq + 1, at: storeNow });
  const dueAt = state.paused !== null ? null : earlier(stateDueAt, pending.wakeAt);
  const recheckMs = pauseRecheckMs(pending.events);
  return {
    kind: "park",
    status: statusOf(state) as Park["status"],
    waiting: writeParkingNote(state, isInterrupted ? null : seenVersion === "all" ? state.wakeVersion : seenVersion),
    startedAt: state.startedAt,
    wakeAt: state.paused !== null && recheckMs === null ? state.paused.recheckAt : dueAt,
    wakeInMs: state.paused !== null ? recheckMs : wakeInMs,
    ...routing,
  };
}

/** The recheck of a pause that is just being written counts from its commit. */
function pauseRecheckMs(events: readonly NewEvent[]): number | null {
  const paused = events.findLast((one) => one.type === "run.paused");
  return paused === undefined ? null : (dataOf(paused, "run.paused").recheckMs ?? null);
}

function earlier(a: number | null, b: number | null): number | null {
  return a === null ? b : b === null ? a : Math.min(a, b);
}

/**
 * A client has written to a run that no worker owns. With news for its code the run is ready now; otherwise it goes on
 * waiting as it did.
 *
 * @param waiting the note that its row has
 */
export function parkByClient(state: RunState, waiting: string | null): Park {
  const seenVersion = seenVersionIn(waiting);
  const hasUnseenChanges = state.paused === null && (seenVersion === null || state.wakeVersion > seenVersion);
  return {
    kind: "park",
    status: statusOf(state) as Park["status"],
    waiting: writeParkingNote(state, seenVersion),
    startedAt: null,
    wakeAt: hasUnseenChanges ? null : nextDueAt(state),
    wakeInMs: hasUnseenChanges ? 0 : null,
  };
}

/**
 * A client has written to a run that has not begun. It stays due as it is, also while it is paused. When a worker meets it
 * then, the log says that its time has come (`run.became_due`), and the run begins as soon as it is resumed.
 *
 * @param isStartRequested the client starts it now
 */
export function parkNotStarted(state: RunState, isStartRequested: boolean): Park {
  const isPaused = state.paused !== null;
  const startsNow = isStartRequested || (!isPaused && state.becameDueWhilePaused);
  return {
    kind: "park",
    status: isPaused ? "paused" : "pending",
    waiting: isPaused ? writeParkingNote(state, null) : null,
    startedAt: null,
    wakeAt: null,
    wakeInMs: startsNow ? 0 : null,
    ...(startsNow ? {} : { keepsDueTime: true }),
  };
}

/** Whether the code of a parked run has a reason to run at this time: a map whose children trickle in, say, is no news. */
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
