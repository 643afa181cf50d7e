/** What a store knows of workers: their fences, what they claim, their signs of life. */
import type { Route } from "../../core/run/stored-schema.js";
import type { Damage, RunRecord } from "./records.js";

export type { Route } from "../../core/run/stored-schema.js";

/** Proof of being the live owner of a worker row. A write under a stale fence is refused as a whole. */
export interface Fence {
  readonly workerId: string;
  readonly epoch: number;
}

export interface ClaimRequest {
  readonly fence: Fence;
  readonly routes: readonly Route[];
  /** In all, and per route, so that one busy workflow cannot starve the others. */
  readonly limit: number;
  readonly limitPerRoute: number;
}

export interface ClaimedTask {
  readonly run: RunRecord;
  /** Claims since the run was last parked by an owner, this one included: 2 and more means its owner died. */
  readonly deliveries: number;
  readonly pendingMessages: number;
  /** True when the log is certainly empty, so that it need not be read. */
  readonly isFresh: boolean;
}

export type ClaimResult =
  | {
      readonly kind: "claimed";
      readonly at: number;
      readonly tasks: readonly ClaimedTask[];
      /** When the next parked task of these routes becomes due, as far as known; null: none, or more are due already. */
      readonly nextDueAt: number | null;
    }
  | { readonly kind: "fenced" };

export interface WorkerInfo {
  readonly id: string;
  readonly name: string;
  readonly host: string;
  readonly pid: number;
  /** On which its process can be asked how it is, if there is one. */
  readonly port: number | null;
  readonly routes: readonly Route[];
  readonly leaseMs: number;
}

export interface WorkerRecord extends WorkerInfo {
  readonly epoch: number;
  readonly live: boolean;
  readonly startedAt: number;
  readonly heartbeatAt: number;
  /** How many tasks it owns now. */
  readonly ownedTaskCount: number;
  /** Only of a damaged row. */
  readonly damage?: Damage;
}

export interface HeartbeatResult {
  /** False: this fence is dead. Nothing else was done. */
  readonly isAlive: boolean;
  /** Own runs that have undrained mail. */
  readonly ownedWithMessages: readonly string[];
  /** Workers that were silent for longer than their lease: marked dead first, then their tasks were made ready. */
  readonly reapedWorkerIds: readonly string[];
  /** The names of the queues that are paused; none if this fence is dead. */
  readonly pausedQueues: readonly string[];
}
