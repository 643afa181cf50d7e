/**
 * An independent judge of a campaign. It reads the tables with its own SQL and the outside ledger, and shares no code
 * with the library. It returns a list of problems, which is empty when everything is right.
 */
import type { RawSql } from "../support/raw-sql.js";
import { checkParentsAndChildren } from "./checks/children.js";
import { checkCommands } from "./checks/commands.js";
import { checkEndings, checkLogs, checkSnapshots } from "./checks/logs.js";
import { checkItems, checkRepeats } from "./checks/repeats.js";
import { checkSignals } from "./checks/signals.js";
import { checkAllEnded, checkStarts } from "./checks/starts.js";
import { checkResults } from "./checks/steps.js";
import { checkTasks } from "./checks/tasks.js";
import { checkTimers } from "./checks/timers.js";
import { checkTransactions } from "./checks/transactions.js";
import { checkUndoing } from "./checks/undoing.js";
import { Evidence, type Report, type Violation } from "./evidence.js";
import type { Entry } from "./ledger.js";
import { type Records, readRecords } from "./records.js";
import { type Snapshot, takeSnapshot } from "./snapshots.js";

const checks: readonly ((evidence: Evidence, report: Report) => void)[] = [
  checkStarts,
  checkAllEnded,
  checkLogs,
  checkEndings,
  checkResults,
  checkRepeats,
  checkItems,
  checkSignals,
  checkTimers,
  checkParentsAndChildren,
  checkTransactions,
  checkTasks,
  checkUndoing,
  checkCommands,
];

export interface Judgement {
  readonly violations: readonly Violation[];
  /** What is allowed but worth a look. */
  readonly notes: readonly Violation[];
  readonly records: Records;
}

export async function judge(
  sql: RawSql,
  entries: readonly Entry[],
  snapshots: readonly Snapshot[],
): Promise<Judgement> {
  const violations: Violation[] = [];
  const notes: Violation[] = [];
  const report: Report = (invariant, run, text) =>
    void (invariant === "note" ? notes : violations).push({ invariant, run, text });
  const records = await readRecords(sql);
  const evidence = new Evidence(records, entries, snapshots);
  for (const check of checks) check(evidence, report);
  checkSnapshots(evidence, await takeSnapshot(sql), report);
  return { violations, notes, records };
}
