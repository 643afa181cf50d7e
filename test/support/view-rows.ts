/** The view pawl_step_executions as a test sees it, and what it should show. */
import { expect } from "vitest";
import { type ExecutionInfo, executionsOf } from "../../src/client/inspect/executions.js";
import { readLog } from "../../src/client/inspect/run-log.js";
import type { RunRecord, Store } from "../../src/store/contract/store.js";
import type { StoreKind } from "./databases.js";
import type { RawSql, Row } from "./raw-sql.js";

/** Those that have views. */
export const sqlStores: readonly StoreKind[] = ["sqlite", "postgres", "mysql"];

const numbers = new Set(["attempt", "scheduled_for", "started_at", "finished_at"]);

/** Drivers give 64 bits as text where they would not fit into a number. */
const decode = (row: Row): Row =>
  Object.fromEntries(
    Object.entries(row).map(([name, value]) => [name, value !== null && numbers.has(name) ? Number(value) : value]),
  );

/** The rows of the view, by run. */
export async function viewRows(sql: RawSql, where = ""): Promise<Map<string, Row[]>> {
  const byRun = new Map<string, Row[]>();
  for (const row of await sql.query(`SELECT * FROM pawl_step_executions ${where}`)) {
    const id = String(row.run_id);
    if (!byRun.has(id)) byRun.set(id, []);
    byRun.get(id)?.push(decode(row));
  }
  return byRun;
}

/** An execution as a row of the view. The view does not escape what an HTTP header could not carry. */
function rowOf({ id, workflow, heroType, heroId }: RunRecord, execution: ExecutionInfo): Row {
  const { step, attempt, state, outcome, scheduledFor, startedAt, finishedAt, error, continuesFrom } = execution;
  return {
    execution_id: `${id}:${step}:${attempt}`,
    run_id: id,
    workflow,
    hero_type: heroType,
    hero_id: heroId,
    step,
    attempt,
    state,
    outcome,
    scheduled_for: scheduledFor?.getTime() ?? null,
    started_at: startedAt?.getTime() ?? null,
    finished_at: finishedAt?.getTime() ?? null,
    error_message: error?.message ?? null,
    continues_from: continuesFrom === null ? null : decodeURIComponent(continuesFrom),
  };
}

/** The view shows of these runs what their logs tell. Its rows have no order. */
export async function expectSameAsLogs(store: Store, ids: readonly string[], shown: Map<string, Row[]>): Promise<void> {
  for (const run of await store.runsById(ids)) {
    const log = await readLog(store, run);
    const told = executionsOf(run.id, log).map((execution) => rowOf(run, execution));
    const message = log.map(({ type, node, attempt }) => `${type} ${node ?? ""} ${attempt ?? ""}`).join("\n");
    expect(sorted(shown.get(run.id) ?? []), message).toEqual(sorted(told));
  }
}

const sorted = (rows: readonly Row[]): Row[] => {
  const keyed = rows.map((row) => [JSON.stringify(row), row] as const);
  return keyed.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)).map(([, row]) => row);
};
