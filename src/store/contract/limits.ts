/**
 * The part of a store that concerns limits. A worker sorts the due runs of its workflows with limits into classes, and then
 * asks for the admission of runs of these classes. Runs of other workflows have nothing to do with this.
 *
 * - A slot is held by a row of its own, which is written in the transaction that makes a worker the owner of the run, and
 *   deleted in the one that parks or finishes the run or takes it from a dead worker. What a lane has in use is the number
 *   of these rows, so no counter can differ from them.
 * - A transaction that takes slots locks the row of the lane. Slots are given back without that lock.
 * - A step that waits for a slot has such a row, too, which is marked as waiting. What waits has no part in what is in use.
 * - A run that does nothing but wait for slots of steps is parked, and the rows of its steps have no owner from then on. A free
 *   slot is offered to such a step: it counts as in use until the run is executed again, or until the offer lapses.
 * - Other slots without an owner belong to runs that hold them until they end. Only the end of the run deletes them.
 * - Only a ready task has the route of a class. When it gets an owner, or a client parks it, it gets its route back.
 * - A class that found a lane full is blocked on it, and no admission reads it until the lane is named as freed: in
 *   `AdmissionRequest.freed` or by `wake`. Such a class may belong to other workers; then it is opened for them.
 */
import type { FullLaneVerdict, FullPolicy } from "../../core/limits/full-lane.js";
import type { RunClass } from "../../core/limits/lane.js";
import type { LimitOverride, LimitValues } from "../../core/limits/settings.js";
import type { LimitRefusal } from "../../core/run/full-limit.js";
import type { RunRecord } from "./records.js";
import type { ClaimedTask, Fence, Route } from "./worker.js";

export type { LimitRefusal };

/** A limit as the code defines it. */
export interface LimitSettings extends LimitValues {
  readonly name: string;
  /** Whether runs hold their slot from the first execution to the end, not only while a worker executes them. */
  readonly isHeldOpen: boolean;
  /** What becomes of runs that have not begun and find a lane full; absent: they wait. */
  readonly whenFull?: FullPolicy;
}

/** A due task that has no owner and belongs to no class yet. */
export interface UnsortedTask {
  /** The route of the task. */
  readonly route: string;
  /** When it became due. */
  readonly dueAt: number;
  readonly run: RunRecord;
}

export interface UnsortedTasks {
  /** When the store was asked; 0 if it found nothing. */
  readonly at: number;
  /** By priority, then by due time, in each route. */
  readonly tasks: readonly UnsortedTask[];
  /** Whether a class of these routes is not blocked. */
  readonly hasOpenClasses: boolean;
  /** Lanes on which classes are blocked, and whose rate lets the next run begin now. They count as freed. */
  readonly openedLanes: readonly string[];
  /**
   * When the next parked task of these routes becomes due, or the next lane opens; null if none will, or if `limit` tasks are
   * due.
   */
  readonly nextDueAt: number | null;
}

export interface SortedTask {
  readonly runId: string;
  /**
   * When the task became due, as it was read. A task that became due at another time was executed meanwhile, and may hold slots
   * since that its class must not ask for again; it is left alone. Absent: any time.
   */
  readonly dueAt?: number;
  readonly runClass: RunClass;
  /** Of runs with the same priority, those that have begun are admitted first. */
  readonly hasBegun: boolean;
  /** The lanes whose limits have a policy for runs that find them full, in the order of the limits; absent: none. */
  readonly guardedLanes?: readonly string[];
}

export interface SortResult {
  /** The runs that do not begin, or are to be canceled, because a lane was full. Each has a message that says so. */
  readonly verdicts: readonly FullLaneVerdict[];
  /** Whether tasks were left where they are because others have locked a run that would be canceled for them. */
  readonly hasPostponed: boolean;
}

export interface AdmissionRequest {
  readonly fence: Fence;
  /** The routes that the tasks had before they were sorted. */
  readonly routes: readonly Route[];
  readonly limit: number;
  /** Lanes that may have free slots again: of the classes that are blocked on them, those with the lowest turns are read. */
  readonly freed?: readonly FreedSlots[];
}

