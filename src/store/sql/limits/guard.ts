/**
 * Judges runs that come into lanes whose limits have a policy for the case that they are full (`onFull`), within the transaction
 * that sorts them.
 */
import { type ArrivingRun, type FullLaneVerdict, judgeStarts } from "../../../core/limits/full-lane.js";
import { runClassOf } from "../../../core/limits/lane.js";
import type { TurnCounter } from "../../../core/limits/order.js";
import { baseRouteOf } from "../../../core/naming/route.js";
import { limitCycleMessage, limitFullMessage } from "../../../core/run/full-limit.js";
import type { Message } from "../../../core/run/message.js";
import type { LimitRefusal, SortedTask } from "../../contract/limits.js";
import { taskState } from "../records.js";
import { insertOrLockClasses } from "./classes.js";
import { buildStatement, type LimitsDialect, type ReadSteps, type SqlText, type TransactionSteps } from "./dialect.js";
import { type ClassKey, evictingRank, readBegun, readLanes, type SeenLane } from "./guarded-lanes.js";

export interface Judgement {
  readonly verdicts: readonly FullLaneVerdict[];
  /** Runs that stay where they are until a run is free that would be canceled for them. */
  readonly postponed: ReadonlySet<string>;
  readonly writes: readonly SqlText[];
  /** Locked classes that may have no task after the writes. */
  readonly emptied: readonly { readonly id: string }[];
  /** Owned runs that have got a message. */
  readonly ownedRunIds: readonly string[];
  /** The routes of runs that a message has made ready. */
  readonly readyRoutes: readonly string[];
}

export const nothingToJudge: Judgement = {
  verdicts: [],
  postponed: new Set(),
  writes: [],
  emptied: [],
  ownedRunIds: [],
  readyRoutes: [],
};

/** @param tasks whose tasks and lanes are locked, in the order in which they are judged */
export function* judgeArriving(
  d: LimitsDialect,
  turns: TurnCounter,
  tasks: readonly SortedTask[],
  at: number,
): ReadSteps<Judgement> {
  const laneIds = [...new Set(tasks.flatMap(({ guardedLanes }) => guardedLanes ?? []))].sort();
  if (laneIds.length === 0) return nothingToJudge;
  const begun = yield* readBegun(d, tasks);
  const arriving = tasks.map(
    ({ runId, guardedLanes = [] }): ArrivingRun => ({ runId, lanes: guardedLanes, hasBegun: begun.has(runId) }),
  );
  const { lanes, classOfRun, lockedHolders } = yield* readLanes(d, laneIds, arriving);
  const postponed = new Set<string>();
  const judge = () =>
    judgeStarts(
      lanes,
      arriving.filter(({ runId }) => !postponed.has(runId)),
    );
  let verdicts = judge();
  for (;;) {
    const locked = verdicts.find(({ runId, isHolder }) => isHolder && !lockedHolders.has(runId));
    if (locked === undefined) break;
    for (const { runId, lanes: ids, hasBegun } of arriving)
      if (!hasBegun && ids.includes(locked.lane)) postponed.add(runId);
    verdicts = judge();
  }
  const taskOf = new Map(tasks.map((task) => [task.runId, task]));
  const holders = verdicts.filter(({ isHolder }) => isHolder);
  const ended = verdicts.filter(({ isHolder }) => !isHolder);
  const endedIds = new Set(ended.map(({ runId }) => runId));
  const accepted = tasks.filter(({ runId }) => !endedIds.has(runId) && !postponed.has(runId));
  // Only classes that this transaction has locked: it must not wait for one.
  const emptied = ended.flatMap(({ runId }) => taskOf.get(runId)?.runClass ?? []);
  const isParked = ({ runId }: FullLaneVerdict) => lockedHolders.get(runId)?.isParked === true;
  return {
    verdicts,
    postponed,
    writes: [
      ...moveEnded(
        d,
        turns,
        at,
        ended.map(({ runId }) => {
          const { id, version } = taskOf.get(runId)?.runClass ?? (classOfRun.get(runId) as ClassKey);
          return { runId, route: baseRouteOf(id), version };
        }),
      ),
      ...tellHolders(d, at, holders, isParked),
      ...sendMessages(d, at, verdicts.map(limitFullMessage)),
      ...listClasses(d, lanes, accepted),
    ],
    emptied,
    ownedRunIds: holders.filter((verdict) => !isParked(verdict)).map(({ runId }) => runId),
    readyRoutes: holders.filter(isParked).map(({ runId }) => lockedHolders.get(runId)?.route as string),
  };
}

/**
 * Runs that are to end get a class without lanes, so a worker takes them at once. The class is new: a transaction that holds
 * lanes must not wait for a class.
 */
