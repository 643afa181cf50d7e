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
import { deletesOfEmptyClasses, isBlockedOn } from "./classes.js";
import {
  alike,
  buildStatement,
  joined,
  joinedIfFew,
  type LimitsDialect,
  maxJoinedRows,
  type ReadSteps,
  type SqlText,
  type TransactionSteps,
} from "./dialect.js";
import { decodeLaneStates, lockLanes, selectLaneStates, updateLanes } from "./lanes.js";

/** The lanes of a class never change. */
export interface CandidateClass {
  readonly id: string;
  readonly route: string;
  readonly version: string;
  readonly lanes: readonly string[];
  readonly turn: number;
}

interface LockedClass extends CandidateClass {
  /** "" if it is not blocked. */
  readonly blockedOn: string;
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

const classColumns = "c.id, c.route, c.version, c.lanes, c.turn";

/** Selects classes that are not blocked, and the first of those that are blocked on lanes that were freed. Locks nothing. */
export function selectCandidates(
  d: LimitsDialect,
  { routes, limit, freed = [] }: AdmissionRequest,
): readonly SqlText[] {
  const classes = d.base.table("classes");
  const maxClasses = classesToRead(limit);
  return alike([
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
        `SELECT ${classColumns} FROM ${classes} c WHERE ${isBlockedOn(columnOf("v_lane"))} ORDER BY c.turn LIMIT ${columnOf("v_count")}`,
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
  const [fenceRows = [], classRows = [], stateRows = []] = yield joinedIfFew(candidates.length, [
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
  const candidateOf = new Map(candidates.map((candidate) => [candidate.id, candidate]));
  // A class that was blocked on another lane meanwhile is left alone.
  const classes = classRows
    .filter((row) => row.blocked_on === "" || lanes.has(row.blocked_on as string))
    .map((row): LockedClass => {
      const candidate = candidateOf.get(row.id as string) as CandidateClass;
      return { ...candidate, turn: Number(row.turn), blockedOn: row.blocked_on as string };
    })
    .sort(byTurn);
  const isMine = ({ route, version }: CandidateClass) =>
    request.routes.some((candidate) => candidate.workflow === route && candidate.version === version);
  const mine = classes.filter(isMine);
  const requests = mine
    .map((runClass) => ({ runClass, count: headsToLock(runClass, lanes, { limit, now: at, classCount: mine.length }) }))
    .filter(({ count }) => count > 0);
  const heads = yield* lockHeads(d, requests);
  const headsOf = (id: string) => heads.get(id)?.waiting ?? [];
  const countOf = new Map(requests.map(({ runClass, count }) => [runClass.id, count]));
  const states = classes.map(
    (runClass): ClassState => ({
      ...runClass,
      headCount: isMine(runClass) ? Math.min(countOf.get(runClass.id) ?? 0, headsOf(runClass.id).length) : null,
    }),
  );
  const plan = planAdmission(states, [...lanes.values()], { limit, now: at, firstTurn: turns.take(at) });
  turns.skipTo(Math.max(0, ...plan.turnOf.values()));
  const byId = new Map(classes.map((runClass) => [runClass.id, runClass]));
  const admitted = plan.turns.map((id) => ({
    runClass: byId.get(id) as CandidateClass,
    head: headsOf(id).shift() as Head,
  }));
  const writes = joined([
    ...ownTasks(d, request, admitted),
    ...takeSlots(d, request, admitted, heldOpen, at),
    ...updateClasses(d, plan, classes),
    ...updateLanes(d, lanes, plan.lanes),
  ]);
  const hasMoreOf = ({ id }: CandidateClass) =>
    !plan.blockedOn.has(id) && (headsOf(id).length > 0 || heads.get(id)?.isReadToEnd === false);
  const hasMore = plan.turns.length >= limit || candidates.length >= classesToRead(limit) || mine.some(hasMoreOf);
  const toAdmission = (runRows: readonly SqlRow[], openSlotRows: readonly SqlRow[]): Admission => {
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
  };
  // What is read of the runs does not depend on what is written, so it is sent with the last writes.
  const reads = [selectOpenSlots(d, admitted), selectRuns(d, admitted)];
  const last = admitted.length === 0 ? writes : withReads(writes, admitted.length, reads);
  const resultOf = (rows: readonly (readonly SqlRow[])[]) => {
    const [openSlotRows = [], runRows = []] = rows.slice(writes.length);
    return toAdmission(runRows, openSlotRows);
  };
  // A class of which nothing is left was either read to its end or not read at all, because its lanes have no room.
  const emptied = requests.flatMap(({ runClass }) => (headsOf(runClass.id).length === 0 ? [runClass] : []));
  if (emptied.length === 0) return { writes: last, result: resultOf };
  // The tasks must have their owner before their class can be empty.
  const rows = yield last;
  return { writes: yield* deletesOfEmptyClasses(d, emptied), result: () => resultOf(rows) };
}

function withReads(writes: readonly SqlText[], rowCount: number, reads: readonly SqlText[]): readonly SqlText[] {
  return rowCount <= maxJoinedRows ? joined([...writes, ...reads]) : [...writes, ...reads];
}

function lockClasses(d: LimitsDialect, candidates: readonly CandidateClass[]): SqlText {
  const ids = candidates.map(({ id }) => id).sort();
  return buildStatement(d.base, (bind) => {
    const condition = ids.length === 0 ? "1 = 0" : d.isOneOf("c.id", ids, bind);
    return `SELECT c.id, c.turn, c.blocked_on FROM ${d.base.table("classes")} c WHERE ${condition} ${d.lock.skipForUpdate}`;
  });
}

interface LockedHeads {
  /** In the order in which they are admitted. */
  readonly waiting: Head[];
  /** Whether the class has no further run that is not locked. */
  readonly isReadToEnd: boolean;
}

/** With few classes, one more run than may be admitted is locked: it shows whether the class will be empty. */
const maxPeekedClasses = 8;

/** The waiting runs of each class that come first, locked. */
function* lockHeads(
  d: LimitsDialect,
  requests: readonly { readonly runClass: CandidateClass; readonly count: number }[],
): ReadSteps<ReadonlyMap<string, LockedHeads>> {
  if (requests.length === 0) return new Map();
  const further = requests.length <= maxPeekedClasses ? 1 : 0;
  const { column, order } = d.base.readyRank;
  const results = yield d.forEach(
    [
      ["v_route", "text"],
      ["v_version", "text"],
      ["v_count", "number"],
    ],
    requests.map(({ runClass, count }) => [runClass.id, runClass.version, count + further]),
    (columnOf) =>
      `SELECT ${columnOf("n")} AS n, t.run_id, t.deliveries, t.pending_messages, t.fresh FROM ${d.tasksByRoute}
        WHERE t.state = ${taskState.ready} AND t.workflow = ${columnOf("v_route")} AND t.version = ${columnOf("v_version")}
        ORDER BY ${column} ${order}, t.due_at LIMIT ${columnOf("v_count")} ${d.lock.skip}`,
  );
  const found = requests.map((): Head[] => []);
  for (const row of results.flat()) found[Number(row.n) - 1]?.push(decodeHead(row));
  return new Map(
    requests.map(({ runClass, count }, index) => {
      const waiting = found[index] as Head[];
      return [runClass.id, { waiting, isReadToEnd: waiting.length < count + further }];
    }),
  );
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

/** Writes the turns that were given, and on which lanes classes are blocked now. Many classes usually stay as they were. */
function updateClasses(
  d: LimitsDialect,
  { turnOf, blockedOn }: AdmissionPlan,
  classes: readonly LockedClass[],
): readonly SqlText[] {
  const isChanged = ({ id, blockedOn: lane }: LockedClass) => turnOf.has(id) || (blockedOn.get(id) ?? "") !== lane;
  const ids = classes
    .filter(isChanged)
    .map(({ id }) => id)
    .sort();
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

const selectRuns = (d: LimitsDialect, admitted: readonly AdmittedRun[]): SqlText =>
  buildStatement(d.base, (bind) => {
    const ids = admitted.map(({ head }) => head.runId);
    return `SELECT ${runColumnsWith(taskState.owned)} FROM ${d.base.table("runs")} r WHERE ${d.base.oneOf("r.id", ids, bind)}`;
  });

/** The slots that these runs took when they began, and hold until they end. A run that no worker has ever owned holds none. */
const selectOpenSlots = (d: LimitsDialect, admitted: readonly AdmittedRun[]): SqlText =>
  buildStatement(d.base, (bind) => {
    const ids = admitted.flatMap(({ head }) => (head.isFresh ? [] : [head.runId]));
    const condition = ids.length === 0 ? "1 = 0" : d.base.oneOf("s.run_id", ids, bind);
    return `SELECT s.run_id, s.lane FROM ${d.base.table("slots")} s WHERE ${condition} AND s.owner IS NULL AND s.node = ''`;
  });

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
