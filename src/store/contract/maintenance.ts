/**
 * What operators and housekeeping ask of a store: what is old, what waits, what is paused. Nothing in here is on the way
 * of a run: it may take its time, and no index exists for its sake.
 */

import type { RunStatus } from "../../core/run/transition.js";
import type { Audit } from "./audit.js";
import type { WorkflowRecord } from "./records.js";
import type { WorkerRecord } from "./worker.js";

/** Where a run is in the order of age. */
export interface AgePosition {
  readonly createdAt: number;
  readonly id: string;
}

export interface RootRun extends AgePosition {
  readonly finishedAt: number | null;
  /** Only such a run may have been retried. */
  readonly hasFailed: boolean;
}

export interface RootRunsPage {
  readonly createdBefore: number;
  readonly workflow: string | null;
  /** Only those that come after this one; null: from the oldest. */
  readonly after: AgePosition | null;
  readonly limit: number;
}

/** Children come in the order of their parents' ids, then of their own. */
export interface ChildKey {
  readonly parentId: string;
  readonly id: string;
}

export interface ChildRun extends ChildKey {
  readonly finishedAt: number | null;
  readonly hasFailed: boolean;
}

/** What metrics are made of. */
export interface RunSample {
  readonly status: RunStatus;
  readonly createdAt: number;
  readonly startedAt: number | null;
  readonly finishedAt: number | null;
}

/** Tasks that claims know by this route (see `Next`) and version. */
export interface RouteBacklog {
  readonly route: string;
  readonly version: string;
  /** Those that nobody has: ready, or parked until a time that has come. */
  readonly dueCount: number;
  readonly oldestDueAt: number;
}

export interface OwnedTaskCount {
  readonly route: string;
  readonly version: string;
  readonly ownedCount: number;
}

export interface PausedQueue {
  readonly name: string;
  readonly pausedAt: number;
  readonly reason: string | null;
}

/** What a worker can execute, and when it was last heard of. */
export type WorkerRoutes = Pick<WorkerRecord, "routes" | "live" | "heartbeatAt" | "leaseMs">;

/** A run that waits for a child of this route, which is due and which no worker has taken. */
export interface WaitingParent {
  readonly parentId: string;
  readonly route: string;
}

export interface Maintenance {
  /** Runs without a parent, the oldest first (created_at, id). */
  rootRuns(page: RootRunsPage): Promise<readonly RootRun[]>;
  childRuns(
    parentIds: readonly string[],
    page: { readonly after: ChildKey | null; readonly limit: number },
  ): Promise<readonly ChildRun[]>;
  /**
   * Deletes those of the runs that have ended, with their events, cursors and what is left of their inboxes. All of them
   * or none; their keys may be used again. Returns how many there were.
   */
  deleteRuns(runIds: readonly string[]): Promise<number>;
  /** The ids of workers that count as live but were last heard of before this (real) instant. There should be none. */
  expiredWorkers(options: { readonly lastHeartbeatBefore: number }): Promise<readonly string[]>;
  /** Deletes the rows of dead workers that were last heard of before this (real) instant and own nothing. Returns their names. */
  deleteDeadWorkers(options: { readonly lastHeartbeatBefore: number }): Promise<readonly string[]>;

  /** Of all known workers, live and dead. Unlike `Store.workers` it does not count what they own: that may read all open tasks. */
  workerRoutes(): Promise<readonly WorkerRoutes[]>;
  /** Parents that are neither paused nor have mail, each once per route, in the order of their ids; at most `limit`. */
  parentsWaitingFor(routes: readonly string[], limit: number): Promise<readonly WaitingParent[]>;

  /** Runs of a workflow that were born at this instant or later, the newest first. */
  runSamples(workflow: string, page: { readonly since: number; readonly limit: number }): Promise<readonly RunSample[]>;
  /** Counts what is due, by index: however many tasks sleep. Routes with nothing due are missing. */
  backlog(): Promise<readonly RouteBacklog[]>;
  /** Counts what is owned. Reads all open tasks where no index tells the owned from the sleeping: every claim would pay for it. */
  ownedTaskCounts(): Promise<readonly OwnedTaskCount[]>;
  /** All that were ever registered, by name. */
  workflows(): Promise<readonly WorkflowRecord[]>;

  /** By name. `BeatResult` tells workers the same. */
  pausedQueues(): Promise<readonly PausedQueue[]>;
  /** One that is paused stays so since then, with this reason. Whoever listens is told to look at everything. */
  pauseQueue(name: string, reason: string | null): Promise<void>;
  resumeQueue(name: string): Promise<void>;

  /** What `verify` reads. */
  readonly audit: Audit;
}