export interface AdmittedTask extends ClaimedTask {
  /** The lanes in which the run holds a slot now. */
  readonly lanes: readonly string[];
  /** Of these, the lanes in which it holds the slot until it ends. */
  readonly openLanes: readonly string[];
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

/** A step that is to hold a slot while its body runs. */
export interface StepSlotRequest {
  readonly runId: string;
  /** The attempt at the step; unique in the run. */
  readonly node: string;
  readonly lane: string;
  /** Higher priorities come first. */
  readonly priority: number;
  /** How much of the rate it takes. */
  readonly units: number;
}

export type StepSlot = Pick<StepSlotRequest, "runId" | "node" | "lane">;

export interface StepSlotChanges {
  readonly fence: Fence;
  /** Steps that wait for a slot from now on. Those that wait or hold one already are not changed. */
  readonly asked: readonly StepSlotRequest[];
  /** Slots that are given back, and steps that do not wait any longer. */
  readonly released: readonly StepSlot[];
  /**
   * Steps of runs that are about to be parked. Those that still wait then belong to the run and not to the worker: they keep their
   * place, and the next step of this name that the run asks for in the lane takes it over. Those that have got a slot keep it.
   * Absent: none.
   */
  readonly left?: readonly StepSlot[];
  /** Further lanes in which steps of the worker wait. */
  readonly lanes: readonly string[];
}

export type StepSlotResult =
  | {
      readonly kind: "granted";
      readonly at: number;
      /** The slots that steps of the worker hold in the lanes of the request, also those that were granted before. */
      readonly held: readonly StepSlot[];
      /** When the rate of a lane in which steps of the worker wait lets the next one begin; null if no rate delays them. */
      readonly nextAt: number | null;
      /** When `offerSlots` must look at one of the lanes; null if no run waits in them that no worker executes. */
      readonly looksAt: number | null;
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
  /** How many steps wait for a slot. */
  readonly waitingSteps: number;
  /** When it opens although no slot was given back; null if nothing waits for that. */
  readonly opensAt: number | null;
}

/** How much of a limit is used, in all its lanes together. */
export interface LimitUsage {
  readonly name: string;
  readonly inUse: number;
  /** How many steps wait for a slot. */
  readonly waitingSteps: number;
  /** Whether there are more rows than were counted. */
  readonly isCapped: boolean;
}

export interface SlotRecord {
  readonly runId: string;
  /** The attempt at a step that has the slot; "" if the run has it. */
  readonly node: string;
  readonly lane: string;
  /** Whether the step still waits for the slot. */
  readonly isWaiting: boolean;
  /**
   * The worker that executes the run. null: the run holds the slot until it ends, or, if the slot is that of a step, no worker
   * executes the run: it waits for the slot, or the slot is offered to it.
   */
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
  /** What was set in place of these values. It may have ended. */
  readonly override: LimitOverride | null;
  readonly createdAt: number;
}

export interface Limits {
  /** Stores the settings; those of a known limit are replaced, but not its override. */
  register(limits: readonly LimitSettings[]): Promise<void>;
  /** Sets or clears what is in force in place of the settings. Returns whether the limit is known. */
  override(name: string, override: LimitOverride | null): Promise<boolean>;
  /** Reads due tasks of these routes, without locks: at most `limit` ready and `limit` parked ones of each route. */
  unsorted(request: { readonly routes: readonly Route[]; readonly limit: number }): Promise<UnsortedTasks>;
  /**
   * Gives tasks the routes of their classes, and creates the classes and lanes that do not exist. Tasks that have an owner, are
   * not due or were sorted meanwhile are left alone.
   *
   * Tasks with guarded lanes are judged in the same transaction, which locks their lanes (see core/limits/full-lane.ts). A run
   * that is not to begin gets a message that says so, and a class without lanes, so that a worker takes it at once and ends it.
   * A run that is canceled for another one gets a message as well; if it holds a slot, that is marked, and the run is not
   * chosen again.
   */
  sort(tasks: readonly SortedTask[]): Promise<SortResult>;
  /**
   * The opposite of `sort`, for workflows that have lost their limits: some of the tasks that wait in classes of these routes get
   * their routes back, and classes without tasks are deleted. Returns 0 when nothing was left to do.
   */
  unsort(routes: readonly Route[]): Promise<number>;
  /**
   * Takes runs that wait for slots out of their classes, with a message that says why they can never have one, so that a worker
   * ends them. Runs that do not wait any more, or that others have locked, are left alone. Returns the ids of the others.
   */
  refuse(refusals: readonly LimitRefusal[]): Promise<readonly string[]>;
  /** Makes the worker the owner of runs that may begin, and takes their slots. */
  admit(request: AdmissionRequest): Promise<AdmissionResult>;
  /**
   * Unblocks, for each lane, as many classes as it has freed slots, those with the lowest turns. Must be called after the
   * commit that freed the slots. Returns how many classes were unblocked.
   */
  wake(freed: readonly FreedSlots[]): Promise<number>;
  /**
   * Wakes every lane that has free slots although classes are blocked on it: after a process died between a commit and its
   * call of `wake`, and after a limit was raised. Of a lane that opens at another instant since its limit was changed, it wakes one
   * class, so that the next admission writes the instant. Returns how many classes were unblocked.
   */
  sweep(): Promise<number>;
  /** Removes some of the lanes that are not in use, and slots that runs have kept which ended under a release without the limit. */
  tidy(): Promise<void>;

