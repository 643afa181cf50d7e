/**
 * Slots of steps: one transaction gives slots back, notes steps that wait, and gives free slots to the steps that come first,
 * whichever worker executes them. If no worker does, because the run was parked, the slot is offered (see parked-steps.ts).
 */
import {
  grantSteps,
  type LaneState,
  looksAtOf,
  offeredMs,
  offersWithin,
  opensAtOf,
  roomIn,
  type WaitingStep,
} from "../../../core/limits/lane-state.js";
import { correctedPace } from "../../../core/limits/rate.js";
import type { FreedSlots, StepSlot, StepSlotChanges, StepSlotRequest, StepSlotResult } from "../../contract/limits.js";
import type { Fence } from "../../contract/store.js";
import {
  buildStatement,
  joined,
  type LimitsDialect,
  type ReadSteps,
  type SqlText,
  type TransactionSteps,
} from "./dialect.js";
import { decodeLaneStates, lockLanes, selectLaneStates, updateLanes } from "./lanes.js";
import {
  decodeSlot,
  deleteSlots,
  endOffers,
  leaveWaiting,
  makeReady,
  matchParked,
  offerSlots,
  readParkedRuns,
  selectClockAndParked,
  sortSlots,
  takeUpParked,
} from "./parked-steps.js";

export interface StepSlotOutcome {
  readonly answer: StepSlotResult;
  /** Whether steps of other workers got a slot. */
  readonly concernsOthers: boolean;
  /** The routes of runs that were made due, because a slot is offered to them. */
  readonly readyRoutes: readonly string[];
}

interface WaitingRow extends WaitingStep, StepSlot {
  readonly owner: string | null;
  readonly epoch: number;
}

/** Of each lane, at most this many waiting steps get a slot in one transaction. */
const maxGrants = 256;

export function* changeStepSlots(
  d: LimitsDialect,
  { fence, asked, released, left = [], lanes: further }: StepSlotChanges,
): TransactionSteps<StepSlotOutcome> {
  const laneIds = [...new Set([...asked, ...released, ...left].map(({ lane }) => lane).concat(further))].sort();
  yield* lockLanes(d, laneIds);
  // Before anything is written: the slots of a worker that was declared dead meanwhile are deleted already, and no later
  // transaction would delete those that it takes now. The row of the worker is locked before those of its slots, as in reaping.
  const [fenceRows = [], clockRows = []] = yield [
    buildStatement(d.base, (bind) => d.selectFence(fence, bind)),
    selectClockAndParked(d, asked),
  ];
  if (fenceRows.length === 0)
    return { writes: null, result: () => ({ answer: { kind: "fenced" }, concernsOthers: false, readyRoutes: [] }) };
  const { takenUp, added } = matchParked(asked, clockRows);
  const changes = [...deleteSlots(d, released), ...takeUpParked(d, fence, takenUp)];
  if (added.length > 0) changes.push(insertWaiting(d, fence, added, Number(clockRows[0]?.at)));
  if (changes.length > 0) yield changes;
  const { at, granted, after, writes, readyRoutes } = yield* serveLanes(d, laneIds, left);
  return {
    // A step that has got a slot just now does not leave its place.
    writes: [...writes, ...leaveWaiting(d, fence, sortSlots(left)), selectHeld(d, fence, laneIds)],
    result: (rows) => {
      const instants = after.flatMap(({ waitingSteps, opensAt }) =>
        waitingSteps > 0 && opensAt !== null ? [opensAt] : [],
      );
      const looks = after.flatMap(({ parked }) => parked?.looksAt ?? []);
      return {
        answer: {
          kind: "granted",
          at,
          held: (rows.at(-1) ?? []).map(decodeSlot),
          nextAt: instants.length === 0 ? null : Math.min(...instants),
          looksAt: looks.length === 0 ? null : Math.min(...looks),
          lanesToWake: lanesToWake(after, at),
        },
        concernsOthers: granted.some(({ owner, epoch }) => owner !== fence.workerId || epoch !== fence.epoch),
        readyRoutes,
      };
    },
  };
}

export interface LookOutcome {
  /** Whether steps that workers wait with got a slot. */
  readonly hasGranted: boolean;
  readonly readyRoutes: readonly string[];
  readonly lanesToWake: readonly FreedSlots[];
}

