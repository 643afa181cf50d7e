/** How runs are born in a batch. `changes()` is what the statement before has inserted: the rest follows from it. */

import type { Fence, NewRun, RefusedStart } from "../contract/store.js";
import type { SqlRow } from "../sql/dialect.js";
import { decodeRun, runColumns } from "../sql/records.js";
import { insertChild, insertRunUnlessTaken, insertTaskInto, runValues, taskValues } from "../sqlite/starts.js";
import type { Result } from "./driver.js";
import type { StatementPlan } from "./statement-plan.js";

const insertTaskIfRunInserted = `${insertTaskInto} SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, ? WHERE changes() = 1`;

const selectRun = `SELECT ${runColumns("pawl_tasks")}, `;
const fromRunsIfNotInserted = "FROM pawl_runs r WHERE changes() = 0 AND";

/** Only if nothing was inserted: the run that is in the way, or the run itself, which exists already. */
const selectConflictingRun = `${selectRun} 'itself' AS reason, 0 AS place ${fromRunsIfNotInserted} r.id = ?1
  UNION ALL ${selectRun} 'startKey', 1 ${fromRunsIfNotInserted} r.workflow = ?2 AND r.start_key = ?3
  UNION ALL ${selectRun} 'heroKey', 2 ${fromRunsIfNotInserted} r.hero_key = ?4
  ORDER BY place LIMIT 1`;

export function planChildren(
  plan: StatementPlan<unknown>,
  children: readonly NewRun[],
  fence: Fence | null,
  at: number,
): void {
  for (const run of children) {
    plan.add(insertChild, ...runValues(run, at));
    plan.add(insertTaskIfRunInserted, ...taskValues(run, fence, at));
  }
}

export type ReadRefusals = (results: readonly Result[]) => RefusedStart[];

/** A run whose key is taken is refused by itself, one that exists already is fine. */
export function planStarts(
  plan: StatementPlan<unknown>,
  runs: readonly NewRun[],
  fence: Fence | null,
  at: number,
): ReadRefusals {
  const conflictLookups: { readonly run: NewRun; readonly index: number }[] = [];
  for (const run of runs) {
    plan.add(insertRunUnlessTaken, ...runValues(run, at));
    plan.add(insertTaskIfRunInserted, ...taskValues(run, fence, at));
    // Without a key, only its own id can have been in its way.
    if (run.startKey === null && run.heroKey === null) continue;
    conflictLookups.push({
      run,
      index: plan.add(selectConflictingRun, run.id, run.workflow, run.startKey, run.heroKey),
    });
  }
  return (results) =>
    conflictLookups.flatMap(({ run, index }): RefusedStart[] => {
      const row: SqlRow | undefined = results[index]?.rows[0];
      if (row === undefined || row.reason === "itself") return [];
      return [{ runId: run.id, reason: row.reason as RefusedStart["reason"], existing: decodeRun(row) }];
    });
}
