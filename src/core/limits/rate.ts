/**
 * Rates: how many runs or units may begin in a time. A lane stores one instant, the end of what was admitted so far if everything
 * had come at an even pace. Each admission moves it on by its units, and an admission must wait while it is further ahead than the
 * burst allows. (This is the generic cell rate algorithm; the instant is its theoretical arrival time.)
 *
 * In any window of the length `perMs`, at most `limit + burst` units are admitted, and those of one admission more.
 */

export interface Rate {
  /** How many units may be admitted in the time. */
  readonly limit: number;
  /** The time. */
  readonly perMs: number;
  /** How many units may be admitted at once, in addition to those of one admission. */
  readonly burst: number;
}

/** Rounded up: many admissions must not make a lane faster than its rate. */
const durationUsOf = ({ limit, perMs }: Rate, units: number): number => Math.ceil((units * perMs * 1_000) / limit);
const burstUsOf = ({ limit, perMs, burst }: Rate): number => Math.floor((burst * perMs * 1_000) / limit);

export const isPaced = (rate: Rate, pacedUntilUs: number, nowUs: number): boolean =>
  pacedUntilUs - burstUsOf(rate) > nowUs;

/** How many admissions of one unit each may follow now, one after the other. */
export function rateRoom(rate: Rate, pacedUntilUs: number, nowUs: number): number {
  if (isPaced(rate, pacedUntilUs, nowUs)) return 0;
  const aheadUs = Math.max(0, pacedUntilUs - nowUs);
  return Math.floor((burstUsOf(rate) - aheadUs) / durationUsOf(rate, 1)) + 1;
}

/** The year 2255: the last instant that is exact as a number. Columns of databases have not much more room. */
const latestUs = Number.MAX_SAFE_INTEGER;

/** Where the even pace has got to when these units have been admitted as well. */
export const pacedUntilAfter = (rate: Rate, pacedUntilUs: number, nowUs: number, units: number): number =>
  Math.min(latestUs, Math.max(pacedUntilUs, nowUs) + durationUsOf(rate, units));

/** The pace when a step has used other units than were admitted for it. It does not go back behind the present. */
export const correctedPace = (rate: Rate, pacedUntilUs: number, nowUs: number, furtherUnits: number): number =>
  Math.min(
    latestUs,
    Math.max(nowUs, pacedUntilUs + Math.sign(furtherUnits) * durationUsOf(rate, Math.abs(furtherUnits))),
  );

/** When the next units may be admitted, in milliseconds. */
export const rateOpensAt = (rate: Rate, pacedUntilUs: number): number =>
  Math.ceil((pacedUntilUs - burstUsOf(rate)) / 1_000);
