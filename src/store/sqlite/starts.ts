/** Creates runs: a row in pawl_runs and one in pawl_tasks. */

import type { RunClass } from "../../core/limits/lane.js";
import { firstTurnOfNew } from "../../core/limits/order.js";
import { startDeadlineOf } from "../../core/run/transition.js";
import type { Fence, NewRun, RefusedStart } from "../contract/store.js";
import { isPlainRun } from "../shared/plain-run.js";
import type { Queryable, SqlRow } from "../sql/dialect.js";
import { decodeRun, encodeTags, runColumns, taskState } from "../sql/records.js";
import type { Connection } from "./connection.js";

const commonColumns = "id, workflow, version, queue, priority, input, created_at";
const rareColumns =
  "hero_type, hero_id, hero_key, start_key, tags, parent_id, parent_node, parent_index, parent_attempt";
const originColumns = "started_by, schedule";

const insertInto = (...columns: string[]): string => {
  const list = columns.join(", ");
  return `INSERT INTO pawl_runs (${list}, status) VALUES (${list.replace(/\w+/g, "?")}, 'pending')`;
};
const insertPlainRun = insertInto(commonColumns);
const insertRun = insertInto(commonColumns, rareColumns);
const insertRunWithOrigin = insertInto(commonColumns, rareColumns, originColumns);

/** The statements that insert a run, with the columns that `runValues` has values for. */
const statementsWith = (suffix: string) => {
  const plain = `${insertPlainRun} ${suffix}`;
  const usual = `${insertRun} ${suffix}`;
  const withOrigin = `${insertRunWithOrigin} ${suffix}`;
  return (run: NewRun): string => (isPlainRun(run) ? plain : hasOrigin(run) ? withOrigin : usual);
};
const hasOrigin = ({ startedBy, schedule }: NewRun) => startedBy !== undefined || schedule !== undefined;

/** Changes no row if another run has the id or a key. Only then does `startRuns` query which of them it is. */
export const insertRunUnlessTaken = statementsWith("ON CONFLICT DO NOTHING");

/**
 * Changes no row if the child exists, because an earlier attempt of the same parent has created it. Fails if another
 * run has one of the child's keys.
 */
export const insertChild = statementsWith("ON CONFLICT (id) DO NOTHING");

export const insertTaskInto = `INSERT INTO pawl_tasks (run_id, workflow, version, priority, state, due_at, owner, epoch,
  deliveries, pending_messages, fresh)`;
const insertTask = `${insertTaskInto} VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?)`;

export const insertStartDeadlineInto = "INSERT INTO pawl_start_deadlines (run_id, at)";
const insertStartDeadline = `${insertStartDeadlineInto} VALUES (?, ?)`;

const insertClass =
  "INSERT INTO pawl_classes (id, route, version, lanes, turn, blocked_on) VALUES (?, ?, ?, ?, ?, '') ON CONFLICT (id) DO NOTHING";

const selectRun = `SELECT ${runColumns("pawl_tasks")} FROM pawl_runs r WHERE`;
const selectById = "SELECT 1 FROM pawl_runs WHERE id = ?";
const selectByStartKey = `${selectRun} r.workflow = ? AND r.start_key = ?`;
const selectByHeroKey = `${selectRun} r.hero_key = ?`;

export function startChildren(db: Connection, children: readonly NewRun[], fence: Fence | null, at: number): void {
  for (const run of children) {
    if (db.run(insertChild(run), ...runValues(run, at)) === 1) createTask(db, run, fence, at);
  }
}

function createTask(db: Connection, run: NewRun, fence: Fence | null, at: number): void {
  db.run(insertTask, ...taskValues(run, fence, at, run.runClass?.id));
  if (run.startBy !== undefined) db.run(insertStartDeadline, run.id, startDeadlineOf(run, at));
}