/** Looks at lanes in which runs wait that no worker executes: ends offers, and makes others. */
export function* lookAtLanes(d: LimitsDialect, laneIds: readonly string[]): TransactionSteps<LookOutcome> {
  const ids = [...laneIds].sort();
  yield* lockLanes(d, ids);
  const dueRoutes = yield* endOffers(d, ids);
  const { at, granted, after, writes, readyRoutes } = yield* serveLanes(d, ids, []);
  const outcome = {
    hasGranted: granted.length > 0,
    readyRoutes: [...new Set([...dueRoutes, ...readyRoutes])],
    lanesToWake: lanesToWake(after, at),
  };
  return { writes, result: () => outcome };
}

const lanesToWake = (lanes: readonly LaneState[], at: number): readonly FreedSlots[] =>
  lanes.flatMap((lane): FreedSlots[] => {
    const room = roomIn(lane, at);
    return lane.unreadTurn !== null && room > 0 ? [{ lane: lane.id, count: room }] : [];
  });

interface ServedLanes {
  readonly at: number;
  readonly granted: readonly WaitingRow[];
  readonly after: readonly LaneState[];
  readonly writes: readonly SqlText[];
  readonly readyRoutes: readonly string[];
}

/** @param left the steps whose runs will have no worker when the transaction has ended */
function* serveLanes(d: LimitsDialect, laneIds: readonly string[], left: readonly StepSlot[]): ReadSteps<ServedLanes> {
  const [stateRows = []] = yield [selectLaneStates(d, laneIds, [])];
  const { at, lanes } = decodeLaneStates(stateRows, laneIds);
  const waiting = yield* readWaiting(d, [...lanes.values()]);
  const candidates = [...lanes.values()].flatMap((lane) => candidatesIn(lane, waiting.get(lane.id) ?? []));
  const runs = yield* readParkedRuns(
    d,
    candidates.map(({ runId }) => runId),
  );
  const isGone = ({ runId, owner }: WaitingRow) => {
    const state = owner === null ? runs.get(runId)?.state : undefined;
    return state === "gone" || state === "paused";
  };
  const asWaiter = (row: WaitingRow): WaitingRow => {
    const run = runs.get(row.runId);
    if (row.owner !== null) return row;
    return { ...row, waiter: run === undefined || run.state === "locked" ? "passed" : "offerable" };
  };
  const granted: WaitingRow[] = [];
  const offered: WaitingRow[] = [];
  const gone: WaitingRow[] = [];
  const after = new Map(
    [...lanes].map(([id, lane]): readonly [string, LaneState] => {
      const rows = waiting.get(id) ?? [];
      const goneHere = rows.filter(isGone);
      const leftCount = left.filter((slot) => slot.lane === id).length;
      const steps = rows.filter((row) => !isGone(row)).map(asWaiter);
      const grant = grantSteps(withoutSteps(lane, goneHere.length, leftCount), steps, at);
      granted.push(...grant.granted);
      offered.push(...grant.offered);
      gone.push(...goneHere);
      const isWaitedFor = lane.unreadTurn !== null || grant.lane.waitingSteps > 0;
      return [
        id,
        withLook({ ...grant.lane, opensAt: opensAtOf(grant.lane, isWaitedFor, at) }, grant.offered.length, at),
      ];
    }),
  );
  const due = [...new Set(offered.map(({ runId }) => runId))].filter((id) => runs.get(id)?.state === "parked");
  return {
    at,
    granted,
    after: [...after.values()],
    // Rows of one table are changed by statements of their own: databases may execute joined ones in any order.
    writes: [
      ...joined([...grantSlots(d, granted, at), ...updateLanes(d, lanes, after)]),
      ...offerSlots(d, offered, at),
      ...deleteSlots(d, gone),
      ...makeReady(d, due, at),
    ],
    readyRoutes: [...new Set(due.map((id) => runs.get(id)?.route ?? ""))],
  };
}

/** The parked steps that come first, of as many runs as there may be slots for. */
function candidatesIn(lane: LaneState, rows: readonly WaitingRow[]): readonly WaitingRow[] {
  if ((lane.parked?.count ?? 0) === 0) return [];
  return rows.slice(0, offersWithin(lane)).filter(({ owner }) => owner === null);
}

/** The lane without the rows of runs that wait no longer, and with those of runs that are about to be parked. */
function withoutSteps(lane: LaneState, goneCount: number, leftCount: number): LaneState {
  if (goneCount + leftCount === 0) return lane;
  const none = { count: 0, offeredUnits: 0, offerEndsAt: null, looksAt: null };
  const { parked = none, waitingSteps } = lane;
  return {
    ...lane,
    waitingSteps: waitingSteps - goneCount,
    parked: { ...parked, count: parked.count - goneCount + leftCount },
  };
}

