/**
 * The part of a store that concerns limits. A worker sorts the due runs of its workflows with limits into classes, and then
 * asks for the admission of runs of these classes. Runs of other workflows have nothing to do with this.
 *
 * - A slot is held by a row of its own, which is written in the transaction that makes a worker the owner of the run, and
 *   deleted in the one that parks or finishes the run or takes it from a dead worker. What a lane has in use is the number
 *   of these rows, so no counter can differ from them.
 * - A transaction that takes slots locks the row of the lane. Slots are given back without that lock.
 * - Only a ready task has the route of a class. When it gets an owner, or a client parks it, it gets its route back.
 * - A class that found a lane full is blocked on it, and no admission reads it until `wake` names the lane.
 */
import type { RunClass } from "../../core/limits/lane.js";
import type { RunRecord } from "./records.js";
import type { ClaimedTask, Fence, Route } from "./worker.js";

/** A limit as the code defines it. */
export interface LimitSettings {
  readonly name: string;
  /** How many slots each lane has; null: as many as there are runs. */
  readonly concurrency: number | null;
}

/** A due task that has no owner and belongs to no class yet. */
export interface UnsortedTask {
  /** The route of the task. */
  readonly route: string;
  readonly run: RunRecord;
}

export interface UnsortedTasks {
  /** When the store was asked; 0 if it found nothing. */
  readonly at: number;
  /** By priority, then by due time, in each route. */
  readonly tasks: readonly UnsortedTask[];
  /** Whether a class of these routes is not blocked. */
  readonly hasOpenClasses: boolean;
  /** When the next parked task of these routes becomes due; null if none will, or if `limit` tasks are due. */
  readonly nextDueAt: number | null;
}

export interface SortedTask {
  readonly runId: string;
  readonly runClass: RunClass;
  /** Of runs with the same priority, those that have begun are admitted first. */
  readonly hasBegun: boolean;
}

export interface AdmissionRequest {
  readonly fence: Fence;
  /** The routes that the tasks had before they were sorted. */
  readonly routes: readonly Route[];
  readonly limit: number;
}

export interface AdmittedTask extends ClaimedTask {
  /** The lanes in which the run holds a slot now. */
  readonly lanes: readonly string[];
}

export type AdmissionResult =
  | {
      readonly kind: "admitted";
      readonly at: number;
      readonly tasks: readonly AdmittedTask[];
      /** Whether another admission would probably find more. */
      readonly hasMore: boolean;
      /** Lanes with free slots on which classes are blocked: `wake` must be called for them. */
      readonly lanesToWake: readonly FreedSlots[];
    }
  | { readonly kind: "fenced" };

export interface FreedSlots {
  readonly lane: string;
  readonly count: number;
}

/** A lane, for people. */
export interface LaneRecord {
  readonly id: string;
  readonly inUse: number;
}

export interface SlotRecord {
  readonly runId: string;
  readonly lane: string;
  /** The worker that executes the run; null: the run holds the slot until it ends. */
  readonly owner: string | null;
  readonly epoch: number | null;
  readonly at: number;
}

export interface ClassRecord extends RunClass {
  readonly turn: number;
  /** The lane that was full; null when the class is not blocked. */
  readonly blockedOn: string | null;
}

export interface StoredLimit extends LimitSettings {
  readonly createdAt: number;
}

export interface Limits {
  /** Stores the settings; those of a known limit are replaced. */
  register(limits: readonly LimitSettings[]): Promise<void>;
  /** Reads due tasks of these routes, without locks: at most `limit` ready and `limit` parked ones of each route. */
  unsorted(request: { readonly routes: readonly Route[]; readonly limit: number }): Promise<UnsortedTasks>;
  /**
   * Gives tasks the routes of their classes, and creates the classes and lanes that do not exist. Tasks that have an owner, are
   * not due or were sorted meanwhile are left alone.
   */
  sort(tasks: readonly SortedTask[]): Promise<void>;
  /** Makes the worker the owner of runs that may begin, and takes their slots. */
  admit(request: AdmissionRequest): Promise<AdmissionResult>;
  /**
   * Unblocks, for each lane, as many classes as it has freed slots, those with the lowest turns. Must be called after the
   * commit that freed the slots. Returns how many classes were unblocked.
   */
  wake(freed: readonly FreedSlots[]): Promise<number>;
  /**
   * Wakes every lane that has free slots although classes are blocked on it: after a process died between a commit and its
   * call of `wake`, and after a limit was raised. Returns how many classes were unblocked.
   */
  sweep(): Promise<number>;

  /** All limits that were ever registered, ordered by name. */
  list(): Promise<readonly StoredLimit[]>;
  /** The lanes of a limit that have slots in use, ordered by id. */
  lanes(limit: string, page: { readonly after: string | null; readonly limit: number }): Promise<readonly LaneRecord[]>;
  /** The slots that are held, ordered by run and lane: of one lane, of these runs, or a page of all. */
  slots(
    of: { readonly lane: string } | { readonly runIds: readonly string[] } | { readonly afterRunId: string | null },
    limit: number,
  ): Promise<readonly SlotRecord[]>;
  /** The classes with these ids, or a page of all, ordered by id. */
  classes(
    of: { readonly ids: readonly string[] } | { readonly afterId: string | null },
    limit: number,
  ): Promise<readonly ClassRecord[]>;
  /** How many tasks wait in each of these classes, counted up to `cap`. */
  waiting(classIds: readonly string[], cap: number): Promise<ReadonlyMap<string, number>>;
}
