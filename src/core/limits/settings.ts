/** What a limit allows at an instant: the values of the code, or those of an override until it ends. */
import type { Rate } from "./rate.js";

export interface LimitValues {
  /** How many slots each lane has; null: as many as there are runs. */
  readonly concurrency: number | null;
  /** How many runs or units may begin in a time, in each lane; null: any number. */
  readonly rate: Rate | null;
}

/** What a person has set in place of the code. */
export interface LimitOverride extends Partial<LimitValues> {
  /** When it ends; null: when it is cleared. */
  readonly until: number | null;
  readonly reason: string | null;
  readonly by: string | null;
  /** When it was set. */
  readonly at: number;
}

export interface ValuesInForce extends LimitValues {
  /** When other values come into force; null if nothing is known of that. */
  readonly endsAt: number | null;
}

/** A limit that no worker has registered has no slots, because nothing says how many it has. */
export const unknownValues: ValuesInForce = { concurrency: 0, rate: null, endsAt: null };

export function valuesInForce(
  { concurrency, rate }: LimitValues,
  override: LimitOverride | null,
  now: number,
): ValuesInForce {
  if (override === null || (override.until !== null && override.until <= now))
    return { concurrency, rate, endsAt: null };
  return {
    concurrency: override.concurrency === undefined ? concurrency : override.concurrency,
    rate: override.rate === undefined ? rate : override.rate,
    endsAt: override.until,
  };
}