function withLook(lane: LaneState, offeredCount: number, at: number): LaneState {
  if (lane.parked === undefined) return lane;
  const { offerEndsAt } = lane.parked;
  const madeUntil = offeredCount > 0 && offerEndsAt === null ? Math.floor(at) + offeredMs : offerEndsAt;
  const next = { ...lane, parked: { ...lane.parked, offerEndsAt: madeUntil } };
  return { ...next, parked: { ...next.parked, looksAt: looksAtOf(next, Math.floor(at)) } };
}

/** A row that exists is a step that asked before; it is not changed. */
function insertWaiting(
  d: LimitsDialect,
  { workerId, epoch }: Fence,
  asked: readonly StepSlotRequest[],
  at: number,
): SqlText {
  const columns = [
    ["run_id", "id"],
    ["lane", "text"],
    ["node", "text"],
    ["waits", "number"],
    ["rank_no", "number"],
    ["units", "number"],
    ["owner", "text"],
    ["epoch", "number"],
    ["at", "number"],
  ] as const;
  const rows = asked.map(({ runId, lane, node, priority, units }) => {
    const rank = -priority;
    return [runId, lane, node, 1, rank, units, workerId, epoch, at];
  });
  return d.insertOrLock(d.base.table("slots"), columns, rows, "run_id, lane, node");
}

function* readWaiting(
  d: LimitsDialect,
  lanes: readonly LaneState[],
): ReadSteps<ReadonlyMap<string, readonly WaitingRow[]>> {
  const waitedFor = lanes.filter(({ waitingSteps }) => waitingSteps > 0);
  const waiting = new Map<string, WaitingRow[]>(waitedFor.map(({ id }) => [id, []]));
  if (waitedFor.length === 0) return waiting;
  const results = yield d.forEach(
    [
      ["v_lane", "text"],
      ["v_count", "number"],
    ],
    waitedFor.map(({ id, waitingSteps }) => [id, Math.min(waitingSteps, maxGrants)]),
    (columnOf) =>
      `SELECT s.run_id, s.lane, s.node, s.units, s.owner, s.epoch FROM ${d.base.table("slots")} s
        WHERE s.lane = ${columnOf("v_lane")} AND s.waits = 1 ORDER BY s.rank_no, s.at, s.run_id, s.node LIMIT ${columnOf("v_count")}`,
  );
  for (const row of results.flat()) {
    const waiter = { owner: row.owner as string | null, epoch: Number(row.epoch), waiter: "worker" as const };
    waiting.get(row.lane as string)?.push({ ...decodeSlot(row), units: Number(row.units), ...waiter });
  }
  return waiting;
}

function grantSlots(d: LimitsDialect, granted: readonly StepSlot[], at: number): readonly SqlText[] {
  if (granted.length === 0) return [];
  return [
    buildStatement(
      d.base,
      (bind) =>
        `UPDATE ${d.base.table("slots")} SET waits = 0, at = ${bind(at)} WHERE ${d.isOneOfSlots(sortSlots(granted), bind)}`,
    ),
  ];
}

const selectHeld = (d: LimitsDialect, fence: Fence, laneIds: readonly string[]): SqlText =>
  buildStatement(
    d.base,
    (bind) =>
      `SELECT s.run_id, s.lane, s.node FROM ${d.base.table("slots")} s
        WHERE ${d.isOneOf("s.lane", laneIds, bind)} AND s.waits = 0 AND s.owner = ${bind(fence.workerId)} AND s.epoch = ${bind(fence.epoch)} AND s.node <> ''`,
  );

/** Corrects the pace of a lane whose limit has a rate. */
export function* addUnits(d: LimitsDialect, laneId: string, units: number): TransactionSteps<void> {
  yield* lockLanes(d, [laneId]);
  const [stateRows = []] = yield [selectLaneStates(d, [laneId], [])];
  const { at, lanes } = decodeLaneStates(stateRows, [laneId]);
  const lane = lanes.get(laneId);
  const rate = lane?.values.rate ?? null;
  if (lane === undefined || rate === null) return { writes: null, result: () => undefined };
  const paced = { ...lane, pacedUntilUs: correctedPace(rate, lane.pacedUntilUs, at * 1_000, units) };
  const isWaitedFor = lane.unreadTurn !== null || lane.waitingSteps > 0;
  const after = new Map([[laneId, { ...paced, opensAt: opensAtOf(paced, isWaitedFor, at) }]]);
  return { writes: updateLanes(d, lanes, after), result: () => undefined };
}
