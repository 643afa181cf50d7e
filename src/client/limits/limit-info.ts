/** What `pawl.limits` returns and takes. */

import type { OnFull } from "../../core/limits/full-lane.js";
import { stepOfSlot } from "../../core/limits/lane.js";
import { type LimitOverride, valuesInForce } from "../../core/limits/settings.js";
import type { Duration } from "../../core/naming/duration.js";
import type { RateOptions } from "../../define/limit.js";
import type { SlotRecord, StoredLimit } from "../../store/contract/limits.js";

/** How many runs, or units of steps, may begin in a time. */
export interface LimitRate {
  /** How many may begin in the time. */
  readonly limit: number;
  /** The time, in milliseconds. */
  readonly perMs: number;
  /** How many may begin at once, in addition to the first. */
  readonly burst: number;
}

/** What is in force in place of the values of the code. */
export interface LimitOverrideInfo {
  /** The concurrency; null: any number; absent: that of the code. */
  readonly concurrency?: number | null;
  /** The rate; null: any number; absent: that of the code. */
  readonly rate?: LimitRate | null;
  /** When it ends; null: when it is cleared. */
  readonly until: Date | null;
  /** Why it was set; null if that was not said. */
  readonly reason: string | null;
  /** Who set it; null if that was not said. */
  readonly by: string | null;
  /** When it was set. */
  readonly at: Date;
}

/** Options of `pawl.limits.override(name, options)`. */
export interface OverrideOptions {
  /** The concurrency in place of that of the code; null: any number. */
  readonly concurrency?: number | null;
  /** The rate in place of that of the code; null: any number. */
  readonly rate?: RateOptions | null;
  /** When it ends: a Date, milliseconds since 1970, or a duration from now such as `"2 hours"`. Default: when it is cleared. */
  readonly until?: Date | number | Duration;
  /** Why. */
  readonly reason?: string;
  /** Who. */
  readonly by?: string;
}

/** What is in force at the moment: the values of the code, or those of an override. */
export interface LimitValuesInForce {
  /** How many runs or steps of one key may hold a slot at a time; null: any number. */
  readonly concurrency: number | null;
  /** How many may begin in a time; null: any number. */
  readonly rate: LimitRate | null;
}

/** Options of `pawl.limits.get(name, options)`. */
export interface LimitPageOptions {
  /** Only the lane of this key, as `LaneInfo.key` has it; "" for that of a limit without one. */
  readonly key?: string;
  /** How many lanes a page has at most, 1 to 1,000. Default 100. */
  readonly limit?: number;
  /** The `next` of the previous page. */
  readonly cursor?: string;
}

/** A limit, as `pawl.limits.list()` returns it. */
export interface LimitInfo {
  /** The name. */
  readonly name: string;
  /** How many runs or steps of one key may hold a slot at a time, as the code says; null: any number. */
  readonly concurrency: number | null;
  /** How many may begin in a time, as the code says; null: any number. */
  readonly rate: LimitRate | null;
  /** While which time a run holds its slot. */
  readonly while: "executing" | "open";
  /** What becomes of a run that has not begun and finds no free slot. */
  readonly onFull: OnFull;
  /** How many runs of one key may wait for a slot before `onFull` applies; null: any number, because all wait. */
  readonly backlog: number | null;
  /** What is in force in place of the values of the code; null: nothing, also when an override has ended. */
  readonly override: LimitOverrideInfo | null;
  /** What is in force: these values, or those of the override. */
  readonly inForce: LimitValuesInForce;
  /** How many slots are held, of all keys together. See `inUseCapped`. */
  readonly inUse: number;
  /** Whether more slots are held than `inUse` says: 10,000 are counted. */
  readonly inUseCapped: boolean;
  /**
   * How many runs and steps wait for a slot or for the rate, of all keys together. A run that needs slots of several limits is
   * counted for the one that was found full. See `waitingCapped`.
   */
  readonly waiting: number;
  /** Whether more wait than `waiting` says: the runs of some hundred keys are counted, 1,000 of each key. */
  readonly waitingCapped: boolean;
  /** When a worker registered it for the first time. */
  readonly createdAt: Date;
}

/** A run that holds a slot, or whose step does. */
export interface SlotHolder {
  /** The id of the run. */
  readonly runId: string;
  /** The key of the step that holds the slot; null: the run holds it. */
  readonly step: string | null;
  /** Since when it holds the slot. */
  readonly since: Date;
}

/** The part of a limit that belongs to one key. */
export interface LaneInfo {
  /** The key; "" for a limit without one, and for runs that have none. A very long key is a hash. */
  readonly key: string;
  /** How many slots are held. */
  readonly inUse: number;
  /** The runs and steps that hold them, at most 20. */
  readonly holders: readonly SlotHolder[];
  /**
   * How many runs and steps wait for a slot or for the rate of this key, counted up to 1,000. A run that needs slots of several
   * limits is counted where no slot was free.
   */
  readonly waiting: number;
  /** Whether more wait than `waiting` says. */
  readonly waitingCapped: boolean;
  /** When the rate lets the next one begin, or an override ends; null if nothing waits for that. */
  readonly nextAt: Date | null;
}

/** A limit with its lanes, as `pawl.limits.get(name)` returns it. */
export interface LimitDetails extends LimitInfo {
  /** A page of the keys with slots in use or with waiting runs, ordered by key. */
  readonly lanes: readonly LaneInfo[];
  /** The `cursor` of the next page; null if this is the last page. */
  readonly next: string | null;
}

/** How much of a limit is used. */
export type LimitLoad = Pick<LimitInfo, "inUse" | "inUseCapped" | "waiting" | "waitingCapped">;

export function toInfo(limit: StoredLimit, load: LimitLoad, now: number): LimitInfo {
  const { name, concurrency, rate, isHeldOpen, whenFull, override, createdAt } = limit;
  const inForce = valuesInForce(limit, override, now);
  const isOver = override === null || (override.until !== null && override.until <= now);
  return {
    name,
    concurrency,
    rate,
    while: isHeldOpen ? "open" : "executing",
    onFull: whenFull?.onFull ?? "wait",
    backlog: whenFull?.backlog ?? null,
    override: isOver ? null : toOverrideInfo(override),
    inForce: { concurrency: inForce.concurrency, rate: inForce.rate },
    ...load,
    createdAt: new Date(createdAt),
  };
}

const toOverrideInfo = ({ until, at, ...override }: LimitOverride): LimitOverrideInfo => ({
  ...override,
  until: until === null ? null : new Date(until),
  at: new Date(at),
});

export const toHolder = ({ runId, node, at }: SlotRecord): SlotHolder => ({
  runId,
  step: node === "" ? null : stepOfSlot(node),
  since: new Date(at),
});
