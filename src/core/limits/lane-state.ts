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
  /** Absent: no row of the lane belongs to a run that was parked while its step waited. */
  readonly parked?: ParkedSteps;
}

/**
 * Steps of runs that were parked because they did nothing but wait for slots. Such a step cannot be given a slot: the slot is
 * offered to it for a while, and counts as in use, until the run is executed again and its code makes the call again.
 */
export interface ParkedSteps {
  /** How many there are: those that wait, those with an offer, and those that have let an offer lapse. */
  readonly count: number;
  /** How much of the rate the offered slots will take. Nothing is taken before the body begins. */
  readonly offeredUnits: number;
  /** When the first offer ends; null if there is none. */
  readonly offerEndsAt: number | null;
  /** When a worker must look at the lane; null if that is not written yet. */
  readonly looksAt: number | null;
}

/** How long a slot is offered to a run that was parked. Its worker has to claim the run, read its log and replay its code. */
export const offeredMs = 5_000;
/**
 * A lane in which runs wait that no worker executes is looked at that often although nothing is known to have changed: a worker
 * may have died with slots of it, or its limit may have been raised.
 */
export const looksAgainMs = 5_000;

/** A step that waits for a slot. */
export interface WaitingStep {
  readonly lane: string;
  /** How much of the rate it takes. */
  readonly units: number;
  /** `worker`: a worker waits with it. `offerable`: its run is parked. `passed`: its run is parked and cannot take an offer now. */
  readonly waiter: "worker" | "offerable" | "passed";
}

const slotsLeft = ({ values, inUse }: LaneState): number => (values.concurrency ?? Number.POSITIVE_INFINITY) - inUse;

/** How many runs may be admitted, of one unit each. */
export function roomIn(lane: LaneState, now: number): number {
  const { rate } = lane.values;
  if (lane.waitingSteps > 0 || (rate !== null && (lane.parked?.offeredUnits ?? 0) > 0)) return 0;
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

/** How many of the runs behind the free slots are looked at in addition, because slots cannot be offered to all runs. */
const spareRuns = 8;
/** In one transaction, slots are offered to at most this many runs. */
const maxOffers = 64;

/** How many of the waiting steps, in their order, a transaction looks at to find those of parked runs. */
export const offersWithin = (lane: LaneState): number =>
  slotsLeft(lane) <= 0 ? 0 : Math.min(maxOffers, slotsLeft(lane)) + spareRuns;

/**
 * Which of the waiting steps get a slot, in their order, or an offer of one; and the lane after that. Those behind an offer do not
 * get the part of the rate that the offered slot will take.
 */
export function grantSteps<Step extends WaitingStep>(
  lane: LaneState,
  steps: readonly Step[],
  now: number,
): { readonly granted: readonly Step[]; readonly offered: readonly Step[]; readonly lane: LaneState } {
  const granted: Step[] = [];
  const offered: Step[] = [];
  const { rate } = lane.values;
  let next = lane;
  let offeredUnits = lane.parked?.offeredUnits ?? 0;
  const isInPace = () =>
    rate === null ||
    !isPaced(
      rate,
      offeredUnits === 0 ? next.pacedUntilUs : pacedUntilAfter(rate, next.pacedUntilUs, now * 1_000, offeredUnits),
      now * 1_000,
    );
  for (const step of steps) {
    if (slotsLeft(next) <= 0 || !isInPace()) break;
    if (step.waiter === "passed") continue;
    if (step.waiter === "offerable") {
      offered.push(step);
      offeredUnits += step.units;
      next = { ...next, inUse: next.inUse + 1, waitingSteps: next.waitingSteps - 1 };
    } else {
      granted.push(step);
      next = { ...afterTaking(next, [step.units], now), waitingSteps: next.waitingSteps - 1 };
    }
  }
  return {
    granted,
    offered,
    lane: next.parked === undefined ? next : { ...next, parked: { ...next.parked, offeredUnits } },
  };
}

/** When a worker must look at a lane in which runs wait that no worker executes; null if there are none. */
export function looksAtOf(lane: LaneState, now: number): number | null {
  if (lane.parked === undefined || lane.parked.count <= 0) return null;
  const { offerEndsAt, looksAt } = lane.parked;
  const instants = [offerEndsAt, opensAtOf(lane, true, now), now + looksAgainMs].filter((at) => at !== null);
  const at = Math.min(...instants);
  return looksAt !== null && looksAt > now && looksAt <= at ? looksAt : at;
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
