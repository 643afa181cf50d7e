/** The rows of a store, as they are read. */
import type { RunSpec, RunStatus } from "../../core/run/transition.js";

/** A column that a store could not read. The field of the record has a stand-in. */
export interface Damage {
  readonly column: string;
  readonly problem: string;
}

/** A run's row as it is read. `status` is "running" exactly while a worker owns its task. */
export interface RunRecord extends RunSpec {
  readonly status: RunStatus;
  readonly output: string | null;
  readonly error: string | null;
  /**
   * Encoded by the caller at the last park: what the run waits for. Of a run that has ended: the number of events in its
   * log, written by the store, so that a log that lost its end can be told from one that never had it.
   */
  readonly waiting: string | null;
  readonly createdAt: number;
  readonly startedAt: number | null;
  readonly finishedAt: number | null;
  /** Only of a damaged row. What the caller encoded is not looked into here. */
  readonly damage?: Damage;
}

/** A task's row: what is due, and who has it. It exists exactly as long as its run is not terminal. */
export interface TaskRecord {
  readonly runId: string;
  /** What claims know it by, see `Next`. */
  readonly route: string;
  readonly state: "parked" | "ready" | "owned";
  /** When it becomes (or became) due; null while only a message can move it. */
  readonly dueAt: number | null;
  readonly owner: string | null;
  readonly epoch: number | null;
  /** Claims since it was last parked by its owner. */
  readonly deliveries: number;
  /** Undrained rows in its inbox. */
  readonly pendingMessages: number;
}

export interface InboxRow {
  /** Grows in the order of arrival within a run. */
  readonly id: number;
  readonly kind: string;
  readonly data: string;
  readonly at: number;
}

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

/** Idempotent: what is null stays as it is (a new one gets a queue of its own name and version ""), the rest overwrites. */
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
  /** Not terminal. */
  readonly active?: boolean;
  readonly heroType?: string;
  readonly heroId?: string;
  /** The idempotency key of its start; with `workflow` it names one run. */
  readonly startKey?: string;
  readonly tag?: string;
  /** null: only runs that no other run has started. */
  readonly parentId?: string | null;
  readonly createdAfter?: number;
  readonly createdBefore?: number;
  readonly limit: number;
  /** Newest first: only runs that come after this one in that order (created_at desc, id desc). */
  readonly after?: { readonly createdAt: number; readonly id: string };
}
