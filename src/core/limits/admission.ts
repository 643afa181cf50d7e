/**
 * Decides which waiting runs may begin. Stores lock the rows, call `planAdmission` and write what it returns, so that all
 * of them decide alike.
 *
 * Classes get turns: the class whose last turn was the longest ago comes first and gets one run admitted, and then all
 * others come before it. Between two admissions of one class lies at most one of each other class, however many runs wait in
 * that one. A class that was blocked meanwhile cannot save turns up.
 */
import { afterTaking, type LaneState, opensAtOf, roomIn } from "./lane-state.js";

export interface ClassState {
  readonly id: string;
  readonly lanes: readonly string[];
  /** The number of its last turn. */
  readonly turn: number;
  /** How many of its waiting runs the transaction has locked; null if only other workers execute its runs. */
  readonly headCount: number | null;
}

export interface AdmissionPlan {
  /** The classes that get a turn, in order: once for each run that is admitted. */
  readonly turns: readonly string[];
  /** The new number of each class that got a turn. */
  readonly turnOf: ReadonlyMap<string, number>;
  /** The lane without a free slot, or with classes before this one that were not read, because of which a class has to wait. It is not looked at again until the lane has one. */
  readonly blockedOn: ReadonlyMap<string, string>;
  /** The runs that could still be admitted, of each lane. */
  readonly roomOf: ReadonlyMap<string, number>;
  /** The lanes after the admission. */
  readonly lanes: ReadonlyMap<string, LaneState>;
}

/**
 * All lanes of a run are taken together or not at all. A class of other workers that comes before those of this one keeps the
 * place in its lanes free, so a worker cannot keep a lane for itself.
 *
 * @param limit the maximum number of runs
 * @param now in milliseconds
 * @param firstTurn the turns are numbered from here, or from the last turn of these classes if that is higher
 */
export function planAdmission(
  classes: readonly ClassState[],
  lanes: readonly LaneState[],
  { limit, now, firstTurn }: { readonly limit: number; readonly now: number; readonly firstTurn: number },
): AdmissionPlan {
  const roomOf = new Map(lanes.map((lane) => [lane.id, roomIn(lane, now)]));
  const admittedOf = new Map<string, number>();
  const turns: string[] = [];
  const turnOf = new Map<string, number>();
  const blockedOn = new Map<string, string>();
  // A class that was not read because it is blocked comes before those with later turns: they are blocked behind it, and then
  // the lane, which has room, is named to `wake`. Otherwise new classes, which are not blocked, would pass it.
  const unreadTurns = new Map(lanes.map(({ id, unreadTurn }) => [id, unreadTurn]));
  const headsLeft = new Map(classes.map(({ id, headCount }) => [id, headCount ?? 0]));
  let nextTurn = classes.reduce((turn, { turn: last }) => Math.max(turn, last + 1), firstTurn);
  const line = [...classes].sort((a, b) => a.turn - b.turn || (a.id < b.id ? -1 : 1));
  for (let next = 0; next < line.length; next += 1) {
    const runClass = line[next] as ClassState;
    const { id } = runClass;
    const turn = turnOf.get(id) ?? runClass.turn;
    const fullLane = runClass.lanes.find(
      (lane) => (roomOf.get(lane) ?? 0) <= 0 || (unreadTurns.get(lane) ?? turn) < turn,
    );
    if (fullLane !== undefined) {
      blockedOn.set(id, fullLane);
      continue;
    }
    const takeRoom = () => {
      for (const lane of runClass.lanes) roomOf.set(lane, (roomOf.get(lane) as number) - 1);
    };
    if (runClass.headCount === null) {
      takeRoom();
      continue;
    }
    const heads = headsLeft.get(id) as number;
    if (heads === 0 || turns.length >= limit) continue;
    headsLeft.set(id, heads - 1);
    takeRoom();
    for (const lane of runClass.lanes) admittedOf.set(lane, (admittedOf.get(lane) ?? 0) + 1);
    turns.push(id);
    turnOf.set(id, nextTurn++);
    line.push(runClass);
  }
  const blockedLanes = new Set(blockedOn.values());
  const lanesAfter = lanes.map((lane): readonly [string, LaneState] => {
    const taken = afterTaking(lane, Array(admittedOf.get(lane.id) ?? 0).fill(1), now);
    const isWaitedFor = lane.unreadTurn !== null || lane.waitingSteps > 0 || blockedLanes.has(lane.id);
    return [lane.id, { ...taken, opensAt: opensAtOf(taken, isWaitedFor, now) }];
  });
  return { turns, turnOf, blockedOn, roomOf, lanes: new Map(lanesAfter) };
}

/**
 * How many waiting runs of a class may be admitted: as many as its lanes have room for, but no more than its share, or many
 * classes would lock runs that are not admitted.
 */
export function headsToLock(
  runClass: Pick<ClassState, "lanes">,
  lanes: ReadonlyMap<string, LaneState>,
  { limit, now, classCount }: { readonly limit: number; readonly now: number; readonly classCount: number },
): number {
  const share = Math.max(Math.ceil(limit / classCount), Math.min(limit, minHeads));
  return runClass.lanes.reduce((count, id) => {
    const lane = lanes.get(id);
    return lane === undefined ? 0 : Math.min(count, Math.max(0, roomIn(lane, now)));
  }, share);
}

const minHeads = 4;

/** An admission looks at this many classes at most. Those that come to nothing are blocked, and the next one sees others. */
const maxClassesPerAdmission = 256;

export const classesToRead = (limit: number): number => Math.min(Math.max(16, 2 * limit), maxClassesPerAdmission);
