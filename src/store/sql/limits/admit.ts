/**
 * Admission: one transaction that decides which runs of the first classes may begin, takes their slots and makes the worker
 * their owner.
 *
 * Locks are taken in the order worker, classes, lanes, tasks. Classes and tasks that others have locked are skipped, so a
 * transaction that holds a lane waits for nothing but further lanes, in the order of their ids.
 */
import {
  type AdmissionPlan,
  type ClassState,
  classesToRead,
  headsToLock,
  type LaneState,
  planAdmission,
} from "../../../core/limits/admission.js";
import { laneOf } from "../../../core/limits/lane.js";
import { resumedOffsetMs, type TurnCounter } from "../../../core/limits/order.js";
import type { AdmissionRequest, AdmissionResult, AdmittedTask } from "../../contract/limits.js";
import type { SqlRow } from "../dialect.js";
import { decodeRun, runColumnsWith, taskState } from "../records.js";
import { buildStatement, joined, type LimitsDialect, type SqlText, type TransactionSteps } from "./dialect.js";

interface OpenClass {
  readonly id: string;
  readonly route: string;
  readonly version: string;
  readonly lanes: readonly string[];
  readonly turn: number;
}

interface Head {
  readonly runId: string;
  readonly deliveries: number;
  readonly pendingMessages: number;
  readonly isFresh: boolean;
}

type Admitted = Extract<AdmissionResult, { kind: "admitted" }>;

export function* admitRuns(
  d: LimitsDialect,
  turns: TurnCounter,
  request: AdmissionRequest,
): TransactionSteps<AdmissionResult> {
  const { fence, routes, limit } = request;
  const maxClasses = classesToRead(limit);
  const [fenceRows = [], ...classResults] = yield [
    buildStatement(d.base, (bind) => d.selectFence(fence, bind)),
    ...selectOpenClasses(d, routes, maxClasses),
  ];
  if (fenceRows.length === 0) return { writes: null, result: () => ({ kind: "fenced" }) };
  const open = classResults.flat().map(decodeClass).sort(byTurn);
  const classes = open.slice(0, maxClasses);
  const lanes = new Map<string, LaneState>();
  const at = yield* lockLanes(d, classes, lanes);
  if (classes.length === 0) return { writes: null, result: () => emptyResult(at) };
  const requests = classes
    .map((runClass) => ({ runClass, count: headsToLock(runClass, lanes, { limit, classCount: classes.length }) }))
    .filter(({ count }) => count > 0);
  const headRows = requests.length === 0 ? [] : (yield selectHeads(d, requests)).flat();
  const heads = new Map<string, Head[]>(classes.map(({ id }) => [id, []]));
  for (const row of headRows)
    heads.get((requests[Number(row.n) - 1] as (typeof requests)[number]).runClass.id)?.push(decodeHead(row));
  const states = classes.map(
    (runClass): ClassState => ({ ...runClass, headCount: heads.get(runClass.id)?.length ?? 0 }),
  );
  const plan = planAdmission(states, [...lanes.values()], { limit, firstTurn: turns.take(at) });
  turns.skipTo(Math.max(0, ...plan.turnOf.values()));
  const drained = requests.filter(({ runClass, count }) => (heads.get(runClass.id)?.length ?? 0) === count);
  const hasMore =
    plan.turns.length >= limit ||
    open.length > classes.length ||
    classes.length === maxClasses ||
    drained.some(({ runClass }) => !plan.blockedOn.has(runClass.id));
  const byId = new Map(classes.map((runClass) => [runClass.id, runClass]));
  const admitted = plan.turns.map((id) => ({
    runClass: byId.get(id) as OpenClass,
    head: heads.get(id)?.shift() as Head,
  }));
  const emptied = classes.filter(({ id }) => heads.get(id)?.length === 0);
  const lanesWithRoom = [...plan.roomOf].filter(([, room]) => room > 0).map(([id]) => id);
  const readRuns =
    admitted.length === 0
      ? []
      : [
          selectRuns(
            d,
            admitted.map(({ head }) => head.runId),
          ),
        ];
  const readBlocked = lanesWithRoom.length === 0 ? [] : [selectBlockedLanes(d, lanesWithRoom)];
  const writes = joined([
    ...ownTasks(d, request, admitted),
    ...takeSlots(d, request, admitted, at),
    ...updateClasses(d, plan),
    ...readRuns,
  ]);
  // The tasks must have their owner before their class can be empty.
  const deletes = deleteEmptyClasses(d, emptied);
  return {
    writes: [...writes, ...deletes, ...readBlocked],
    result: (rows): Admitted => {
      const runRows = readRuns.length === 0 ? [] : (rows[writes.length - 1] ?? []);
      const blockedRows = readBlocked.length === 0 ? [] : (rows[writes.length + deletes.length] ?? []);
      return {
        kind: "admitted",
        at,
        tasks: decodeAdmitted(admitted, runRows),
        hasMore,
        lanesToWake: blockedRows.map((row) => ({
          lane: row.id as string,
          count: plan.roomOf.get(row.id as string) ?? 0,
        })),
      };
    },
  };
}

