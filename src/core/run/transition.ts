/**
 * A transition contains all changes that one commit makes to one run. Workers and clients compute transitions, and a store
 * writes them. Transitions are plain data: payloads are encoded text, instants are epoch milliseconds of the store's clock.
 */
import type { RunClass } from "../limits/lane.js";
import type { NewEvent } from "./event.js";

/** `running` is not stored: a run is running while a worker owns its task. */
export type RunStatus = "pending" | "running" | "waiting" | "paused" | "completed" | "failed" | "canceled";
export type ActiveStatus = "pending" | "waiting" | "paused";
export type TerminalStatus = "completed" | "failed" | "canceled";

/** The properties that a run is created with. They are stored in the run's row and never change. */
export interface RunSpec {
  readonly id: string;
  /** The name of the workflow. */
  readonly workflow: string;
  /** The version of the definition; "" when the definition has none. */
  readonly version: string;
  /** The name of the queue. */
  readonly queue: string;
  /** Runs with a higher priority are claimed first. */
  readonly priority: number;
  /** The encoded input. */
  readonly input: string;
  /** The type of the hero; null when the run has no hero. */
  readonly heroType: string | null;
  readonly heroId: string | null;
  readonly tags: readonly string[];
  /** The idempotency key of the start, unique per workflow for as long as the run's row exists. */
  readonly startKey: string | null;
  /** Who started the run and why: the JSON of a `CommandAudit`. Absent when that is not known, and in claimed runs. */
  readonly startedBy?: string;
  /**
   * The occurrence of a schedule that the run belongs to: the JSON of a `RunSchedule`. Or what the run has gathered: that of a
   * `RunGathering`, which changes until the run begins. Absent when neither applies.
   */
  readonly schedule?: string;
  /** The run that started this one; null when a client did. */
  readonly parentId: string | null;
  /**
   * The key, in the parent's log, of the call that started this run; in a retry, the link to the retried run is appended.
   */
  readonly parentNode: string | null;
  /** The index of the run among the children of a map; null when no map started it. */
  readonly parentIndex: number | null;
  /** Which attempt at a node of the parent's graph the run executes, from 1; null when it executes no node. */
  readonly parentAttempt: number | null;
}

/** A run that a commit creates. */
export interface NewRun extends RunSpec {
  /** The route by which workers claim the task; undefined means the name of the workflow. */
  readonly route?: string;
  /**
   * A key that is unique among active runs; null when the hero may have several runs. The store clears it when the run
   * ends.
   */
  readonly heroKey: string | null;
  /**
   * When the task becomes due. `now`: at once. `at`: at the instant `ms`. `in`: `ms` milliseconds after the commit. `held`:
   * when a transition of the parent names the run in `releasedChildIds`. `owned`: not now, because the committing worker
   * owns the run from its creation, which counts as the first delivery; `owned` is allowed only in a fenced commit.
   */
  readonly due: { readonly kind: "now" | "held" | "owned" } | { readonly kind: "at" | "in"; readonly ms: number };
  /**
   * By when the run's code must have been executed for the first time. `at`: by the instant `ms`. `in`: within `ms`
   * milliseconds after the task is due, or after the commit if the task is held. The store keeps the instant in a row of
   * its own (`StartDeadlines`). Absent when the run may begin at any time; not together with `owned`.
   */
  readonly startBy?: StartBy;
  /**
   * The class in which the run waits for its slots, if the process that starts it has the code of its workflow; only for runs that are due now. A store may leave the
   * task on its route all the same: then a worker computes the class. Absent for runs without limits.
   */
  readonly runClass?: RunClass;
}

export interface StartBy {
  readonly kind: "at" | "in";
  readonly ms: number;
}

/**
 * The instant by which the run must begin; null if it may begin at any time.
 *
 * @param at the instant of the commit that creates the run
 */
export function startDeadlineOf({ startBy, due }: Pick<NewRun, "startBy" | "due">, at: number): number | null {
  if (startBy === undefined) return null;
  if (startBy.kind === "at") return startBy.ms;
  const dueAt = "ms" in due ? (due.kind === "at" ? due.ms : at + due.ms) : at;
  return Math.max(at, dueAt) + startBy.ms;
}

