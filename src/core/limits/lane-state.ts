/** A lane as a transaction sees it that has locked it: how many runs and steps it has room for, and when it has more. */
import { isPaced, pacedUntilAfter, rateOpensAt, rateRoom } from "./rate.js";
import type { ValuesInForce } from "./settings.js";

export interface LaneState {
  readonly id: string;
  readonly values: ValuesInForce;
  /** How many slots are held: counted, not computed from positions. */
  readonly inUse: number;
  /** How many steps wait for a slot. They come before runs. */
  readonly waitingSteps: number;
  /** Where the even pace of its rate has got to, in microseconds; 0 if it never had a rate. */
  readonly pacedUntilUs: number;
  /** When it is to be looked at without a slot being given back; null if nothing waits for that. */
  readonly opensAt: number | null;
  /** The lowest turn of the classes that are blocked on it and that the transaction has not read; null if there are none. */
  readonly unreadTurn: number | null;
}

/** A step that waits for a slot. */
export interface WaitingStep {
  readonly lane: string;
  /** How much of the rate it takes. */
  readonly units: number;
}

const slotsLeft = ({ values, inUse }: LaneState): number => (values.concurrency ?? Number.POSITIVE_INFINITY) - inUse;

/** How many runs may be admitted, of one unit each. */
export function roomIn(lane: LaneState, now: number): number {
  const { rate } = lane.values;
  if (lane.waitingSteps > 0) return 0;
  return rate === null ? slotsLeft(lane) : Math.min(slotsLeft(lane), rateRoom(rate, lane.pacedUntilUs, now * 1_000));
}

/**
 * How many of the classes that are blocked on the lane a sweep unblocks. It finds room in a lane on which classes are blocked if a
 * process died before it named the lane, or if the classes that came first belong to a workflow that no worker executes now: those
 * are left behind, many at a time, or the lane would stand still for one sweep for each of them. With no room, one class if the lane
 * opens at another instant than is written, because its limit has changed. The admission that finds the lane full writes the
 * instant.
 */
export function wakeableIn(lane: LaneState, now: number): number {
  if (roomIn(lane, now) > 0) return wokenPerSweep;
  return lane.opensAt !== opensAtOf(lane, true, now) ? 1 : 0;
}

const wokenPerSweep = 256;

/** The lane when a slot was taken for each of these units. */
export function afterTaking(lane: LaneState, units: readonly number[], now: number): LaneState {
  if (units.length === 0) return lane;
  const { rate } = lane.values;
  const unitCount = units.reduce((sum, count) => sum + count, 0);
  return {
    ...lane,
    inUse: lane.inUse + units.length,
    pacedUntilUs: rate === null ? lane.pacedUntilUs : pacedUntilAfter(rate, lane.pacedUntilUs, now * 1_000, unitCount),
  };
}

/** How many of the waiting steps get a slot, in their order; and the lane after that. */
export function grantSteps(
  lane: LaneState,
  steps: readonly WaitingStep[],
  now: number,
): { readonly grantedCount: number; readonly lane: LaneState } {
  let next = lane;
  let grantedCount = 0;
  for (const { units } of steps) {
    const { rate } = next.values;
    if (slotsLeft(next) <= 0 || (rate !== null && isPaced(rate, next.pacedUntilUs, now * 1_000))) break;
    next = { ...afterTaking(next, [units], now), waitingSteps: next.waitingSteps - 1 };
    grantedCount += 1;
  }
  return { grantedCount, lane: next };
}

/**
 * When a lane that is waited for must be looked at although no slot was given back: when its rate lets the next one begin, or
 * when an override ends.
 */
export function opensAtOf(lane: LaneState, isWaitedFor: boolean, now: number): number | null {
  if (!isWaitedFor) return null;
  const { rate, endsAt } = lane.values;
  const byRate =
    rate !== null && isPaced(rate, lane.pacedUntilUs, now * 1_000) ? rateOpensAt(rate, lane.pacedUntilUs) : null;
  const instants = [byRate, endsAt].filter((at) => at !== null);
  return instants.length === 0 ? null : Math.min(...instants);
}