const emptyResult = (at: number): Admitted => ({ kind: "admitted", at, tasks: [], hasMore: false, lanesToWake: [] });

const byTurn = (a: OpenClass, b: OpenClass) => a.turn - b.turn || (a.id < b.id ? -1 : 1);

function selectOpenClasses(
  d: LimitsDialect,
  routes: AdmissionRequest["routes"],
  maxClasses: number,
): readonly SqlText[] {
  const rows = routes.map(({ workflow, version }) => [workflow, version]);
  return d.forEach(
    [
      ["v_route", "text"],
      ["v_version", "text"],
    ],
    rows,
    (columnOf) =>
      `SELECT c.id, c.route, c.version, c.lanes, c.turn FROM ${d.base.table("classes")} c
        WHERE c.route = ${columnOf("v_route")} AND c.version = ${columnOf("v_version")} AND c.blocked_on = ''
        ORDER BY c.turn LIMIT ${maxClasses} ${d.lock.skip}`,
  );
}

const decodeClass = (row: SqlRow): OpenClass => ({
  id: row.id as string,
  route: row.route as string,
  version: row.version as string,
  lanes: JSON.parse(row.lanes as string),
  turn: Number(row.turn),
});

const rowKind = { clock: 0, limit: 1, slots: 2 } as const;

/** Locks the lanes and counts their slots. Returns the time, which is read when the locks are held. */
function* lockLanes(
  d: LimitsDialect,
  classes: readonly OpenClass[],
  lanes: Map<string, LaneState>,
): Generator<readonly SqlText[], number, readonly (readonly SqlRow[])[]> {
  const ids = [...new Set(classes.flatMap((runClass) => runClass.lanes))].sort();
  const names = [...new Set(ids.map((id) => laneOf(id).limit))];
  const isLane = (column: string) => (bind: (value: unknown) => string) => d.isOneOf(column, ids, bind);
  const selectLanes = buildStatement(
    d.base,
    (bind) => `SELECT l.id FROM ${d.base.table("lanes")} l WHERE ${isLane("l.id")(bind)} ORDER BY l.id ${d.lock.wait}`,
  );
  if (ids.length > 0) {
    const [lockedRows = []] = yield [selectLanes];
    if (lockedRows.length < ids.length) {
      // Housekeeping has deleted a lane that was not in use.
      const rows = ids.map((id) => [id]);
      yield [d.insertOrLock(d.base.table("lanes"), [["id", "text"]], rows, "id")];
      yield [selectLanes];
    }
  }
  const selectClock = buildStatement(d.base, (bind) => `SELECT ${d.base.now(bind)} AS at`);
  if (ids.length === 0) return Number((yield [selectClock])[0]?.[0]?.at);
  const [stateRows = []] = yield [
    buildStatement(
      d.base,
      (bind) => `SELECT ${rowKind.clock} AS kind, '' AS name, ${d.base.now(bind)} AS value
        UNION ALL SELECT ${rowKind.limit}, m.name, m.concurrency FROM ${d.base.table("limits")} m WHERE ${d.isOneOf("m.name", names, bind)}
        UNION ALL SELECT ${rowKind.slots}, s.lane, count(*) FROM ${d.base.table("slots")} s WHERE ${isLane("s.lane")(bind)} GROUP BY s.lane`,
    ),
  ];
  const ofKind = (kind: number) => stateRows.filter((row) => Number(row.kind) === kind);
  // A limit that was never registered has no slots, because nothing says how many it has.
  const concurrencyOf = new Map(
    ofKind(rowKind.limit).map((row) => [
      row.name as string,
      row.value === null ? Number.POSITIVE_INFINITY : Number(row.value),
    ]),
  );
  const inUseOf = new Map(ofKind(rowKind.slots).map((row) => [row.name as string, Number(row.value)]));
  for (const id of ids)
    lanes.set(id, { id, concurrency: concurrencyOf.get(laneOf(id).limit) ?? 0, inUse: inUseOf.get(id) ?? 0 });
  return Number(ofKind(rowKind.clock)[0]?.value);
}

/** The waiting runs of each class that come first, locked. */
function selectHeads(
  d: LimitsDialect,
  requests: readonly { readonly runClass: OpenClass; readonly count: number }[],
): readonly SqlText[] {
  const { column, order } = d.base.readyRank;
  return d.forEach(
    [
      ["v_route", "text"],
      ["v_version", "text"],
      ["v_count", "number"],
    ],
    requests.map(({ runClass, count }) => [runClass.id, runClass.version, count]),
    (columnOf) =>
      `SELECT ${columnOf("n")} AS n, t.run_id, t.deliveries, t.pending_messages, t.fresh FROM ${d.tasksByRoute}
        WHERE t.state = ${taskState.ready} AND t.workflow = ${columnOf("v_route")} AND t.version = ${columnOf("v_version")}
        ORDER BY ${column} ${order}, t.due_at LIMIT ${columnOf("v_count")} ${d.lock.skip}`,
  );
}

