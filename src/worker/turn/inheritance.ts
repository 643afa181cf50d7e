/** A run that goes on for another one begins with what that one has done: it is written into its log before its code runs. */

import type { Failure } from "../../core/encoding/error-record.js";
import { InvalidStateError } from "../../core/errors/errors.js";
import { decide } from "../../core/run/decide.js";
import { event, type NewEvent, type StoredEvent } from "../../core/run/event.js";
import { finishRun } from "../../core/run/finish.js";
import { fold } from "../../core/run/fold.js";
import { forkOf } from "../../core/run/fork.js";
import { predecessorOf } from "../../core/run/lineage.js";
import { readMail } from "../../core/run/message.js";
import { writeParkingNote } from "../../core/run/parking-note.js";
import { type RunState, statusOf } from "../../core/run/state.js";
import { onFailureStep } from "../../core/run/step-name.js";
import { keep, none, transitionOf } from "../../core/run/transition.js";
import type { CursorRow, CursorWrite, Next, RunRecord, Store, Transition } from "../../store/contract/store.js";
import type { GroupCommitter } from "../commit/group-committer.js";
import type { Opening } from "./host.js";

/** The other run was told to end, and mostly does so at once. The longer it takes, the less often it is looked at. */
const lookAgainMs = { least: 500, most: 30_000 };

export type Inherited =
  | { readonly kind: "inherited"; readonly log: readonly StoredEvent[] }
  /** The other run has not ended, so this one was parked until `dueAt`. */
  | { readonly kind: "parked"; readonly dueAt: number; readonly now: number }
  /** Messages came while it was being parked. */
  | { readonly kind: "again" }
  /** The other run has completed, or this one was canceled: there was nothing left to do. */
  | { readonly kind: "finished" };

export interface Inheriting {
  readonly store: Store;
  readonly committer: GroupCommitter;
  /** Whether its code has an `onFailure`. */
  readonly hasOnFailure: boolean;
  /** Reads until the database answers. */
  retryUntilReachable<T>(read: () => Promise<T>): Promise<T>;
}

/** Whether there is something to take over that the log does not have yet. */
export const isHeir = ({ run, log }: Opening): boolean => predecessorOf(run) !== null && !hasInherited(log);

const hasInherited = (log: readonly StoredEvent[]): boolean => log.some(({ type }) => type === "run.forked");

export async function inherit(opening: Opening, given: Inheriting): Promise<Inherited> {
  const { run, log: own } = opening;
  const { store, retryUntilReachable } = given;
  const found = await findPredecessor(run, given);
  if (found === "open") return park(opening, given);
  const { predecessor, log } = found;
  const from = predecessor.id;
  const cursors = await retryUntilReachable(() => store.cursors(from));
  const fork = forkOf({
    from,
    log,
    to: run.id,
    own,
    onFailure: given.hasOnFailure ? onFailureStep : null,
  });
  if (predecessor.status === "completed") {
    // It was canceled too late: what it came to is what this run comes to.
    const end = endOf(run, "completed", predecessor.output, null);
    const { kept } = await submit(opening, given, { events: fork.events, ...end });
    return { kind: kept ? "again" : "finished" };
  }
  const keptCursors = cursors.filter(({ node }) => fork.keepsCursor(node));
  const { at } = await submit(opening, given, { events: fork.events, next: keep, cursors: keptCursors.map(cursorOf) });
  return { kind: "inherited", log: [...own, ...stamped(fork.events, own.length, at)] };
}

interface Predecessor {
  readonly predecessor: RunRecord;
  readonly log: readonly StoredEvent[];
}

