/**
 * Reads lanes whose limits have a policy for the case that they are full, in a transaction that has locked them. Which runs wait in
 * a lane is counted, not kept: its row lists the classes that may have some.
 */
import type { ArrivingRun, FullPolicy, GuardedLane } from "../../../core/limits/full-lane.js";
import { laneOf, type RunClass } from "../../../core/limits/lane.js";
import { type LaneState, roomIn } from "../../../core/limits/lane-state.js";
import { baseRouteOf } from "../../../core/naming/route.js";
import type { SortedTask } from "../../contract/limits.js";
import type { SqlRow } from "../dialect.js";
import { taskState } from "../records.js";
import { buildStatement, joined, type LimitsDialect, type ReadSteps } from "./dialect.js";
import { decodeLaneStates, selectLaneStates } from "./lanes.js";
import { decodeSettings } from "./settings.js";

export type ClassKey = Pick<RunClass, "id" | "version">;

/** What the transaction has read of a lane and locked in it. */
export interface SeenLane extends GuardedLane {
  /** The classes of which runs wait. */
  readonly classes: readonly ClassKey[];
  /** Where the list in its row is written anew. */
  readonly listed: readonly ClassKey[];
}

interface LockedHolder {
  readonly isParked: boolean;
  readonly route: string;
}

/** Older runs than these, in the order of their classes, are not looked for. */
const maxWaitingRead = 1_000;

/** A run may have begun since the worker has read it. One that a worker has taken may have executed code as well. */
export function* readBegun(d: LimitsDialect, tasks: readonly SortedTask[]): ReadSteps<ReadonlySet<string>> {
  const ids = tasks.map(({ runId }) => runId);
  const [rows = []] = yield [
    buildStatement(
      d.base,
      (bind) =>
        `SELECT t.run_id FROM ${d.tasksByKey} JOIN ${d.base.table("runs")} r ON r.id = t.run_id
          WHERE ${d.base.oneOf("t.run_id", ids, bind)} AND (r.started_at IS NOT NULL OR t.deliveries > 0)`,
    ),
  ];
  return new Set(rows.map((row) => row.run_id as string));
}

interface Seen {
  readonly lanes: readonly SeenLane[];
  /** Of runs that wait and may be canceled for others. */
  readonly classOfRun: ReadonlyMap<string, ClassKey>;
  readonly lockedHolders: ReadonlyMap<string, LockedHolder>;
}

export function* readLanes(
  d: LimitsDialect,
  laneIds: readonly string[],
  arriving: readonly ArrivingRun[],
): ReadSteps<Seen> {
  const names = [...new Set(laneIds.map((id) => laneOf(id).limit))];
  const [stateRows = [], listRows = [], settingsRows = []] = yield joined([
    selectLaneStates(d, laneIds, []),
    buildStatement(
      d.base,
      (bind) =>
        `SELECT l.id, l.waiting_classes FROM ${d.base.table("lanes")} l WHERE ${d.isOneOf("l.id", laneIds, bind)}`,
    ),
    buildStatement(
      d.base,
      (bind) => `SELECT m.name, m.settings FROM ${d.base.table("limits")} m WHERE ${d.isOneOf("m.name", names, bind)}`,
    ),
  ]);
  const { at, lanes: states } = decodeLaneStates(stateRows, laneIds);
  const policies = new Map(
    settingsRows.map((row) => [row.name as string, decodeSettings(row.settings as string).whenFull]),
  );
  const listed = new Map(listRows.map((row) => [row.id as string, decodeList(row.waiting_classes)]));
  const guarded = laneIds.flatMap((id) => {
    const policy = policies.get(laneOf(id).limit);
    return policy === undefined ? [] : [{ state: states.get(id) as LaneState, policy, listed: listed.get(id) ?? [] }];
  });
  const counts = yield* countWaiting(d, guarded, arriving.length);
  const evicting = yield* countEvicting(d, guarded);
  const seen = guarded.map(({ state, policy, listed: list }): SeenLane => {
    const classes = list.filter((runClass) => (counts.get(runClass.id) ?? 0) > 0);
    return {
      id: state.id,
      policy,
      room:
        policy.onFull === "cancelOldest"
          ? (state.values.concurrency ?? Number.POSITIVE_INFINITY) - state.inUse + (evicting.get(state.id) ?? 0)
          : roomIn(state, at),
      waiting: classes.reduce((sum, { id }) => sum + (counts.get(id) ?? 0), 0),
      holders: [],
      waitingRuns: [],
      classes,
      listed: list,
    };
  });
  return yield* readVictims(d, seen, arriving);
}

interface GuardedState {
  readonly state: LaneState;
  readonly policy: FullPolicy;
  readonly listed: readonly ClassKey[];
}

/** Counts no more runs than are needed to see that a lane is full. */
function* countWaiting(
  d: LimitsDialect,
  lanes: readonly GuardedState[],
  arrivingCount: number,
): ReadSteps<ReadonlyMap<string, number>> {
  const capOf = new Map<string, number>();
  const keys = new Map<string, ClassKey>();
  for (const { state, policy, listed } of lanes)
    for (const key of listed) {
      const cap = policy.backlog + Math.max(0, state.values.concurrency ?? 0) + arrivingCount + 1;
      capOf.set(key.id, Math.max(capOf.get(key.id) ?? 0, cap));
      keys.set(key.id, key);
    }
  if (keys.size === 0) return new Map();
  const classes = [...keys.values()];
  const results = yield d.forEach(
    [
      ["v_route", "text"],
      ["v_version", "text"],
      ["v_count", "number"],
    ],
    classes.map(({ id, version }) => [id, version, capOf.get(id)]),
    (columnOf) => {
      // The number comes first in the text, so its value must be bound first.
      const n = columnOf("n");
      const isOfClass = `t.state = ${taskState.ready} AND t.workflow = ${columnOf("v_route")} AND t.version = ${columnOf("v_version")}`;
      return `SELECT ${n} AS n, count(*) AS waiting FROM (SELECT 1 AS one FROM ${d.tasksByRoute} WHERE ${isOfClass} LIMIT ${columnOf("v_count")}) x`;
    },
  );
  return new Map(results.flat().map((row) => [(classes[Number(row.n) - 1] as ClassKey).id, Number(row.waiting)]));
}

