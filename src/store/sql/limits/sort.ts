/** Gives due tasks the routes of their classes. */
import { resumedOffsetMs, type TurnCounter } from "../../../core/limits/order.js";
import type { SortedTask, SortResult } from "../../contract/limits.js";
import { taskState } from "../records.js";
import { deletesOfEmptyClasses, insertOrLockClasses } from "./classes.js";
import { buildStatement, type LimitsDialect, type TransactionSteps } from "./dialect.js";
import { judgeArriving, nothingToJudge } from "./guard.js";
import { lockLanes } from "./lanes.js";

export interface Sorting extends SortResult {
  /** Owned runs that have got a message. */
  readonly ownedRunIds: readonly string[];
  /** The routes of runs that a message has made ready. */
  readonly readyRoutes: readonly string[];
}

/**
 * Classes are created first, in the order of their ids. A class that exists is locked, so that no admission deletes it before its
 * new tasks are committed. Tasks are locked last, and those that others have locked are skipped: they are sorted next time.
 * Lanes are created by the admission that looks at them first. Only guarded lanes are locked, after the classes: admissions,
 * which lock in the other order, never wait for a class.
 */
export function* sortTasks(
  d: LimitsDialect,
  turns: TurnCounter,
  tasks: readonly SortedTask[],
): TransactionSteps<Sorting> {
  const classes = [...new Map(tasks.map(({ runClass }) => [runClass.id, runClass])).values()];
  const [clock] = yield [buildStatement(d.base, (bind) => `SELECT ${d.base.now(bind)} AS at`)];
  const at = Number(clock?.[0]?.at);
  const firstTurn = turns.take(at, classes.length);
  const newClasses = classes
    .map((runClass, index) => ({ ...runClass, turn: firstTurn + index }))
    .sort((a, b) => (a.id < b.id ? -1 : 1));
  yield [insertOrLockClasses(d, newClasses)];
  const guardedLanes = [...new Set(tasks.flatMap(({ guardedLanes: lanes = [] }) => lanes))].sort();
  yield* lockLanes(d, guardedLanes);
  const sorted = [...tasks].sort((a, b) => (a.runId < b.runId ? -1 : 1));
  const { parked, ready } = taskState;
  const isDue = `(t.state = ${ready} OR (t.state = ${parked} AND t.due_at <= ${Math.floor(at)}))`;
  const [lockedRows = []] = yield [
    buildStatement(d.base, (bind) => {
      const isOneOf = d.base.oneOf(
        "t.run_id",
        sorted.map(({ runId }) => runId),
        bind,
      );
      return `SELECT t.run_id, t.workflow, t.version, t.due_at FROM ${d.tasksByKey} WHERE ${isOneOf} AND ${isDue} ORDER BY t.run_id ${d.lock.skip}`;
    }),
  ];
  const locked = new Map(lockedRows.map((row) => [row.run_id as string, row]));
  const isSortable = ({ runId, runClass, dueAt }: SortedTask) => {
    const row = locked.get(runId);
    return row?.workflow === runClass.route && (dueAt === undefined || Number(row.due_at) === dueAt);
  };
  const judgement =
    guardedLanes.length > 0 ? yield* judgeArriving(d, turns, tasks.filter(isSortable), at) : nothingToJudge;
  const { verdicts, postponed, ownedRunIds, readyRoutes } = judgement;
  const ended = new Set(verdicts.map(({ runId }) => runId));
  const movable = sorted.filter((task) => isSortable(task) && !ended.has(task.runId) && !postponed.has(task.runId));
  const moves =
    movable.length === 0
      ? []
      : [
          d.updateEach(
            "tasks",
            "run_id",
            [
              ["v_id", "id"],
              ["v_route", "text"],
              ["v_offset", "number"],
            ],
            movable.map(({ runId, runClass, hasBegun }) => [runId, runClass.id, hasBegun ? resumedOffsetMs : 0]),
            (columnOf) => [
              `workflow = ${columnOf("v_route")}`,
              `state = ${ready}`,
              `due_at = due_at - ${columnOf("v_offset")}${d.whenReady}`,
            ],
          ),
        ];
  const result = () => ({ verdicts, hasPostponed: postponed.size > 0, ownedRunIds, readyRoutes });
  if (judgement.emptied.length === 0) return { writes: [...moves, ...judgement.writes], result };
  yield [...moves, ...judgement.writes];
  return { writes: yield* deletesOfEmptyClasses(d, judgement.emptied), result };
}