/** The run to go on for. One that was canceled before it had taken anything over has nothing to give: it is the one before it. */
async function findPredecessor(
  run: RunRecord,
  { store, retryUntilReachable }: Inheriting,
): Promise<Predecessor | "open"> {
  for (let from = predecessorOf(run) as string; ; ) {
    const predecessor = await retryUntilReachable(() => store.run(from));
    if (predecessor === null) throw goneForGood(run, from);
    if (predecessor.finishedAt === null) return "open";
    // After its row: a run that has ended never changes.
    const log = (await retryUntilReachable(() => store.logs([from]))).get(from) ?? [];
    const before = predecessorOf(predecessor);
    if (before === null || hasInherited(log)) return { predecessor, log };
    from = before;
  }
}

/** Until the other run has ended it may still do things, and undo them: nothing of it can be relied upon. */
async function park(opening: Opening, given: Inheriting): Promise<Inherited> {
  const { run, log: own, inbox, at: now } = opening;
  const state = fold(own);
  const received = inbox.flatMap((row) => {
    const command = readMail(row);
    return command === null ? [] : [{ command, at: row.at, strict: false }];
  });
  const events = decide(state, received, now);
  // A worker had it, so its time to begin has come: when it is resumed, it begins.
  if (pausesRun(state, events) && !state.becameDue) events.push(event("run.became_due", {}));
  fold(stamped(events, own.length, now), state);
  const drained = inbox.map(({ id }) => id);
  if (state.cancel !== null) {
    // It has done nothing yet, so there is nothing to undo either.
    const end = endOf(run, "canceled", null, canceledBy(state.cancel.reason));
    const { kept } = await submit(opening, given, { events, drained, ...end });
    return { kind: kept ? "again" : "finished" };
  }
  const { least, most } = lookAgainMs;
  const soon = Math.min(most, Math.max(least, Math.floor((now - run.createdAt) / 2)));
  const next = parkingWith(state, state.paused === null ? soon : null);
  const receipt = await submit(opening, given, { events, next, drained });
  if (receipt.kept) return { kind: "again" };
  return { kind: "parked", dueAt: receipt.at + soon, now: receipt.at };
}

const pausesRun = (state: RunState, events: readonly NewEvent[]) =>
  events.reduce(
    (isPaused, { type }) => (type === "run.paused" ? true : type === "run.resumed" ? false : isPaused),
    state.paused !== null,
  );

function parkingWith(state: RunState, wakeIn: number | null): Next {
  const status = statusOf(state) as "pending" | "waiting" | "paused";
  return { kind: "park", status, waiting: writeParkingNote(state, null), startedAt: null, wakeAt: null, wakeIn };
}

async function submit(
  opening: Opening,
  { committer }: Inheriting,
  part: Pick<Transition, "events" | "next"> & Partial<Transition>,
): Promise<{ readonly at: number; readonly kept: boolean }> {
  const { run, log } = opening;
  const receipt = await committer.submit(transitionOf(run.id, log.length, part));
  if (receipt.kind === "evicted") throw receipt.error;
  // It was to end, and has messages: it is taken up again with them.
  return receipt.kind === "unread" ? { at: opening.at, kept: true } : receipt;
}

function endOf(
  run: RunRecord,
  status: "completed" | "canceled",
  output: string | null,
  failure: Failure | null,
): Pick<Transition, "next" | "mail"> {
  // It has no children of its own yet.
  return finishRun(run, { status, output, error: failure }, status === "completed" ? "now" : null, none);
}

const canceledBy = (reason: string | null): Failure | null =>
  reason === null ? null : { name: "RunCanceledError", message: reason };

const goneForGood = (run: RunRecord, from: string) =>
  new InvalidStateError(
    `Run ${run.id} goes on for run ${from}, which does not exist any more, so it is not known what is left to do. Cancel it.`,
    { runId: run.id, status: run.status },
  );

const stamped = (events: readonly NewEvent[], after: number, at: number): StoredEvent[] =>
  events.map((one, index) => ({ ...one, seq: after + index + 1, at }));

const cursorOf = ({ node, cursor, progress }: CursorRow): CursorWrite => ({ node, cursor, progress });
