/** What parking a run writes: when it wakes up, for which workers, and its note. The same for its owner and for clients. */
import { dataOf, type NewEvent } from "./event.js";
import { evolve } from "./fold.js";
import { newsSeenIn, writeParkingNote } from "./parking-note.js";
import { type RunState, statusOf } from "./state.js";
import type { Next } from "./transition.js";
import { nextDueAt } from "./waiting.js";

type Park = Extract<Next, { kind: "park" }>;

/** Which workers are asked for the run, and how urgently. */
export interface Station {
  readonly route: string;
  readonly priority: number;
}

export interface OwnerParks {
  /** Not to be used afterwards: what is written with the park is folded into it. */
  readonly state: RunState;
  /** What is written with the park, and when the earliest wait that it opens is due: in milliseconds, or at an instant. */
  readonly pending: {
    readonly events: readonly NewEvent[];
    readonly wakeIn: number | null;
    readonly wakeAt: number | null;
  };
  /** The store's time, as the owner last heard it. */
  readonly at: number;
  /** Its code was stopped in the middle, or before it could begin: it is to be run again at once. */
  readonly isCutShort: boolean;
  /** What its code still asks for; undefined when the code was not run. */
  readonly awaited: ((key: string) => boolean) | undefined;
  /** How many answers its code has seen: all of them if it was run; null when that is not known. */
  readonly newsSeen: number | "all" | null;
  readonly station: Station | null;
}

/** A worker lets go of its run. */
export function parkByOwner({ state, pending, at, isCutShort, awaited, newsSeen, station }: OwnerParks): Park {
  const isInterrupted = isCutShort && state.paused === null;
  const stateDue = nextDueAt(state, awaited);
  const wakeIn = isInterrupted ? 0 : state.paused === null ? pending.wakeIn : null;
  // The events get a provisional stamp, only to be summed up in the note.
  for (const one of pending.events) evolve(state, { ...one, seq: state.seq + 1, at });
  const dueAt = state.paused !== null ? null : earlier(stateDue, pending.wakeAt);
  const recheckMs = pauseRecheckMs(pending.events);
  return {
    kind: "park",
    status: statusOf(state) as Park["status"],
    waiting: writeParkingNote(state, isInterrupted ? null : newsSeen === "all" ? state.news : newsSeen),
    startedAt: state.startedAt,
    wakeAt: state.paused !== null && recheckMs === null ? state.paused.recheckAt : dueAt,
    wakeIn: state.paused !== null ? recheckMs : wakeIn,
    ...station,
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
  const seen = newsSeenIn(waiting);
  const hasNews = state.paused === null && (seen === null || state.news > seen);
  return {
    kind: "park",
    status: statusOf(state) as Park["status"],
    waiting: writeParkingNote(state, seen),
    startedAt: null,
    wakeAt: hasNews ? null : nextDueAt(state),
    wakeIn: hasNews ? 0 : null,
  };
}

/**
 * A client has written to a run that has not begun. It stays due as it is, also while it is paused. When a worker meets it
 * then, the log says that its time has come (`run.became_due`), and the run begins as soon as it is resumed.
 *
 * @param isStarted the client starts it now
 */
export function parkUnbegun(state: RunState, isStarted: boolean): Park {
  const isPaused = state.paused !== null;
  const beginsNow = isStarted || (!isPaused && state.becameDue);
  return {
    kind: "park",
    status: isPaused ? "paused" : "pending",
    waiting: isPaused ? writeParkingNote(state, null) : null,
    startedAt: null,
    wakeAt: null,
    wakeIn: beginsNow ? 0 : null,
    ...(beginsNow ? {} : { keepsDue: true }),
  };
}

/** Whether the code of a parked run has a reason to run at this time: a map whose children trickle in, say, is no news. */
export function isNewsForCode(state: RunState, waiting: string | null, now: number): boolean {
  if (waiting === null) return true;
  const seen = newsSeenIn(waiting);
  if (seen === null || state.news > seen) return true;
  for (const op of state.ops.values()) {
    if (op.kind !== "step") continue;
    if (op.phase === "again" && op.held === null && (op.dueAt ?? 0) <= now) return true;
    if (op.phase === "started" && op.deadlineAt !== null && op.deadlineAt <= now) return true;
  }
  return false;
}