function moveEnded(
  d: LimitsDialect,
  turns: TurnCounter,
  at: number,
  ended: readonly { readonly runId: string; readonly route: string; readonly version: string }[],
): readonly SqlText[] {
  if (ended.length === 0) return [];
  const turn = turns.take(at);
  const classOf = ({ route, version }: { readonly route: string; readonly version: string }) =>
    runClassOf(route, version, [], `full\t${turn}`);
  const classes = [...new Map(ended.map((run) => [classOf(run).id, classOf(run)])).values()];
  return [
    insertOrLockClasses(
      d,
      classes.map((runClass) => ({ ...runClass, turn })),
    ),
    d.updateEach(
      "tasks",
      "run_id",
      [
        ["v_id", "id"],
        ["v_route", "text"],
      ],
      [...ended].sort((a, b) => (a.runId < b.runId ? -1 : 1)).map((run) => [run.runId, classOf(run).id]),
      (columnOf) => [
        `workflow = ${columnOf("v_route")}`,
        `state = ${taskState.ready}`,
        `pending_messages = pending_messages + 1${d.whenReady}`,
      ],
    ),
  ];
}

/** A parked holder becomes ready. */
function tellHolders(
  d: LimitsDialect,
  at: number,
  holders: readonly FullLaneVerdict[],
  isParked: (verdict: FullLaneVerdict) => boolean,
): readonly SqlText[] {
  const tell = (verdicts: readonly FullLaneVerdict[], further: string) => {
    const ids = [...new Set(verdicts.map(({ runId }) => runId))].sort();
    return ids.length === 0
      ? []
      : [
          d.updateEach(
            "tasks",
            "run_id",
            [
              ["v_id", "id"],
              ["v_messages", "number"],
            ],
            ids.map((id) => [id, verdicts.filter(({ runId }) => runId === id).length]),
            (columnOf) => [`pending_messages = pending_messages + ${columnOf("v_messages")}${further}`],
          ),
        ];
  };
  const marked = holders.map(({ runId, lane }) => ({ runId, lane, node: "" }));
  return [
    ...tell(
      holders.filter((verdict) => !isParked(verdict)),
      "",
    ),
    ...tell(holders.filter(isParked), `, due_at = ${Math.floor(at)}, state = ${taskState.ready}${d.whenReady}`),
    ...(marked.length === 0
      ? []
      : [
          buildStatement(
            d.base,
            (bind) =>
              `UPDATE ${d.base.table("slots")} SET rank_no = ${evictingRank} WHERE ${d.isOneOfSlots(marked, bind)}`,
          ),
        ]),
  ];
}

function sendMessages(d: LimitsDialect, at: number, messages: readonly Message[]): readonly SqlText[] {
  if (messages.length === 0) return [];
  return [
    buildStatement(d.base, (bind) => {
      const rows = messages.map(({ to, kind, data }) => [to, kind, data, Math.floor(at)]);
      const tuples = rows.map((row) => `(${row.map(bind).join(", ")})`);
      return `INSERT INTO ${d.base.table("inbox")} (run_id, kind, data, at) VALUES ${tuples.join(", ")}`;
    }),
  ];
}

/** Writes which classes may have runs that wait in the lanes. Those without one are left out. */
function listClasses(
  d: LimitsDialect,
  lanes: readonly SeenLane[],
  accepted: readonly SortedTask[],
): readonly SqlText[] {
  const changed = lanes.flatMap(({ id, classes, listed }) => {
    const keys = new Map(classes.map((key) => [key.id, key]));
    for (const { runClass, guardedLanes = [] } of accepted)
      if (guardedLanes.includes(id)) keys.set(runClass.id, runClass);
    const list = encodeList([...keys.values()]);
    return list === encodeList(listed) ? [] : [[id, list]];
  });
  if (changed.length === 0) return [];
  return [
    d.updateEach(
      "lanes",
      "id",
      [
        ["v_id", "text"],
        ["v_list", "text"],
      ],
      changed,
      (columnOf) => [`waiting_classes = ${columnOf("v_list")}`],
    ),
  ];
}

const encodeList = (classes: readonly ClassKey[]): string | null =>
  classes.length === 0 ? null : JSON.stringify(classes.map(({ id, version }) => [id, version]));

/** Takes no lock but those of tasks, and waits for none. */
export function* refuseWaiting(
  d: LimitsDialect,
  turns: TurnCounter,
  refusals: readonly LimitRefusal[],
): TransactionSteps<readonly { readonly runId: string; readonly route: string }[]> {
  const [rows = [], clock] = yield [
    buildStatement(d.base, (bind) => {
      const ids = refusals.map(({ runId }) => runId).sort();
      return `SELECT t.run_id, t.workflow, t.version FROM ${d.tasksByKey} WHERE ${d.base.oneOf("t.run_id", ids, bind)} AND t.state = ${taskState.ready} ORDER BY t.run_id ${d.lock.skip}`;
    }),
    buildStatement(d.base, (bind) => `SELECT ${d.base.now(bind)} AS at`),
  ];
  const at = Number(clock?.[0]?.at);
  const waiting = rows.flatMap((row) => {
    const classId = row.workflow as string;
    const route = baseRouteOf(classId);
    return route === classId ? [] : [{ runId: row.run_id as string, route, version: row.version as string }];
  });
  const refused = new Set(waiting.map(({ runId }) => runId));
  const messages = refusals.filter(({ runId }) => refused.has(runId)).map(limitCycleMessage);
  return {
    writes: [...moveEnded(d, turns, at, waiting), ...sendMessages(d, at, messages)],
    result: () => waiting,
  };
}
