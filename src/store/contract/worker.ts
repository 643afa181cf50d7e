/** Workers as a store sees them: fences, claims, heartbeats. */
import type { Route } from "../../core/run/stored-schema.js";
import type { Damage, RunRecord } from "./records.js";

export type { Route } from "../../core/run/stored-schema.js";

/** Identifies one registration of a worker. A write under a fence that is dead or replaced is refused as a whole. */
export interface Fence {
  readonly workerId: string;
  readonly epoch: number;
}

export interface ClaimRequest {
  readonly fence: Fence;
  readonly routes: readonly Route[];
  readonly limit: number;
  /** The maximum number of tasks per route, so that one busy workflow does not starve the others. */
  readonly limitPerRoute: number;
}

export interface ClaimedTask {
  readonly run: RunRecord;
  /** The route by which the task was claimed. */
  readonly route: string;
  /** The number of claims since an owner last parked the run, including this one; if it exceeds 1, an owner died. */
  readonly deliveries: number;
  readonly pendingMessages: number;
  /** True when the log is certainly empty, so that the worker need not read it. */
  readonly isFresh: boolean;
}

export type ClaimResult =
  | {
      readonly kind: "claimed";
      readonly at: number;
      readonly tasks: readonly ClaimedTask[];
      /** When the next parked task of these routes becomes due; null if unknown or if the claim reached its limit. */
      readonly nextDueAt: number | null;
    }
  | { readonly kind: "fenced" };

export interface WorkerInfo {
  readonly id: string;
  readonly name: string;
  readonly host: string;
  readonly pid: number;
  /** The port of the process's health endpoint; null without one. */
  readonly port: number | null;
  readonly routes: readonly Route[];
  readonly leaseMs: number;
  /** The set of schedules that the worker declares (`ScheduleRecord.setKey`); absent when it declares none. */
  readonly scheduleSet?: string;
}

/** The schedules that a worker fires: those of its set, and those that were put by the API. */
export interface ScheduleInterest {
  /** The application whose schedules the worker declares; null when it declares none. */
  readonly app: string | null;
  /** The set that it declares; "" when it declares none. */
  readonly setKey: string;
}

/** How many runs of one route and version a worker executes. */
export interface ExecutingCount {
  readonly route: string;
  readonly version: string;
  readonly count: number;
}

/** What a worker reports of itself with a heartbeat, for people who look at the workers. */
export interface WorkerLoad {
  readonly executing: readonly ExecutingCount[];
  /** The longest delay of the event loop of its process since the heartbeat before, in whole milliseconds. */
  readonly loopLagMs: number;
}

export interface WorkerRecord extends WorkerInfo {
  readonly epoch: number;
  readonly live: boolean;
  readonly startedAt: number;
  readonly heartbeatAt: number;
  /**
   * What the worker was executing as of its last heartbeat; empty when it is dead. The store does not count the tasks that
   * the worker owns: without an index of owned tasks, which would cost every claim a write, that would read all open tasks.
   */
  readonly executing: readonly ExecutingCount[];
  /** `WorkerLoad.loopLagMs` of its last heartbeat; null when it is dead or has not reported it yet. */
  readonly loopLagMs: number | null;
  /** Set only when the row is damaged. */
  readonly damage?: Damage;
}

export interface HeartbeatResult {
  /** False when this fence is dead; then the heartbeat did nothing. */
  readonly isAlive: boolean;
  /** Runs of this worker that have undrained messages. */
  readonly ownedWithMessages: readonly string[];
  /** Workers whose lease had expired: they were marked dead, and then their tasks were made ready. */
  readonly reapedWorkerIds: readonly string[];
  /** The names of the paused queues; empty if this fence is dead. */
  readonly pausedQueues: readonly string[];
  /** How long until the next of the worker's schedules must be looked at, negative if it is overdue; null: there is none. */
  readonly nextScheduleInMs: number | null;
  /** How long until the earliest start deadline of any run, negative if it has passed; null: no run has one. */
  readonly nextStartDeadlineInMs: number | null;
  /** How long until a slot of a limit may have to be offered to a run (`Limits.offerSlots`), negative if it is overdue; null: never. */
  readonly nextOfferInMs: number | null;
  /** The set of schedules of the worker's application that is in force; null if there is none. */
  readonly scheduleSetInForce: string | null;
}
