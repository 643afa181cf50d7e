/** A run is let go of: when it wakes up, where, and the note that tells whoever takes it next what its code has seen. */
import type { NewEvent } from "../../core/run/event.js";
import { evolve } from "../../core/run/fold.js";
import { type RunState, statusOf } from "../../core/run/state.js";
import { nextDueAt, parkingNote } from "../../core/run/waiting.js";
import type { Next, RunRecord } from "../../store/contract/store.js";
import type { Outbox } from "../commit/pending-writes.js";

/** Which workers are asked for the run, and how urgently. */
export interface Station {
  readonly route: string;
  readonly priority: number;
}

export interface Parking {
  readonly state: RunState;
  readonly outbox: Outbox;
  /** The store's time, as we last heard it. */
  readonly at: number;
  /** Its code was stopped in the middle, or before it could begin: it is to be run again at once. */
  readonly cutShort: boolean;
  /** What its code still asks for; undefined when the code was not run. */
  readonly awaited: ((key: string) => boolean) | undefined;
  /** How much news its code had seen, when it was not run; null when it has seen everything. */
  readonly newsSeen: number | null;
  readonly station: Station | null;
}

export function parkingOf({ state, outbox, at, cutShort, awaited, newsSeen: seen, station }: Parking): Next {
  const interrupted = cutShort && state.paused === null;
  const stateDue = nextDueAt(state, awaited);
  const wakeIn = interrupted ? 0 : state.paused === null ? outbox.wakeIn : null;
  // From here on the state belongs to nobody: the events get a provisional stamp, only to be summed up.
  for (const one of outbox.events) evolve(state, { ...one, seq: state.seq + 1, at });
  const dueAt = state.paused !== null ? null : earlier(stateDue, outbox.wakeAt);
  const recheck = pauseRecheck(outbox.events);
  return {
    kind: "park",
    status: statusOf(state) as "pending" | "waiting" | "paused",
    waiting: parkingNote(state, interrupted ? -1 : (seen ?? state.news)),
    startedAt: state.startedAt,
    wakeAt: state.paused !== null && recheck === null ? state.paused.recheckAt : dueAt,
    wakeIn: state.paused !== null ? recheck : wakeIn,
    ...station,
  };
}

function pauseRecheck(events: readonly NewEvent[]): number | null {
  const paused = events.findLast((one) => one.type === "run.paused");
  if (paused?.data == null) return null;
  return (JSON.parse(paused.data) as { recheckMs?: number }).recheckMs ?? null;
}

function earlier(a: number | null, b: number | null): number | null {
  return a === null ? b : b === null ? a : Math.min(a, b);
}

/** -1: not known, so the code is run. That is always right, if not always needed. */
export function newsSeen(run: RunRecord): number {
  try {
    return (JSON.parse(run.waiting ?? "{}") as { news?: number }).news ?? -1;
  } catch {
    return -1;
  }
}

/** Whether its code has a reason to run: a map whose children trickle in, say, is no news. */
export function isNewsForCode(run: RunRecord, state: RunState, now: number): boolean {
  if (run.waiting === null) return true;
  const seen = newsSeen(run);
  if (seen < 0 || state.news > seen) return true;
  for (const op of state.ops.values()) {
    if (op.kind !== "step") continue;
    if (op.phase === "again" && op.held === null && (op.dueAt ?? 0) <= now) return true;
    if (op.phase === "started" && op.deadlineAt !== null && op.deadlineAt <= now) return true;
  }
  return false;
}
