/**
 * What one commit does to one run: the language in which workers and clients say what becomes of it, and in which a store
 * writes it. Pure data: all payloads are encoded, all instants are epoch milliseconds of the store's clock.
 */
import type { NewEvent } from "./event.js";

export type RunStatus = "pending" | "running" | "waiting" | "paused" | "completed" | "failed" | "canceled";
export type ActiveStatus = "pending" | "waiting" | "paused";
export type TerminalStatus = "completed" | "failed" | "canceled";

/** What is fixed when a run is born. It is the log's entry number zero, kept in the run's row and never changed. */
export interface RunSpec {
  readonly id: string;
  readonly workflow: string;
  /** "" when the definition has none. */
  readonly version: string;
  readonly queue: string;
  /** Higher goes first. */
  readonly priority: number;
  readonly input: string;
  readonly heroType: string | null;
  readonly heroId: string | null;
  readonly tags: readonly string[];
  /** Idempotency key, unique per workflow for as long as the run's row exists. */
  readonly startKey: string | null;
  readonly parentId: string | null;
  /** The parent's log key of the call that started this run. */
  readonly parentNode: string | null;
  /** The run's place among the children of a map, from 0; null unless a map started it. */
  readonly parentIndex: number | null;
  /** Which attempt at a node of the parent's graph this run is, from 1; null unless it is one. */
  readonly parentAttempt: number | null;
}

export interface NewRun extends RunSpec {
  /** What claims know its task by; undefined: the name of the workflow. */
  readonly route?: string;
  /** Unique among active runs; null when several are allowed. Cleared by the store when the run finishes. */
  readonly heroKey: string | null;
  /**
   * When the run's task becomes due. `now`: at once. `at`/`in`: at an instant, or so many milliseconds after the commit.
   * `held`: never by itself, `Transition.release` frees it. `owned`: it belongs to the committing worker from birth
   * (its first delivery), allowed only in a fenced commit.
   */
  readonly due: { readonly kind: "now" | "held" | "owned" } | { readonly kind: "at" | "in"; readonly ms: number };
}

/** A message for a run's inbox, addressed to a run that any worker may own. */
export interface Message {
  readonly to: string;
  readonly kind: string;
  readonly data: string;
}

export interface CursorWrite {
  readonly node: string;
  /** undefined leaves the column as it is. */
  readonly cursor?: string | null;
  readonly progress?: string | null;
}

/** What becomes of a run's task, and of the columns of its row that are computed from the log. */
export type NextTaskState =
  /** Stays with its owner; only in a fenced commit. No row of `runs` or `tasks` is touched. */
  | { readonly kind: "keep" }
  /**
   * Owner is cleared, deliveries go back to 0, `status` and `waiting` are written, `startedAt` is written unless set.
   * The task becomes due at the earlier of `wakeAt` (an instant) and `wakeInMs` (milliseconds after the commit); with both
   * null only mail or a commit can move it. wakeInMs 0 (or an instant that has passed) makes it ready.
   * `route` and `priority` are written to the task alone; the run's row keeps what it was born with.
   * `keepsDueTime`, only in a client's commit: the task stays ready, parked or held as it is, and `wakeAt` and `wakeInMs` are
   * null. A client that writes to a run which has not begun cannot know when it is to begin: its parent may release it,
   * or its time may come, between the client's reads and its commit.
   * Fenced, and mail came that this commit does not drain: the events are written, the run is NOT parked but kept, and
   * `CommitResult.kept` names it. No worker is woken then: the owner goes on by itself.
   */
  | {
      readonly kind: "park";
      readonly status: ActiveStatus;
      readonly waiting: string | null;
      readonly startedAt: number | "now" | null;
      readonly wakeAt: number | null;
      readonly wakeInMs: number | null;
      /**
       * Which workers are asked for it from now on: what claims and hints know the task by. undefined leaves it as it
       * is. At birth it is the name of the workflow.
       */
      readonly route?: string;
      /** undefined leaves it as it is. */
      readonly priority?: number;
      readonly keepsDueTime?: true;
    }
  /** The task's row is deleted and the run's row gets its end; `startedAt` as for park. Refused while it has messages. */
  | {
      readonly kind: "finish";
      readonly status: TerminalStatus;
      readonly output: string | null;
      readonly error: string | null;
      readonly startedAt: number | "now" | null;
    };

/** All that one commit does to one run. A batch holds at most one per run. */
export interface Transition {
  readonly runId: string;
  /** How many events the log has before this; the first of `events` becomes number `after + 1`. */
  readonly afterSeq: number;
  /** Written as ONE row of the events table (a row spans several events when there are several). May be empty. */
  readonly events: readonly NewEvent[];
  readonly next: NextTaskState;
  /** Inbox rows whose content is now in `events`: deleted, and the task's mail count lowered by as many. */
  readonly drainedInboxIds: readonly number[];
  /** Children, born in the same transaction. One whose id exists already is passed over (it is our own). */
  readonly newChildren: readonly NewRun[];
  /** Messages to other runs: stored, their mail counts raised, and a parked addressee made ready at once. To a run without a task: dropped. */
  readonly messages: readonly Message[];
  /** Held runs to be made ready now. Those that are not parked any more are passed over. */
  readonly releasedChildIds: readonly string[];
  readonly cursors: readonly CursorWrite[];
}

/** The empty list that transitions share. */
export const emptyList: readonly never[] = [];

export const keepOwner: NextTaskState = { kind: "keep" };

/** A transition that does what it is told and nothing else: unless `next` says otherwise, the run stays with its owner. */
export function createTransition(
  runId: string,
  afterSeq: number,
  changes: Partial<Omit<Transition, "runId" | "after">> = {},
): Transition {
  return {
    runId,
    afterSeq,
    events: emptyList,
    next: keepOwner,
    drainedInboxIds: emptyList,
    newChildren: emptyList,
    messages: emptyList,
    releasedChildIds: emptyList,
    cursors: emptyList,
    ...changes,
  };
}
