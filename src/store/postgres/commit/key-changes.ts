/** Takes keys from runs, and replaces what a run was started with, in statements of their own before that of the commit. */
import type { CommitResult, KeyChange } from "../../contract/store.js";
import { keyStatements } from "../../sql/key-changes.js";
import type { SqlClock } from "../clock.js";
import type { ExecuteQuery } from "../connection/driver.js";
import type { Tables } from "../tables.js";

/**
 * `execute` must run in a transaction.
 *
 * @returns the conflict that refuses the batch; null if there is none
 */
export async function applyKeyChange(
  execute: ExecuteQuery,
  change: KeyChange,
  tables: Tables,
  clock: SqlClock,
): Promise<CommitResult | null> {
  let parameterCount = 0;
  const [row] = await execute({
    text: `SELECT ${clock.now(() => `$${++parameterCount}`)} AS at`,
    values: clock.values(),
  });
  const dialect = {
    placeholder: (n: number) => `$${n}`,
    table: (name: Exclude<keyof Tables, "schema">) => tables[name],
    forUpdate: "FOR UPDATE",
  };
  for (const { text, values, conflictsWith } of keyStatements(change, Number(row?.at), dialect)) {
    const rows = await execute({ text, values });
    if (conflictsWith !== null && rows.length === 0) return { kind: "conflict", runId: conflictsWith };
  }
  return null;
}
