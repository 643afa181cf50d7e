/** Takes keys from runs, and replaces what a run was started with. */
import type { CommitResult, KeyChange } from "../contract/store.js";
import { keyStatements } from "../sql/key-changes.js";
import type { Session } from "./session.js";
import { sql, type Value } from "./sql.js";

/** @returns the conflict that refuses the batch; null if there is none */
export async function applyKeyChange(session: Session, change: KeyChange, at: number): Promise<CommitResult | null> {
  const dialect = { placeholder: () => "?", table: (name: string) => `pawl_${name}`, forUpdate: "FOR UPDATE" };
  for (const { text, values, conflictsWith } of keyStatements(change, at, dialect)) {
    const [result] = await session.run([sql(text, values as readonly Value[])]);
    if (conflictsWith !== null && result?.rows.length === 0) return { kind: "conflict", runId: conflictsWith };
  }
  return null;
}
