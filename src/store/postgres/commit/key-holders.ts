/** Finds the runs that hold the keys of refused starts. */

import type { NewRun, RefusedStart } from "../../contract/store.js";
import type { SqlRow } from "../../sql/dialect.js";
import { decodeRun, runColumns } from "../../sql/records.js";
import type { ExecuteQuery } from "../connection/driver.js";
import type { Tables } from "../tables.js";
import { plainArray, textArray } from "./arrays.js";

/** Returns one refusal for each start whose key is taken. If both keys are taken, its reason is the start key. */
export async function findKeyHolders(
  execute: ExecuteQuery,
  tables: Tables,
  starts: readonly NewRun[],
): Promise<readonly RefusedStart[]> {
  if (starts.length === 0) return [];
  const selectHolders = (
    reason: string,
    condition: string,
  ) => `SELECT u.id AS start_id, '${reason}' AS reason, ${runColumns(tables.tasks)}
    FROM unnest($1::uuid[], $2::text[], $3::text[], $4::text[]) u(id, workflow, start_key, hero_key)
    JOIN ${tables.runs} r ON ${condition}`;
  const byStartKey = selectHolders(
    "startKey",
    "r.workflow = u.workflow AND r.start_key = u.start_key AND r.start_key IS NOT NULL",
  );
  const byHeroKey = selectHolders("heroKey", "r.hero_key = u.hero_key AND r.hero_key IS NOT NULL");
  const rows = await execute({
    text: `${byStartKey} UNION ALL ${byHeroKey}`,
    values: [
      plainArray(starts.map(({ id }) => id)),
      textArray(starts.map(({ workflow }) => workflow)),
      textArray(starts.map(({ startKey }) => startKey)),
      textArray(starts.map(({ heroKey }) => heroKey)),
    ],
  });
  const refusals = new Map<string, RefusedStart>();
  for (const row of rows) {
    const refusal = decodeRefusedStart(row);
    if (refusal.reason === "startKey" || !refusals.has(refusal.runId)) refusals.set(refusal.runId, refusal);
  }
  return [...refusals.values()];
}

const decodeRefusedStart = (row: SqlRow): RefusedStart => ({
  runId: row.start_id as string,
  reason: row.reason as RefusedStart["reason"],
  existing: decodeRun(row),
});