const decodeHead = (row: SqlRow): Head => ({
  runId: row.run_id as string,
  deliveries: Number(row.deliveries),
  pendingMessages: Number(row.pending_messages),
  isFresh: Number(row.fresh) === 1,
});

interface AdmittedRun {
  readonly runClass: OpenClass;
  readonly head: Head;
}

/** The task gets its route back with its owner: whatever parks or frees it later need not know that it was in a class. */
function ownTasks(d: LimitsDialect, { fence }: AdmissionRequest, admitted: readonly AdmittedRun[]): readonly SqlText[] {
  const routes = new Set(admitted.map(({ runClass }) => runClass.route));
  return [...routes].map((route) =>
    buildStatement(d.base, (bind) => {
      const ids = admitted.filter(({ runClass }) => runClass.route === route).map(({ head }) => head.runId);
      const assignments = `state = ${taskState.owned}, workflow = ${bind(route)}, owner = ${bind(fence.workerId)}, epoch = ${bind(fence.epoch)},
        deliveries = deliveries + 1, due_at = CASE WHEN due_at < 0 THEN due_at + ${resumedOffsetMs} ELSE due_at END${d.whenOwned}`;
      return `UPDATE ${d.base.table("tasks")} SET ${assignments} WHERE ${d.base.oneOf("run_id", ids.sort(), bind)}`;
    }),
  );
}

function takeSlots(
  d: LimitsDialect,
  { fence }: AdmissionRequest,
  admitted: readonly AdmittedRun[],
  at: number,
): readonly SqlText[] {
  const rows = admitted.flatMap(({ runClass, head }) =>
    runClass.lanes.map((lane) => [head.runId, lane, fence.workerId, fence.epoch, at]),
  );
  if (rows.length === 0) return [];
  const columns = [
    ["run_id", "id"],
    ["lane", "text"],
    ["owner", "text"],
    ["epoch", "number"],
    ["at", "number"],
  ] as const;
  return [d.insertOrLock(d.base.table("slots"), columns, rows, "run_id, lane")];
}

function updateClasses(d: LimitsDialect, { turnOf, blockedOn }: AdmissionPlan): readonly SqlText[] {
  const ids = [...new Set([...turnOf.keys(), ...blockedOn.keys()])].sort();
  if (ids.length === 0) return [];
  return [
    d.updateEach(
      "classes",
      "id",
      [
        ["v_id", "text"],
        ["v_turn", "number"],
        ["v_blocked_on", "text"],
      ],
      ids.map((id) => [id, turnOf.get(id) ?? null, blockedOn.get(id) ?? ""]),
      (columnOf) => [`turn = coalesce(${columnOf("v_turn")}, turn)`, `blocked_on = ${columnOf("v_blocked_on")}`],
    ),
  ];
}

/** Deletes those of the classes that have no waiting run: there may be some that were not read, or that others have locked. */
function deleteEmptyClasses(d: LimitsDialect, classes: readonly OpenClass[]): readonly SqlText[] {
  if (classes.length === 0) return [];
  const table = d.base.table("classes");
  const selectTask = `SELECT 1 FROM ${d.tasksByRoute} WHERE t.state = ${taskState.ready} AND t.workflow = ${table}.id AND t.version = ${table}.version LIMIT 1`;
  return [
    buildStatement(d.base, (bind) => {
      const ids = classes.map(({ id }) => id).sort();
      return `DELETE FROM ${table} WHERE ${d.isOneOf("id", ids, bind)} AND (${selectTask}) IS NULL`;
    }),
  ];
}

const selectRuns = (d: LimitsDialect, ids: readonly string[]): SqlText =>
  buildStatement(
    d.base,
    (bind) =>
      `SELECT ${runColumnsWith(taskState.owned)} FROM ${d.base.table("runs")} r WHERE ${d.base.oneOf("r.id", ids, bind)}`,
  );

/** The lanes on which classes are blocked although they have free slots. */
const selectBlockedLanes = (d: LimitsDialect, ids: readonly string[]): SqlText =>
  buildStatement(d.base, (bind) => {
    const isBlockedOn = `SELECT 1 FROM ${d.base.table("classes")} c WHERE c.blocked_on = l.id LIMIT 1`;
    return `SELECT l.id FROM ${d.base.table("lanes")} l WHERE ${d.isOneOf("l.id", ids, bind)} AND (${isBlockedOn}) IS NOT NULL`;
  });

function decodeAdmitted(admitted: readonly AdmittedRun[], runRows: readonly SqlRow[]): readonly AdmittedTask[] {
  const runs = new Map(runRows.map((row) => [row.id as string, decodeRun(row)]));
  return admitted.flatMap(({ runClass: { route, lanes }, head }) => {
    const { runId, deliveries, pendingMessages, isFresh } = head;
    const run = runs.get(runId);
    return run === undefined ? [] : [{ run, route, deliveries: deliveries + 1, pendingMessages, isFresh, lanes }];
  });
}