  /**
   * Steps wait for slots, get them and give them back, in one transaction. Slots go to the steps that come first, also to those
   * of other workers, which hear of it by a hint.
   */
  changeStepSlots(changes: StepSlotChanges): Promise<StepSlotResult>;
  /**
   * Looks at lanes in which runs wait that no worker executes, if that is due: a slot that is free is offered to the first of
   * them, which makes its task due, and an offer that has lapsed goes to the next. A look is due when an offer ends, when a rate
   * or an override opens the lane, and otherwise every few seconds, because a worker may have died with slots of it. Any worker
   * may look. Returns the store's time, and when the next look is due; null: no run waits.
   */
  offerSlots(): Promise<{ readonly at: number; readonly nextAt: number | null }>;
  /** Corrects the pace of a lane by units that were used in addition to those that were admitted, or fewer (negative). */
  addUnits(lane: string, units: number): Promise<void>;

  /** All limits that were ever registered, ordered by name. */
  list(): Promise<readonly StoredLimit[]>;
  /** How much of each limit is used; at most `cap` slots and waiting steps of each are counted. */
  usage(names: readonly string[], cap: number): Promise<readonly LimitUsage[]>;
  /** The lanes of a limit that have slots in use or wait for their rate, ordered by id; or the one that `id` names. */
  lanes(
    limit: string,
    page: { readonly after: string | null; readonly limit: number; readonly id?: string },
  ): Promise<readonly LaneRecord[]>;
  /** The slots that are held in these lanes, at most `limit` of each, those that have been held the longest first. */
  holders(lanes: readonly string[], limit: number): Promise<readonly SlotRecord[]>;
  /**
   * The slots that are held and the steps that wait for one, ordered by run, lane and node: of one lane, of these runs, or a
   * page of all, whose first run follows `afterRunId`. A run's rows are never split between pages.
   */
  slots(
    of: { readonly lane: string } | { readonly runIds: readonly string[] } | { readonly afterRunId: string | null },
    limit: number,
  ): Promise<readonly SlotRecord[]>;
  /** The classes with these ids, or a page of all, ordered by id. */
  classes(
    of: { readonly ids: readonly string[] } | { readonly afterId: string | null },
    limit: number,
  ): Promise<readonly ClassRecord[]>;
  /**
   * The classes that are blocked on each of these lanes, or on the lanes of each of these limits, or that are not blocked: at
   * most `limit` of each. Those of one lane are ordered by turn.
   */
  blockedClasses(
    on: { readonly lanes: readonly string[] } | { readonly limits: readonly string[] } | { readonly nothing: true },
    limit: number,
  ): Promise<readonly ClassRecord[]>;
  /** The waiting runs of a class that come first, in the order of their admission. */
  heads(runClass: Pick<RunClass, "id" | "version">, limit: number): Promise<readonly string[]>;
  /** How many tasks wait in each of these classes, counted up to `cap`. */
  waiting(classIds: readonly string[], cap: number): Promise<ReadonlyMap<string, number>>;
}
