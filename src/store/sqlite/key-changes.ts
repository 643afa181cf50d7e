/** Takes keys from runs, and replaces what a run was started with. */
import type { CommitResult, KeyChange } from "../contract/store.js";
import { type KeyStatement, keyStatements } from "../sql/key-changes.js";
import type { Connection } from "./connection.js";

/** @returns the conflict that refuses the batch; null if there is none */
export function applyKeyChange(db: Connection, change: KeyChange, at: number): CommitResult | null {
  for (const { text, values, conflictsWith } of sqliteKeyStatements(change, at)) {
    if (conflictsWith === null) db.run(text, ...values);
    else if (db.get(text, ...values) === undefined) return { kind: "conflict", runId: conflictsWith };
  }
  return null;
}

/** SQLite's transactions have the only write lock, so no rows are locked. */
export const sqliteKeyStatements = (change: KeyChange, at: number): readonly KeyStatement[] =>
  keyStatements(change, at, { placeholder: () => "?", table: (name) => `pawl_${name}`, forUpdate: "" });
