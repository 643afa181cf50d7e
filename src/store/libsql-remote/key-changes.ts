/** Plans the statements that take keys from runs, and that replace what a run was started with. */
import type { CommitResult, KeyChange, NewRun } from "../contract/store.js";
import { sqliteKeyStatements } from "../sqlite/key-changes.js";
import { guardStatement, type StatementPlan } from "./statement-plan.js";

type RefusedCommit = Exclude<CommitResult, { kind: "committed" }>;

export function planKeyChange(plan: StatementPlan<RefusedCommit>, change: KeyChange, at: number): void {
  for (const { text, values, conflictsWith } of sqliteKeyStatements(change, at)) {
    if (conflictsWith === null) plan.add(text, ...values);
    else plan.addGuard({ kind: "conflict", runId: conflictsWith }, guardStatement(`EXISTS (${text})`), ...values);
  }
}

/** Refuses the batch if one of its starts was refused: then the run does not exist. */
export function planUnrefusedStarts(plan: StatementPlan<RefusedCommit>, starts: readonly NewRun[]): void {
  for (const { id } of starts)
    plan.addGuard({ kind: "conflict", runId: id }, guardStatement("EXISTS (SELECT 1 FROM pawl_runs WHERE id = ?)"), id);
}
