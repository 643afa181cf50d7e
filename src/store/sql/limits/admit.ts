/**
 * Admission: one transaction that decides which runs of the first classes may begin, takes their slots and makes the worker
 * their owner.
 *
 * Locks are taken in the order lanes, worker, classes, tasks: lanes in the order of their ids, while classes and tasks that
 * others have locked are skipped. So a transaction that holds a lane waits only for further lanes, and for the worker's row,
 * whose other holders wait for no lane. Which lanes are needed is read before without locks; what is read when they are locked
 * decides.
 */
import {
  type AdmissionPlan,
  type ClassState,
  classesToRead,
  headsToLock,
  planAdmission,
} from "../../../core/limits/admission.js";
import { resumedOffsetMs, type TurnCounter } from "../../../core/limits/order.js";
import type { AdmissionRequest, AdmissionResult, AdmittedTask } from "../../contract/limits.js";
import type { SqlRow } from "../dialect.js";
import { decodeRun, runColumnsWith, taskState } from "../records.js";
import { buildStatement, joined, type LimitsDialect, type SqlText, type TransactionSteps } from "./dialect.js";
import { decodeLaneStates, lockLanes, type ReadSteps, selectLaneStates, updateLanes } from "./lanes.js";

export interface CandidateClass {
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

export interface Admission {
  readonly answer: AdmissionResult;
  /** The routes of classes of other workers that are not blocked any more. */
  readonly openedRoutes: readonly string[];
  /** Whether steps wait in a lane that was freed. */
  readonly hasWaitingSteps: boolean;
}

const fenced: Admission = { answer: { kind: "fenced" }, openedRoutes: [], hasWaitingSteps: false };

const byTurn = (a: CandidateClass, b: CandidateClass) => a.turn - b.turn || (a.id < b.id ? -1 : 1);

const classColumns = "c.id, c.route, c.version, c.lanes, c.turn, c.blocked_on";

/** Selects classes that are not blocked, and the first of those that are blocked on lanes that were freed. Locks nothing. */
export function selectCandidates(
  d: LimitsDialect,
  { routes, limit, freed = [] }: AdmissionRequest,
): readonly SqlText[] {
  const classes = d.base.table("classes");
  const maxClasses = classesToRead(limit);
  return joined([
    ...d.forEach(
      [
        ["v_route", "text"],
        ["v_version", "text"],
        ["v_count", "number"],
      ],
      routes.map(({ workflow, version }) => [workflow, version, maxClasses]),
      (columnOf) =>
        `SELECT ${classColumns} FROM ${classes} c
        WHERE c.route = ${columnOf("v_route")} AND c.version = ${columnOf("v_version")} AND c.blocked_on = ''
        ORDER BY c.turn LIMIT ${columnOf("v_count")}`,
    ),
    ...d.forEach(
      [
        ["v_lane", "text"],
        ["v_count", "number"],
      ],
      freed.map(({ lane, count }) => [lane, Math.min(count, maxClasses)]),
      (columnOf) =>
        `SELECT ${classColumns} FROM ${classes} c WHERE c.blocked_on = ${columnOf("v_lane")} ORDER BY c.turn LIMIT ${columnOf("v_count")}`,
    ),
  ]);
}

export function decodeCandidates(rows: readonly (readonly SqlRow[])[], limit: number): readonly CandidateClass[] {
  const found = new Map(rows.flat().map((row) => [row.id as string, decodeClass(row)]));
  return [...found.values()].sort(byTurn).slice(0, classesToRead(limit));
}

const decodeClass = (row: SqlRow): CandidateClass => ({
  id: row.id as string,
  route: row.route as string,
  version: row.version as string,
  lanes: JSON.parse(row.lanes as string),
  turn: Number(row.turn),
});

export function* admitRuns(
  d: LimitsDialect,
  turns: TurnCounter,
  request: AdmissionRequest,
  candidates: readonly CandidateClass[],
): TransactionSteps<Admission> {
  const { fence, limit, freed = [] } = request;
  const laneIds = [...new Set([...freed.map(({ lane }) => lane), ...candidates.flatMap(({ lanes }) => lanes)])].sort();
  yield* lockLanes(d, laneIds);
  const [fenceRows = [], classRows = [], stateRows = []] = yield joined([
    buildStatement(d.base, (bind) => d.selectFence(fence, bind)),
    lockClasses(d, candidates),
    selectLaneStates(
      d,
      laneIds,
      candidates.map(({ id }) => id),
    ),
  ]);
  if (fenceRows.length === 0) return { writes: null, result: () => fenced };
  const { at, lanes, heldOpen } = decodeLaneStates(stateRows, laneIds);
  // A class that was blocked on another lane meanwhile, or that needs lanes which are not locked, is left alone.
  const classes = classRows
    .filter((row) => row.blocked_on === "" || lanes.has(row.blocked_on as string))
    .map(decodeClass)
    .filter((runClass) => runClass.lanes.every((lane) => lanes.has(lane)))
    .sort(byTurn);
  const isMine = ({ route, version }: CandidateClass) =>
    request.routes.some((candidate) => candidate.workflow === route && candidate.version === version);
  const mine = classes.filter(isMine);
  const requests = mine
    .map((runClass) => ({ runClass, count: headsToLock(runClass, lanes, { limit, now: at, classCount: mine.length }) }))
    .filter(({ count }) => count > 0);
  const heads = yield* lockHeads(d, requests);
  const countOf = new Map(requests.map(({ runClass, count }) => [runClass.id, count]));
  const states = classes.map(
    (runClass): ClassState => ({
      ...runClass,
      headCount: isMine(runClass) ? Math.min(countOf.get(runClass.id) ?? 0, heads.get(runClass.id)?.length ?? 0) : null,
    }),
  );
  const plan = planAdmission(states, [...lanes.values()], { limit, now: at, firstTurn: turns.take(at) });
  turns.skipTo(Math.max(0, ...plan.turnOf.values()));
  const byId = new Map(classes.map((runClass) => [runClass.id, runClass]));
  const admitted = plan.turns.map((id) => ({
    runClass: byId.get(id) as CandidateClass,
    head: heads.get(id)?.shift() as Head,
  }));
  const runIds = admitted.map(({ head }) => head.runId);
  // A class of which nothing is left was either read to its end or not read at all, because its lanes have no room.
  const emptied = requests.flatMap(({ runClass }) => (heads.get(runClass.id)?.length === 0 ? [runClass] : []));
  const reads = admitted.length === 0 ? [] : [selectOpenSlots(d, runIds), selectRuns(d, runIds)];
  const writes = [
    ...ownTasks(d, request, admitted),
    ...takeSlots(d, request, admitted, heldOpen, at),
    ...updateClasses(d, plan, classes),
    ...updateLanes(d, lanes, plan.lanes),
  ];
  // The tasks must have their owner before their class can be empty.
  const deletes = deleteEmptyClasses(d, emptied);
  const isLeft = ({ id }: CandidateClass) => !plan.blockedOn.has(id) && (heads.get(id)?.length ?? 0) > 0;
  const hasMore = plan.turns.length >= limit || candidates.length >= classesToRead(limit) || mine.some(isLeft);
  return {
    writes: [...joined([...writes, ...reads]), ...deletes],
    result: (rows) => {
      const [openSlotRows = [], runRows = []] = rows.slice(writes.length, writes.length + reads.length);
      const answer: Admitted = {
        kind: "admitted",
        at,
        tasks: decodeAdmitted(admitted, runRows, openSlotRows, heldOpen),
        hasMore,
        lanesToWake: [...lanes.values()].flatMap(({ id, unreadTurn }) => {
          const room = plan.roomOf.get(id) ?? 0;
          return unreadTurn !== null && room > 0 ? [{ lane: id, count: room }] : [];
        }),
      };
      const opened = classes.filter((runClass) => !isMine(runClass) && !plan.blockedOn.has(runClass.id));
      return {
        answer,
        openedRoutes: [...new Set(opened.map(({ route }) => route))],
        hasWaitingSteps: freed.some(({ lane }) => (lanes.get(lane)?.waitingSteps ?? 0) > 0),
      };
    },
  };
}

function lockClasses(d: LimitsDialect, candidates: readonly CandidateClass[]): SqlText {
  const ids = candidates.map(({ id }) => id).sort();
  return buildStatement(d.base, (bind) => {
    const condition = ids.length === 0 ? "1 = 0" : d.isOneOf("c.id", ids, bind);
    return `SELECT ${classColumns} FROM ${d.base.table("classes")} c WHERE ${condition} ${d.lock.skip}`;
  });
}

/** The waiting runs of each class that come first, locked: one more than may be admitted, to see whether it will be empty. */
function* lockHeads(
  d: LimitsDialect,
  requests: readonly { readonly runClass: CandidateClass; readonly count: number }[],
): ReadSteps<ReadonlyMap<string, Head[]>> {
  const heads = new Map<string, Head[]>(requests.map(({ runClass }) => [runClass.id, []]));
  if (requests.length === 0) return heads;
  const { column, order } = d.base.readyRank;
  const results = yield d.forEach(
    [
      ["v_route", "text"],
      ["v_version", "text"],
      ["v_count", "number"],
    ],
    requests.map(({ runClass, count }) => [runClass.id, runClass.version, count + 1]),
    (columnOf) =>
      `SELECT ${columnOf("n")} AS n, t.run_id, t.deliveries, t.pending_messages, t.fresh FROM ${d.tasksByRoute}
        WHERE t.state = ${taskState.ready} AND t.workflow = ${columnOf("v_route")} AND t.version = ${columnOf("v_version")}
        ORDER BY ${column} ${order}, t.due_at LIMIT ${columnOf("v_count")} ${d.lock.skip}`,
  );
  for (const row of results.flat())
    heads.get((requests[Number(row.n) - 1] as (typeof requests)[number]).runClass.id)?.push(decodeHead(row));
  return heads;
}

const decodeHead = (row: SqlRow): Head => ({
  runId: row.run_id as string,
  deliveries: Number(row.deliveries),
  pendingMessages: Number(row.pending_messages),
  isFresh: Number(row.fresh) === 1,
});

interface AdmittedRun {
  readonly runClass: CandidateClass;
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

/** A slot without an owner is held until the run ends. */
function takeSlots(
  d: LimitsDialect,
  { fence }: AdmissionRequest,
  admitted: readonly AdmittedRun[],
  heldOpen: ReadonlySet<string>,
  at: number,
): readonly SqlText[] {
  const rows = admitted.flatMap(({ runClass, head }) =>
    runClass.lanes.map((lane) =>
      heldOpen.has(lane) ? [head.runId, lane, null, null, at] : [head.runId, lane, fence.workerId, fence.epoch, at],
    ),
  );
  if (rows.length === 0) return [];
  const columns = [
    ["run_id", "id"],
    ["lane", "text"],
    ["owner", "text"],
    ["epoch", "number"],
    ["at", "number"],
  ] as const;
  return [d.insertOrLock(d.base.table("slots"), columns, rows, "run_id, lane, node")];
}

/** Writes the turns that were given, and on which lanes classes are blocked now. */
function updateClasses(
  d: LimitsDialect,
  { turnOf, blockedOn }: AdmissionPlan,
  classes: readonly CandidateClass[],
): readonly SqlText[] {
  const ids = classes.map(({ id }) => id).sort();
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

/** Deletes those of the classes that have no waiting run: there may be some that others have locked. */
export function deleteEmptyClasses(
  d: LimitsDialect,
  classes: readonly Pick<CandidateClass, "id">[],
): readonly SqlText[] {
  if (classes.length === 0) return [];
  const table = d.base.table("classes");
  const selectTask = `SELECT 1 FROM ${d.tasksByRoute} WHERE t.state = ${taskState.ready} AND t.workflow = ${table}.id AND t.version = ${table}.version LIMIT 1`;
  return [
    buildStatement(d.base, (bind) => {
      const ids = [...new Set(classes.map(({ id }) => id))].sort();
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

/** The slots that these runs took when they began, and hold until they end. */
const selectOpenSlots = (d: LimitsDialect, ids: readonly string[]): SqlText =>
  buildStatement(
    d.base,
    (bind) =>
      `SELECT s.run_id, s.lane FROM ${d.base.table("slots")} s WHERE ${d.base.oneOf("s.run_id", ids, bind)} AND s.owner IS NULL`,
  );

function decodeAdmitted(
  admitted: readonly AdmittedRun[],
  runRows: readonly SqlRow[],
  openSlotRows: readonly SqlRow[],
  heldOpen: ReadonlySet<string>,
): readonly AdmittedTask[] {
  const runs = new Map(runRows.map((row) => [row.id as string, decodeRun(row)]));
  return admitted.flatMap(({ runClass: { route, lanes }, head }) => {
    const run = runs.get(head.runId);
    if (run === undefined) return [];
    const { deliveries, pendingMessages, isFresh } = head;
    const takenBefore = openSlotRows.filter((row) => row.run_id === head.runId).map((row) => row.lane as string);
    const openLanes = [...new Set([...lanes.filter((lane) => heldOpen.has(lane)), ...takenBefore])];
    return [
      {
        run,
        route,
        deliveries: deliveries + 1,
        pendingMessages,
        isFresh,
        lanes: [...new Set([...lanes, ...openLanes])],
        openLanes,
      },
    ];
  });
}
