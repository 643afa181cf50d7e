/**
 * The part of a store that operators and the workers' housekeeping use: old runs, backlogs, dead workers, paused
 * queues. No run waits for these calls, so they may be slow, and no index exists for them alone.
 */

import type { RunStatus } from "../../core/run/transition.js";
import type { Audit } from "./audit.js";
import type { Questions } from "./questions.js";
import type { WorkflowRecord } from "./records.js";
import type { DatabaseSize } from "./size.js";
import type { StartDeadlines } from "./start-deadlines.js";
import type { WorkerRecord } from "./worker.js";

/** A run's position when runs are ordered by age. */
export interface AgePosition {
  readonly createdAt: number;
  readonly id: string;
}

export interface RootRun extends AgePosition {
  readonly finishedAt: number | null;
  /** Whether the run failed: pruning searches only for retries of failed runs. */
  readonly hasFailed: boolean;
}

export interface RootRunsPage {
  readonly createdBefore: number;
  readonly workflow: string | null;
  /** The page contains only runs after this position; null starts with the oldest run. */
  readonly after: AgePosition | null;
  readonly limit: number;
}

/** A child's position: children are ordered by the id of their parent, then by their own. */
export interface ChildKey {
  readonly parentId: string;
  readonly id: string;
}

export interface ChildRun extends ChildKey {
  readonly finishedAt: number | null;
  readonly hasFailed: boolean;
}

/** The part of a run's row from which metrics are computed. */
export interface RunSample {
  readonly status: RunStatus;
  readonly createdAt: number;
  readonly startedAt: number | null;
  readonly finishedAt: number | null;
}

/** The due tasks of one route and version. */
export interface RouteBacklog {
  readonly route: string;
  readonly version: string;
  /** Tasks without an owner that are ready, or parked until an instant that has passed. */
  readonly dueCount: number;
  /** Whether there are more tasks than were counted. */
  readonly isCapped: boolean;
  /** When the task that has been due for the longest time became due. */
  readonly oldestDueAt: number;
}

export interface PausedQueue {
  readonly name: string;
  readonly pausedAt: number;
  readonly reason: string | null;
  /** Who has paused it; null when that is not known. */
  readonly by: string | null;
}

/** A worker's routes, and the fields from which `isWorkerLive` decides whether the worker is live. */
export type WorkerRoutes = Pick<WorkerRecord, "routes" | "live" | "heartbeatAt" | "leaseMs">;

/** A run that waits for a child of this route; the child's task is due and has no owner. */
export interface WaitingParent {
  readonly parentId: string;
  readonly route: string;
}

export interface Maintenance {
  /** A page of the runs without a parent, the oldest first (by createdAt, then id). */
  rootRuns(page: RootRunsPage): Promise<readonly RootRun[]>;
  /** The children of these runs, in the order of `ChildKey`. */
  childRuns(
    parentIds: readonly string[],
    page: { readonly after: ChildKey | null; readonly limit: number },
  ): Promise<readonly ChildRun[]>;
  /**
   * Deletes the runs that have ended, with their events, cursors and inbox rows; runs that have not ended are left
   * alone. A run is deleted with all its rows or not at all, and its keys are free again. Returns the number of deleted
   * runs.
   */
  deleteRuns(runIds: readonly string[]): Promise<number>;
  /**
   * The ids of workers that are marked live although their last heartbeat was before this instant of the real clock.
   */
  expiredWorkers(options: { readonly lastHeartbeatBefore: number }): Promise<readonly string[]>;
  /**
   * Deletes the rows of dead workers whose last heartbeat was before this instant of the real clock and that own no
   * task. Returns the names of the deleted workers.
   */
  deleteDeadWorkers(options: { readonly lastHeartbeatBefore: number }): Promise<readonly string[]>;

  /** The routes of all known workers, live and dead. */
  workerRoutes(): Promise<readonly WorkerRoutes[]>;
  /**
   * The parents of runs whose tasks have one of these routes, are due and have no owner: at most `limit`, each once per
   * route, ordered by id. Parents that are paused or have undrained messages are left out.
   */
  parentsWaitingFor(routes: readonly string[], limit: number): Promise<readonly WaitingParent[]>;

  /** Runs of a workflow that were created at `since` or later, the newest first. */
  runSamples(workflow: string, page: { readonly since: number; readonly limit: number }): Promise<readonly RunSample[]>;
  /**
   * Counts the due tasks of each route through an index, so that tasks that are due later are not read: at most `cap`
   * ready tasks and `cap` parked tasks of each route and version. Routes without a due task are missing from the result.
   */
  backlog(options: { readonly cap: number }): Promise<readonly RouteBacklog[]>;
  /**
   * How many tasks each of these workers owns; a worker that owns none is missing from the result. A database without an
   * index of owned tasks reads all open tasks for this, so it is for rare checks only.
   */
  ownedTaskCounts(workerIds: readonly string[]): Promise<ReadonlyMap<string, number>>;
  /** All workflows that were ever registered, ordered by name. */
  workflows(): Promise<readonly WorkflowRecord[]>;

  /**
   * What the tables contain. Rows are counted up to `cap` in each table; larger numbers are estimates of the database where it
   * has them.
   */
  size(options: { readonly cap: number }): Promise<DatabaseSize>;

  /** All paused queues, ordered by name. Workers get the names with each `HeartbeatResult`. */
  pausedQueues(): Promise<readonly PausedQueue[]>;
  /** A queue that is already paused keeps its `pausedAt` and gets this reason and author. All watchers get the hint "anything". */
  pauseQueue(name: string, reason: string | null, by: string | null): Promise<void>;
  resumeQueue(name: string): Promise<void>;

  /** The reads that `verify` makes. */
  readonly audit: Audit;
  /** The instants by which runs must begin. */
  readonly startDeadlines: StartDeadlines;
  /** The bounded reads behind lists, counts and figures. */
  readonly questions: Questions;
}
