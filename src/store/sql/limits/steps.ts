/**
 * Slots of steps: one transaction gives slots back, notes steps that wait, and gives free slots to the steps that come first,
 * whichever worker executes them.
 */
import { grantSteps, type LaneState, opensAtOf, roomIn, type WaitingStep } from "../../../core/limits/lane-state.js";
import { correctedPace } from "../../../core/limits/rate.js";
import type { FreedSlots, StepSlot, StepSlotChanges, StepSlotRequest, StepSlotResult } from "../../contract/limits.js";
import type { SqlRow } from "../dialect.js";
import { buildStatement, joined, type LimitsDialect, type SqlText, type TransactionSteps } from "./dialect.js";
import { decodeLaneStates, lockLanes, type ReadSteps, selectLaneStates, updateLanes } from "./lanes.js";

export interface StepSlotOutcome {
  readonly answer: StepSlotResult;
  /** Whether steps of other workers got a slot. */
  readonly concernsOthers: boolean;
}

interface WaitingRow extends WaitingStep, StepSlot {
  readonly isOther: boolean;
}

/** Of each lane, at most this many waiting steps get a slot in one transaction. */
const maxGrants = 256;

export function* changeStepSlots(
  d: LimitsDialect,
  { fence, asked, released, lanes: further }: StepSlotChanges,
): TransactionSteps<StepSlotOutcome> {
  const laneIds = [...new Set([...asked, ...released].map(({ lane }) => lane).concat(further))].sort();
  yield* lockLanes(d, laneIds);
  // Before anything is written: the slots of a worker that was declared dead meanwhile are deleted already, and no later
  // transaction would delete those that it takes now. The row of the worker is locked before those of its slots, as in reaping.
  const [fenceRows = [], clockRows = []] = yield [
    buildStatement(d.base, (bind) => d.selectFence(fence, bind)),
    buildStatement(d.base, (bind) => `SELECT ${d.base.now(bind)} AS at`),
  ];
  if (fenceRows.length === 0)
    return { writes: null, result: () => ({ answer: { kind: "fenced" }, concernsOthers: false }) };
  const [...changes] = deleteSlots(d, released);
  if (asked.length > 0) changes.push(insertWaiting(d, fence, asked, Number(clockRows[0]?.at)));
  if (changes.length > 0) yield changes;
  const [stateRows = []] = yield [selectLaneStates(d, laneIds, [])];
  const { at, lanes } = decodeLaneStates(stateRows, laneIds);
  const waiting = yield* readWaiting(d, fence, [...lanes.values()]);
  const granted: WaitingRow[] = [];
  const after = new Map(
    [...lanes].map(([id, lane]): readonly [string, LaneState] => {
      const steps = waiting.get(id) ?? [];
      const grant = grantSteps(lane, steps, at);
      granted.push(...steps.slice(0, grant.grantedCount));
      const isWaitedFor = lane.unreadTurn !== null || grant.lane.waitingSteps > 0;
      return [id, { ...grant.lane, opensAt: opensAtOf(grant.lane, isWaitedFor, at) }];
    }),
  );
  const lanesToWake = [...after.values()].flatMap((lane): FreedSlots[] => {
    const room = roomIn(lane, at);
    return lane.unreadTurn !== null && room > 0 ? [{ lane: lane.id, count: room }] : [];
  });
  const writes = joined([...grantSlots(d, granted, at), ...updateLanes(d, lanes, after)]);
  return {
    writes: [...writes, selectHeld(d, fence, laneIds)],
    result: (rows) => {
      const held = (rows.at(-1) ?? []).map(decodeSlot);
      const instants = [...after.values()].flatMap(({ waitingSteps, opensAt }) =>
        waitingSteps > 0 && opensAt !== null ? [opensAt] : [],
      );
      return {
        answer: {
          kind: "granted",
          at,
          held,
          nextAt: instants.length === 0 ? null : Math.min(...instants),
          lanesToWake,
        },
        concernsOthers: granted.some(({ isOther }) => isOther),
      };
    },
  };
}

function deleteSlots(d: LimitsDialect, slots: readonly StepSlot[]): readonly SqlText[] {
  if (slots.length === 0) return [];
  return [buildStatement(d.base, (bind) => `DELETE FROM ${d.base.table("slots")} WHERE ${isOneOf(d, slots, bind)}`)];
}

/** A row that exists is a step that asked before; it is not changed. */
function insertWaiting(
  d: LimitsDialect,
  { workerId, epoch }: StepSlotChanges["fence"],
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
  fence: StepSlotChanges["fence"],
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
    const isOther = row.owner !== fence.workerId || Number(row.epoch) !== fence.epoch;
    waiting.get(row.lane as string)?.push({ ...decodeSlot(row), units: Number(row.units), isOther });
  }
  return waiting;
}

function grantSlots(d: LimitsDialect, granted: readonly StepSlot[], at: number): readonly SqlText[] {
  if (granted.length === 0) return [];
  return [
    buildStatement(
      d.base,
      (bind) => `UPDATE ${d.base.table("slots")} SET waits = 0, at = ${bind(at)} WHERE ${isOneOf(d, granted, bind)}`,
    ),
  ];
}

function isOneOf(d: LimitsDialect, slots: readonly StepSlot[], bind: (value: unknown) => string): string {
  const sorted = [...slots].sort(
    (a, b) => compare(a.runId, b.runId) || compare(a.lane, b.lane) || compare(a.node, b.node),
  );
  return d.isOneOfSlots(sorted, bind);
}

const compare = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);

const selectHeld = (d: LimitsDialect, fence: StepSlotChanges["fence"], laneIds: readonly string[]): SqlText =>
  buildStatement(
    d.base,
    (bind) =>
      `SELECT s.run_id, s.lane, s.node FROM ${d.base.table("slots")} s
        WHERE ${d.isOneOf("s.lane", laneIds, bind)} AND s.waits = 0 AND s.owner = ${bind(fence.workerId)} AND s.epoch = ${bind(fence.epoch)} AND s.node <> ''`,
  );

const decodeSlot = (row: SqlRow): StepSlot => ({
  runId: row.run_id as string,
  node: row.node as string,
  lane: row.lane as string,
});

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