/** A message for the inbox of a run. */
export interface Message {
  /** The id of the recipient run. */
  readonly to: string;
  /** The type of the command. */
  readonly kind: string;
  /** The encoded rest of the command. */
  readonly data: string;
}

/** A change of the cursor row of a step. An undefined column keeps its value. */
export interface CursorWrite {
  /** The step; "" for the progress of the run itself. */
  readonly node: string;
  readonly cursor?: string | null;
  readonly progress?: string | null;
}

/** How a commit changes the task of a run, and the columns of the run's row that are computed from the log. */
export type NextTaskState =
  /** The worker keeps the run, and the rows of the run and its task are not written. Allowed only in a fenced commit. */
  | { readonly kind: "keep" }
  /**
   * The run is parked: the task has no owner, and its count of deliveries becomes 0. If it waited in a class, it gets the
   * route back that it had before.
   *
   * In a fenced commit the run is not parked if its inbox has messages that the commit does not drain. The store then
   * writes the events, the worker keeps the run, `CommitResult.notParked` names the run, and no other worker is woken.
   */
  | {
      readonly kind: "park";
      readonly status: ActiveStatus;
      /** The parking note. */
      readonly waiting: string | null;
      /** When the run's code was first executed; written only if the row has no such instant yet. */
      readonly startedAt: number | "now" | null;
      /**
       * The task becomes due at the earlier of `wakeAt` (an instant) and `wakeInMs` (milliseconds after the commit), at
       * once if that is not in the future. If both are null, only a message or another commit makes the task due.
       */
      readonly wakeAt: number | null;
      readonly wakeInMs: number | null;
      /** The route by which workers claim the task from now on; undefined keeps it. The run's row is not changed. */
      readonly route?: string;
      /** The priority of the task from now on; undefined keeps it. The run's row is not changed. */
      readonly priority?: number;
      /**
       * The commit does not change when the task is due (ready, parked or held); `wakeAt` and `wakeInMs` are null. Only
       * clients set this, for runs that have not started, because between the client's read and its commit the parent may
       * release such a run, or its start time may pass.
       */
      readonly keepsDueTime?: true;
      /** Deletes the slots of limits that the run holds while a worker executes it. */
      readonly releasesSlots?: true;
    }
  /**
   * The run ends, and its task is deleted. The store refuses the commit if the run's inbox has messages that it does not
   * drain.
   */
  | {
      readonly kind: "finish";
      readonly status: TerminalStatus;
      /** The encoded output of a completed run. */
      readonly output: string | null;
      /** The encoded error of a failed run, or the encoded reason of a canceled one. */
      readonly error: string | null;
      /** The schedule that the run belongs to. It becomes due with this commit, because it may have to start another run. */
      readonly scheduleName?: string;
      /** When the run's code was first executed; written only if the row has no such instant yet. */
      readonly startedAt: number | "now" | null;
      /** Deletes all slots of limits that the run holds. */
      readonly releasesSlots?: true;
    };

/** All changes that one commit makes to one run. A batch contains at most one transition per run. */
export interface Transition {
  readonly runId: string;
  /** The number of events in the log before this transition; the first of `events` becomes number `afterSeq + 1`. */
  readonly afterSeq: number;
  /** New events of the log. All of them are stored in one row of the events table. */
  readonly events: readonly NewEvent[];
  readonly next: NextTaskState;
  /** Inbox rows whose content is now in `events`. They are deleted, and the task's count of pending messages is lowered. */
  readonly drainedInboxIds: readonly number[];
  /**
   * Children that are created in the same transaction. A child whose id already exists was created earlier and is not
   * changed.
   */
  readonly newChildren: readonly NewRun[];
  /** Messages to other runs. A parked recipient becomes ready at once; a message to a run without a task is dropped. */
  readonly messages: readonly Message[];
  /** Held children that become ready. Children that are no longer parked are not changed. */
  readonly releasedChildIds: readonly string[];
  readonly cursors: readonly CursorWrite[];
}

/** One empty list for all transitions, so that none has to allocate its own. */
export const emptyList: readonly never[] = [];

export const keepOwner: NextTaskState = { kind: "keep" };

/** Creates a transition with only these changes. Without `next`, the worker keeps the run. */
export function createTransition(
  runId: string,
  afterSeq: number,
  changes: Partial<Omit<Transition, "runId" | "afterSeq">> = {},
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