/** A class that exists stays as it is. One of a run that is refused is deleted by the next admission, because it is empty. */
function createClasses(db: Connection, runs: readonly NewRun[], at: number): void {
  const classes = new Map<string, RunClass>();
  for (const { runClass } of runs) if (runClass !== undefined) classes.set(runClass.id, runClass);
  if (classes.size === 0) return;
  let turn = firstTurnOfNew(at, classes.size);
  for (const { id, route, version, lanes } of classes.values())
    db.run(insertClass, id, route, version, JSON.stringify(lanes), turn++);
}

/** Creates the runs and returns those refused because a key is taken. A run that already exists is not refused. */
export function startRuns(db: Connection, runs: readonly NewRun[], fence: Fence | null, at: number): RefusedStart[] {
  const refused: RefusedStart[] = [];
  createClasses(db, runs, at);
  for (const run of runs) {
    if (db.run(insertRunUnlessTaken(run), ...runValues(run, at)) === 1) {
      createTask(db, run, fence, at);
    } else if (db.get(selectById, run.id) === undefined) {
      const startKeyOwner = run.startKey === null ? undefined : db.get(selectByStartKey, run.workflow, run.startKey);
      refused.push(refusalOf(run, startKeyOwner, startKeyOwner ?? db.get(selectByHeroKey, run.heroKey)));
    }
  }
  return refused;
}

/**
 * Does the same as `startRuns` on the caller's asynchronous connection, which returns rows but not the number of
 * changes.
 */
export async function startRunsAsync(db: Queryable, runs: readonly NewRun[], at: number): Promise<RefusedStart[]> {
  const refused: RefusedStart[] = [];
  for (const run of runs) {
    const inserted = await db.query(`${insertRunUnlessTaken(run)} RETURNING id`, runValues(run, at));
    if (inserted.length === 1) {
      await db.query(insertTask, taskValues(run, null, at));
      if (run.startBy !== undefined) await db.query(insertStartDeadline, [run.id, startDeadlineOf(run, at)]);
    } else if ((await db.query(selectById, [run.id])).length === 0) {
      const startKeyOwners =
        run.startKey === null ? [] : await db.query(selectByStartKey, [run.workflow, run.startKey]);
      refused.push(
        refusalOf(run, startKeyOwners[0], startKeyOwners[0] ?? (await db.query(selectByHeroKey, [run.heroKey]))[0]),
      );
    }
  }
  return refused;
}

function refusalOf(run: NewRun, startKeyOwner: SqlRow | undefined, existing: SqlRow | undefined): RefusedStart {
  // This cannot happen: the insert was refused in the same transaction, so no other writer has deleted the run since.
  if (existing === undefined) throw new Error(`Run ${run.id} was refused, but no run has its keys.`);
  return { runId: run.id, reason: startKeyOwner === undefined ? "heroKey" : "startKey", existing: decodeRun(existing) };
}

export function runValues(run: NewRun, at: number): unknown[] {
  const commonValues = [run.id, run.workflow, run.version, run.queue, run.priority, run.input, at];
  if (isPlainRun(run)) return commonValues;
  const keyValues = [run.heroType, run.heroId, run.heroKey, run.startKey, encodeTags(run.tags)];
  const parentValues = [run.parentId, run.parentNode, run.parentIndex, run.parentAttempt];
  const originValues = hasOrigin(run) ? [run.startedBy ?? null, run.schedule ?? null] : [];
  return [...commonValues, ...keyValues, ...parentValues, ...originValues];
}

/** @param classId the route of the class in which the run waits, if that is written as well */
export function taskValues(run: NewRun, fence: Fence | null, at: number, classId?: string): unknown[] {
  const { due } = run;
  const route = [run.id, classId ?? run.route ?? run.workflow, run.version, run.priority];
  if (due.kind === "owned") return [...route, taskState.owned, null, fence?.workerId, fence?.epoch, 1, 0];
  const dueAt = "ms" in due ? (due.kind === "at" ? due.ms : at + due.ms) : due.kind === "now" ? at : null;
  const state = dueAt !== null && dueAt <= at ? taskState.ready : taskState.parked;
  return [...route, state, dueAt, null, null, 0, 1];
}
