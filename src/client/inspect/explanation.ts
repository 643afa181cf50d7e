/** The answer of `run.explain()`. */
import type { LimitOverrideInfo, LimitValuesInForce, SlotHolder } from "../limits/limit-info.js";

/** The limit that a run waits for, in the answer of `run.explain()`. */
export interface LimitedBy {
  /** The name of the limit. */
  readonly limit: string;
  /** The key whose slots are taken, or whose rate delays the run; "" for a limit without one. */
  readonly key: string;
  /** The step that waits for the slot; null: the run waits. */
  readonly step: string | null;
  /** How many slots of the key are held, counted up to 1,000. */
  readonly inUse: number;
  /** What the limit allows at the moment. */
  readonly inForce: LimitValuesInForce;
  /** The override that is in force; null: the values are those of the code. */
  readonly override: LimitOverrideInfo | null;
  /** The runs and steps that hold slots of the key, at most 20, those that have held theirs the longest first. */
  readonly holders: readonly SlotHolder[];
  /**
   * Where it stands among those that wait for the key: 1 is next. It is an estimate, because keys of `fairBy` and workflows take
   * turns, and later runs of a higher priority come first. Null if more than 500 come before it.
   */
  readonly position: number | null;
  /** How many wait for the key, with this one; counted up to 1,000. */
  readonly waiting: number;
  /**
   * When the rate lets it begin at the earliest: exact for the first in line, an estimate for those behind it. Null if it waits
   * for a slot that is held.
   */
  readonly earliestAt: Date | null;
}

/** Why a run is not moving, as `run.explain()` returns it. */
export interface Explanation {
  /** The reason, for programs. */
  readonly because:
    | "ended"
    | "paused"
    | "executing"
    | "worker_lease_expired"
    | "planned"
    | "queued"
    | "waiting"
    | "queue_paused"
    | "no_worker"
    | "gathering"
    | "limited"
    | "about_to_run";
  /** The reason in one or two sentences. */
  readonly text: string;
  /** Since when this reason has applied; null if that is not known. */
  readonly since: Date | null;
  /** When the run continues if nothing else happens; null if that is not known. */
  readonly until: Date | null;
  /** The limit that the run waits for; absent unless `because` is `"limited"`. */
  readonly limited?: LimitedBy;
  /** When the run is canceled if it has not begun by then; absent when it may begin at any time. */
  readonly expiresAt?: Date;
}
