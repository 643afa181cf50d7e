/** Plans the statements that create runs. `changes()` says whether the preceding INSERT has inserted the run. */

import { startDeadlineOf } from "../../core/run/transition.js";
import type { Fence, NewRun, RefusedStart } from "../contract/store.js";
import type { SqlRow } from "../sql/dialect.js";
import { decodeRun, runColumns } from "../sql/records.js";
import {
  insertChild,
  insertRunUnlessTaken,
  insertStartDeadlineInto,
  insertTaskInto,
  runValues,
  taskValues,
} from "../sqlite/starts.js";
import type { Result } from "./driver.js";
import type { StatementPlan } from "./statement-plan.js";

const insertTaskIfRunInserted = `${insertTaskInto} SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, ? WHERE changes() = 1`;

const insertStartDeadlineIfTaskInserted = `${insertStartDeadlineInto} SELECT ?, ? WHERE changes() = 1`;

const selectRun = `SELECT ${runColumns("pawl_tasks")}, `;
const fromRunsIfNotInserted = "FROM pawl_runs r WHERE changes() = 0 AND";

/** Returns a row only if the run was not inserted: the run itself if it already exists, or the run that has its key. */
const selectConflictingRun = `${selectRun} 'sameRun' AS reason, 0 AS precedence ${fromRunsIfNotInserted} r.id = ?1
  UNION ALL ${selectRun} 'startKey', 1 ${fromRunsIfNotInserted} r.workflow = ?2 AND r.start_key = ?3
  UNION ALL ${selectRun} 'heroKey', 2 ${fromRunsIfNotInserted} r.hero_key = ?4
  ORDER BY precedence LIMIT 1`;

export function planChildren(
  plan: StatementPlan<unknown>,
  children: readonly NewRun[],
  fence: Fence | null,
  at: number,
): void {
  for (const run of children) {
    plan.add(insertChild(run), ...runValues(run, at));
    planTask(plan, run, fence, at);
  }
}

/** After these statements, too, `changes()` says whether the run was inserted. */
function planTask(plan: StatementPlan<unknown>, run: NewRun, fence: Fence | null, at: number): void {
  plan.add(insertTaskIfRunInserted, ...taskValues(run, fence, at));
  if (run.startBy !== undefined) plan.add(insertStartDeadlineIfTaskInserted, run.id, startDeadlineOf(run, at));
}

export type ReadRefusals = (results: readonly Result[]) => RefusedStart[];

/** A run whose key is taken is refused, and the others are created. A run that already exists is not refused. */
export function planStarts(
  plan: StatementPlan<unknown>,
  runs: readonly NewRun[],
  fence: Fence | null,
  at: number,
): ReadRefusals {
  const conflictLookups: { readonly run: NewRun; readonly index: number }[] = [];
  for (const run of runs) {
    plan.add(insertRunUnlessTaken(run), ...runValues(run, at));
    planTask(plan, run, fence, at);
    // A run without keys can only conflict with itself.
    if (run.startKey === null && run.heroKey === null) continue;
    conflictLookups.push({
      run,
      index: plan.add(selectConflictingRun, run.id, run.workflow, run.startKey, run.heroKey),
    });
  }
  return (results) =>
    conflictLookups.flatMap(({ run, index }): RefusedStart[] => {
      const row: SqlRow | undefined = results[index]?.rows[0];
      if (row === undefined || row.reason === "sameRun") return [];
      return [{ runId: run.id, reason: row.reason as RefusedStart["reason"], existing: decodeRun(row) }];
    });
}