/** The slots whose runs are being canceled for others. */
function* countEvicting(d: LimitsDialect, lanes: readonly GuardedState[]): ReadSteps<ReadonlyMap<string, number>> {
  const ids = lanes.filter(({ policy }) => policy.onFull === "cancelOldest").map(({ state }) => state.id);
  if (ids.length === 0) return new Map();
  const [rows = []] = yield [
    buildStatement(
      d.base,
      (bind) =>
        `SELECT s.lane, count(*) AS count FROM ${d.base.table("slots")} s
          WHERE ${d.isOneOf("s.lane", ids, bind)} AND s.waits = 0 AND s.rank_no = ${evictingRank} GROUP BY s.lane`,
    ),
  ];
  return new Map(rows.map((row) => [row.lane as string, Number(row.count)]));
}

/** The rank of a slot whose run is being canceled for another one. Slots that are held have no other use for a rank. */
export const evictingRank = 1;

/** Locks the runs that may be canceled for others. */
function* readVictims(d: LimitsDialect, seen: readonly SeenLane[], arriving: readonly ArrivingRun[]): ReadSteps<Seen> {
  const arrivingIn = (id: string) => arriving.filter(({ lanes, hasBegun }) => !hasBegun && lanes.includes(id)).length;
  const full = seen.filter(
    ({ id, policy, room, waiting }) =>
      policy.onFull === "cancelOldest" && waiting + arrivingIn(id) > Math.max(0, room) + policy.backlog,
  );
  const classOfRun = new Map<string, ClassKey>();
  const lockedHolders = new Map<string, LockedHolder>();
  if (full.length === 0) return { lanes: seen, classOfRun, lockedHolders };
  const holderRows = (yield d.forEach(
    [
      ["v_lane", "text"],
      ["v_count", "number"],
    ],
    full.map(({ id }) => [id, arrivingIn(id)]),
    (columnOf) =>
      `SELECT s.lane, s.run_id FROM ${d.base.table("slots")} s WHERE s.lane = ${columnOf("v_lane")} AND s.waits = 0 AND s.rank_no = 0 AND s.node = ''
        ORDER BY s.at, s.run_id LIMIT ${columnOf("v_count")}`,
  )).flat();
  const holderIds = [...new Set(holderRows.map((row) => row.run_id as string))].sort();
  if (holderIds.length > 0) {
    const [rows = []] = yield [
      buildStatement(
        d.base,
        (bind) =>
          `SELECT t.run_id, t.state, t.workflow FROM ${d.tasksByKey} WHERE ${d.base.oneOf("t.run_id", holderIds, bind)} ORDER BY t.run_id ${d.lock.skip}`,
      ),
    ];
    for (const row of rows)
      lockedHolders.set(row.run_id as string, {
        isParked: Number(row.state) === taskState.parked,
        route: baseRouteOf(row.workflow as string),
      });
  }
  const classes = [...new Map(full.flatMap((lane) => lane.classes).map((key) => [key.id, key])).values()];
  const { column, order } = d.base.readyRank;
  const waitingRows: SqlRow[] =
    classes.length === 0
      ? []
      : (yield d.forEach(
          [
            ["v_route", "text"],
            ["v_version", "text"],
          ],
          classes.map(({ id, version }) => [id, version]),
          (columnOf) =>
            `SELECT ${columnOf("n")} AS n, t.run_id, t.due_at FROM ${d.tasksByRoute}
              WHERE t.state = ${taskState.ready} AND t.workflow = ${columnOf("v_route")} AND t.version = ${columnOf("v_version")} AND t.due_at >= 0 AND t.deliveries = 0
              ORDER BY ${column} ${order}, t.due_at LIMIT ${maxWaitingRead} ${d.lock.skip}`,
        )).flat();
  for (const row of waitingRows) classOfRun.set(row.run_id as string, classes[Number(row.n) - 1] as ClassKey);
  const oldestFirst = [...waitingRows].sort(
    (a, b) => Number(a.due_at) - Number(b.due_at) || ((a.run_id as string) < (b.run_id as string) ? -1 : 1),
  );
  const lanes = seen.map(
    (lane): SeenLane => ({
      ...lane,
      holders: holderRows.filter((row) => row.lane === lane.id).map((row) => row.run_id as string),
      waitingRuns: oldestFirst
        .map((row) => row.run_id as string)
        .filter((runId) => lane.classes.some(({ id }) => id === classOfRun.get(runId)?.id)),
    }),
  );
  return { lanes, classOfRun, lockedHolders };
}

export function decodeList(text: unknown): readonly ClassKey[] {
  if (typeof text !== "string") return [];
  return (JSON.parse(text) as readonly [id: string, version: string][]).map(([id, version]) => ({ id, version }));
}
