/** The rows of a store as they are read, and the filter for lists of runs. */
import type { RunSpec, RunStatus } from "../../core/run/transition.js";

/** A column that the store could not decode. The record's field holds a placeholder. */
export interface Damage {
  readonly column: string;
  readonly problem: string;
}

/** A run's row. `status` is "running" exactly while a worker owns the run's task. */
export interface RunRecord extends RunSpec {
  readonly status: RunStatus;
  readonly output: string | null;
  readonly error: string | null;
  /**
   * What the run waits for, encoded by the caller at the last park. Once the run has ended, the store writes the number
   * of events in its log here, so that `verify` can tell a truncated log from a complete one.
   */
  readonly waiting: string | null;
  readonly createdAt: number;
  readonly startedAt: number | null;
  readonly finishedAt: number | null;
  /** Set only when the row is damaged. The store does not check the payloads that the caller encoded. */
  readonly damage?: Damage;
}

/** A task's row: when its run is due and which worker owns the run. The row exists exactly until the run ends. */
export interface TaskRecord {
  readonly runId: string;
  /**
   * The name by which claims find the task: the workflow's, unless the start or a park has set another route. Such a route
   * contains a tab, which no name of a workflow does (core/naming/route.ts). If the task waits in a class, it is the route
   * that the task had before.
   */
  readonly route: string;
  /** The class in which the task waits for slots of limits; missing if it waits in none. */
  readonly classId?: string;
  readonly state: "parked" | "ready" | "owned";
  /** When the task becomes or became due; null while only a message or another commit can make it ready. */
  readonly dueAt: number | null;
  readonly owner: string | null;
  readonly epoch: number | null;
  /** The number of claims since an owner last parked the run. */
  readonly deliveries: number;
  /** The number of undrained rows in the run's inbox. */
  readonly pendingMessages: number;
}

export interface InboxRow {
  /** Within a run, ids grow in the order of arrival. */
  readonly id: number;
  readonly kind: string;
  readonly data: string;
  readonly at: number;
}

/** The saved position of a resumable step, and the progress that a step has reported. */
export interface CursorRow {
  readonly node: string;
  readonly cursor: string | null;
  readonly progress: string | null;
  readonly at: number;
}

export interface WorkflowRecord {
  readonly name: string;
  readonly queue: string;
  readonly version: string;
  readonly signature: string | null;
  readonly graph: string | null;
  readonly createdAt: number;
}

/**
 * Registering is idempotent: a field that is null keeps its stored value, any other overwrites it. A new workflow
 * without a queue gets one of its own name; without a version it gets "".
 */
export interface WorkflowRegistration {
  readonly name: string;
  readonly queue: string | null;
  readonly version: string | null;
  readonly signature: string | null;
  readonly graph: string | null;
}

export interface RunFilter {
  readonly workflow?: string;
  readonly status?: RunStatus;
  /** true selects only runs that have not ended, false only runs that have ended. */
  readonly active?: boolean;
  readonly heroType?: string;
  readonly heroId?: string;
  /** The idempotency key of the start; together with `workflow` it identifies one run. */
  readonly startKey?: string;
  readonly tag?: string;
  /** null selects only runs without a parent. */
  readonly parentId?: string | null;
  readonly createdAfter?: number;
  readonly createdBefore?: number;
  readonly limit: number;
  /**
   * The list contains only runs that come after this position. Lists are ordered newest first (by createdAt, then id,
   * both descending).
   */
  readonly after?: { readonly createdAt: number; readonly id: string };
}
