/** What `pawl.limits` returns and takes. */
import { stepOfSlot } from "../../core/limits/lane.js";
import type { LimitOverride } from "../../core/limits/settings.js";
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
  /** What is in force in place of the values of the code; null: nothing. */
  readonly override: LimitOverrideInfo | null;
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
  /** How many runs and steps wait that need a slot of this key, counted up to 1,000. */
  readonly waiting: number;
  /** When the rate lets the next one begin, or an override ends; null if nothing waits for that. */
  readonly nextAt: Date | null;
}

/** A limit with its lanes, as `pawl.limits.get(name)` returns it. */
export interface LimitDetails extends LimitInfo {
  /** The keys with slots in use or with waiting runs, at most 1,000, ordered by key. */
  readonly lanes: readonly LaneInfo[];
}

export const toInfo = ({ name, concurrency, rate, isHeldOpen, override, createdAt }: StoredLimit): LimitInfo => ({
  name,
  concurrency,
  rate,
  while: isHeldOpen ? "open" : "executing",
  override: override === null ? null : toOverrideInfo(override),
  createdAt: new Date(createdAt),
});

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
