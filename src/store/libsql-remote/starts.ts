/** How runs are born in a batch. `changes()` is what the statement before has inserted: the rest follows from it. */

import type { Fence, NewRun, Refusal } from "../contract/store.js";
import type { SqlRow } from "../sql/dialect.js";
import { decodeRun, runColumns } from "../sql/records.js";
import { insertChild, insertRunUnlessTaken, insertTaskColumns, runValues, taskValues } from "../sqlite/starts.js";
import type { Result } from "./driver.js";
import type { Plan } from "./plan.js";

const insertTaskIfBorn = `${insertTaskColumns} SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, ? WHERE changes() = 1`;

const select = `SELECT ${runColumns("pawl_tasks")}, `;
const from = "FROM pawl_runs r WHERE changes() = 0 AND";

/** Only if nothing was inserted: the run that is in the way, or the run itself, which exists already. */
const selectInTheWay = `${select} 'itself' AS reason, 0 AS place ${from} r.id = ?1
  UNION ALL ${select} 'startKey', 1 ${from} r.workflow = ?2 AND r.start_key = ?3
  UNION ALL ${select} 'heroKey', 2 ${from} r.hero_key = ?4
  ORDER BY place LIMIT 1`;

export function planChildren(plan: Plan<unknown>, children: readonly NewRun[], fence: Fence | null, at: number): void {
  for (const run of children) {
    plan.add(insertChild, ...runValues(run, at));
    plan.add(insertTaskIfBorn, ...taskValues(run, fence, at));
  }
}

export type ReadRefusals = (results: readonly Result[]) => Refusal[];

/** A run whose key is taken is refused by itself, one that exists already is fine. */
export function planStarts(
  plan: Plan<unknown>,
  runs: readonly NewRun[],
  fence: Fence | null,
  at: number,
): ReadRefusals {
  const lookUps: { readonly run: NewRun; readonly index: number }[] = [];
  for (const run of runs) {
    plan.add(insertRunUnlessTaken, ...runValues(run, at));
    plan.add(insertTaskIfBorn, ...taskValues(run, fence, at));
    // Without a key, only its own id can have been in its way.
    if (run.startKey === null && run.heroKey === null) continue;
    lookUps.push({ run, index: plan.add(selectInTheWay, run.id, run.workflow, run.startKey, run.heroKey) });
  }
  return (results) =>
    lookUps.flatMap(({ run, index }): Refusal[] => {
      const row: SqlRow | undefined = results[index]?.rows[0];
      if (row === undefined || row.reason === "itself") return [];
      return [{ runId: run.id, reason: row.reason as Refusal["reason"], existing: decodeRun(row) }];
    });
}
