/**
 * Decides what becomes of runs that come into lanes without room. A lane is full for a run if so many runs wait in it already
 * as could be admitted now, and as many more as its backlog has. Stores lock the lanes, read what is here and write what
 * `judgeStarts` returns, so all of them decide alike.
 *
 * Only runs that have not begun are judged, once each time they come into the line. A run that has begun waits for its slot
 * whatever the lane is like, but it counts among those that wait.
 */

/** What becomes of a run that finds its lane full. */
export type OnFull = "wait" | "skip" | "fail" | "cancelOldest";

export interface FullPolicy {
  readonly onFull: Exclude<OnFull, "wait">;
  /** How many runs may wait in a lane. */
  readonly backlog: number;
}

/** A lane whose limit has a policy, as a transaction sees it that has locked it. */
export interface GuardedLane {
  readonly id: string;
  readonly policy: FullPolicy;
  /** How many runs could be admitted now, or when runs that are being canceled for others have ended. */
  readonly room: number;
  /** How many runs wait in it, whether they have begun or not. */
  readonly waiting: number;
  /** The runs that hold a slot and are not being canceled for another run, the one that holds it longest first. */
  readonly holders: readonly string[];
  /** The runs that wait and have not begun, the oldest first. */
  readonly waitingRuns: readonly string[];
}

/** A run that comes into the line. */
export interface ArrivingRun {
  readonly runId: string;
  /** The lanes whose limits have a policy, in the order in which the workflow names the limits. */
  readonly lanes: readonly string[];
  /** Whether its code was executed before; then it waits. */
  readonly hasBegun: boolean;
}

/** A run that does not begin, or is canceled, because a lane is full. */
export interface FullLaneVerdict {
  readonly runId: string;
  readonly lane: string;
  readonly effect: "skip" | "fail" | "supersede";
  /** For "supersede": the run that takes its place. */
  readonly by?: string;
  /** Whether the run holds a slot, and is to be canceled by its owner. */
  readonly isHolder: boolean;
}

interface LaneTally {
  readonly policy: FullPolicy;
  room: number;
  waiting: number;
  readonly holders: string[];
  readonly waitingRuns: string[];
}

/** @param arriving in the order in which they are judged */
export function judgeStarts(
  lanes: readonly GuardedLane[],
  arriving: readonly ArrivingRun[],
): readonly FullLaneVerdict[] {
  const tallies = new Map(lanes.map((lane) => [lane.id, tallyOf(lane)]));
  const lanesOf = new Map(arriving.map((run) => [run.runId, run.lanes]));
  const verdicts: FullLaneVerdict[] = [];
  for (const { runId, lanes: laneIds, hasBegun } of arriving) {
    const own = laneIds.flatMap((id) => {
      const lane = tallies.get(id);
      return lane === undefined ? [] : [{ id, lane }];
    });
    const full = hasBegun ? [] : own.filter(({ lane }) => isFull(lane));
    const refusing = full.find(({ lane }) => lane.policy.onFull !== "cancelOldest");
    if (refusing !== undefined) {
      const effect = refusing.lane.policy.onFull === "fail" ? "fail" : "skip";
      verdicts.push({ runId, lane: refusing.id, effect, isHolder: false });
      continue;
    }
    for (const { id, lane } of full) {
      // A run that was canceled for the place in another lane may have left this one as well.
      const victim = isFull(lane) ? takeVictim(lane) : null;
      if (victim === null) continue;
      verdicts.push({ ...victim, lane: id, effect: "supersede", by: runId });
      for (const other of victim.isHolder ? [] : (lanesOf.get(victim.runId) ?? []))
        if (other !== id) leave(tallies.get(other), victim.runId);
    }
    for (const { lane } of own) {
      lane.waiting += 1;
      if (!hasBegun) lane.waitingRuns.push(runId);
    }
  }
  return verdicts;
}

const tallyOf = ({ policy, room, waiting, holders, waitingRuns }: GuardedLane): LaneTally => ({
  policy,
  room,
  waiting,
  holders: [...holders],
  waitingRuns: [...waitingRuns],
});

const isFull = ({ policy, room, waiting }: LaneTally): boolean => waiting >= Math.max(0, room) + policy.backlog;

/**
 * With a backlog, the run that waits longest makes place: what has begun goes on. Without one, it is the run that holds its
 * slot longest.
 */
function takeVictim(lane: LaneTally): { readonly runId: string; readonly isHolder: boolean } | null {
  const fromWaiting = () => {
    const runId = lane.waitingRuns[0];
    if (runId !== undefined) leave(lane, runId);
    return runId === undefined ? null : { runId, isHolder: false };
  };
  const fromHolders = () => {
    const runId = lane.holders.shift();
    if (runId !== undefined) lane.room += 1;
    return runId === undefined ? null : { runId, isHolder: true };
  };
  return lane.policy.backlog > 0 ? (fromWaiting() ?? fromHolders()) : (fromHolders() ?? fromWaiting());
}

function leave(lane: LaneTally | undefined, runId: string): void {
  const index = lane?.waitingRuns.indexOf(runId) ?? -1;
  if (lane === undefined || index < 0) return;
  lane.waitingRuns.splice(index, 1);
  lane.waiting -= 1;
}
