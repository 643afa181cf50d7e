/** Puts tasks that wait in classes back on the routes of their workflows. */
import { resumedOffsetMs } from "../../../core/limits/order.js";
import { classRouteRangeOf } from "../../../core/naming/route.js";
import type { ClassRecord } from "../../contract/limits.js";
import type { Route } from "../../contract/store.js";
import { taskState } from "../records.js";
import { deletesOfEmptyClasses } from "./classes.js";
import { buildStatement, type LimitsDialect, type SqlText, type TransactionSteps } from "./dialect.js";
import { classColumns, decodeClassRecord, type Read } from "./reads.js";

/** One transaction looks at this many classes, and moves this many tasks of each. */
const classesPerCall = 16;
const tasksPerClass = 100;

export async function readClassesOfRoutes(
  d: LimitsDialect,
  read: Read,
  routes: readonly Route[],
): Promise<readonly ClassRecord[]> {
  const results = await read(
    d.forEach(
      [
        ["v_from", "text"],
        ["v_to", "text"],
        ["v_version", "text"],
      ],
      routes.map(({ workflow, version }) => [...classRouteRangeOf(workflow), version]),
      (columnOf) =>
        `SELECT ${classColumns} FROM ${d.base.table("classes")} c WHERE c.id >= ${columnOf("v_from")} AND c.id < ${columnOf("v_to")} AND c.version = ${columnOf("v_version")} LIMIT ${classesPerCall}`,
    ),
  );
  return results.flat().map(decodeClassRecord).slice(0, classesPerCall);
}

/**
 * Classes are locked first, then tasks, as in an admission. Those that others have locked are skipped: the next call finds them.
 *
 * @returns how many tasks were moved, and how many classes had none
 */
export function* unsortTasks(
  d: LimitsDialect,
  classes: readonly Pick<ClassRecord, "id" | "route" | "version">[],
): TransactionSteps<number> {
  const ids = classes.map(({ id }) => id).sort();
  const [lockedRows = []] = yield [
    buildStatement(
      d.base,
      (bind) => `SELECT c.id FROM ${d.base.table("classes")} c WHERE ${d.isOneOf("c.id", ids, bind)} ${d.lock.skip}`,
    ),
  ];
  const lockedIds = new Set(lockedRows.map((row) => row.id as string));
  const locked = classes.filter(({ id }) => lockedIds.has(id));
  if (locked.length === 0) return { writes: null, result: () => 0 };
  const taskRows = yield d.forEach(
    [
      ["v_route", "text"],
      ["v_version", "text"],
    ],
    locked.map(({ id, version }) => [id, version]),
    (columnOf) => `SELECT t.run_id, t.workflow FROM ${d.tasksByRoute}
      WHERE t.state = ${taskState.ready} AND t.workflow = ${columnOf("v_route")} AND t.version = ${columnOf("v_version")}
      LIMIT ${tasksPerClass} ${d.lock.skip}`,
  );
  const routeOf = new Map(locked.map(({ id, route }) => [id, route]));
  const tasks = taskRows
    .flat()
    .map((row) => [row.run_id as string, routeOf.get(row.workflow as string) as string] as const)
    .sort(([a], [b]) => (a < b ? -1 : 1));
  const nonEmpty = new Set(taskRows.flat().map((row) => row.workflow as string));
  yield moveTasks(d, tasks);
  return {
    writes: yield* deletesOfEmptyClasses(d, locked),
    result: () => tasks.length + locked.length - nonEmpty.size,
  };
}

function moveTasks(d: LimitsDialect, tasks: readonly (readonly [runId: string, route: string])[]): readonly SqlText[] {
  if (tasks.length === 0) return [];
  return [
    d.updateEach(
      "tasks",
      "run_id",
      [
        ["v_id", "id"],
        ["v_route", "text"],
      ],
      tasks,
      (columnOf) => [
        `workflow = ${columnOf("v_route")}`,
        `due_at = CASE WHEN due_at < 0 THEN due_at + ${resumedOffsetMs} ELSE due_at END${d.whenReady}`,
      ],
    ),
  ];
}
