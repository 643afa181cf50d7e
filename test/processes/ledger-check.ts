/** Compares the results in the database with the executions in a ledger. */
import type { Execution } from "./ledger.js";

export interface LedgerFindings {
  readonly problems: string[];
  /** How many executions there were beyond one per step. */
  readonly repeats: number;
}

/** `results` as read from the database by the checker, `killed` the processes that were killed. */
export function checkLedger(
  executions: readonly Execution[],
  results: ReadonlyMap<string, unknown>,
  killed: ReadonlySet<number>,
): LedgerFindings {
  const problems: string[] = [];
  const steps = byStep(executions);
  for (const key of results.keys()) if (!steps.has(key)) problems.push(`${key}: recorded, but never executed`);
  for (const [key, all] of steps) {
    const last = all.at(-1);
    // If an earlier execution had been recorded, the last one would have run although the step was completed.
    if (results.get(key) !== last?.token) problems.push(`${key}: recorded is not the last execution`);
    if (last?.ended == null) problems.push(`${key}: what is recorded never ended`);
    for (const repeated of all.slice(0, -1)) {
      if (!wasInFlight(repeated, executions, killed))
        problems.push(`${key}: ran again although ${repeated.pid} was not killed in it`);
    }
  }
  for (const { runId, step, pid, ended } of executions) {
    if (ended === null && !killed.has(pid)) problems.push(`${runId} ${step}: begun by ${pid}, never ended`);
  }
  return { problems, repeats: executions.length - steps.size };
}

/** All executions of each step of each run, in order. */
function byStep(executions: readonly Execution[]): Map<string, Execution[]> {
  const groups = new Map<string, Execution[]>();
  for (const execution of executions) {
    const key = `${execution.runId} ${execution.step}`;
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [execution]);
    else group.push(execution);
  }
  return groups;
}

/**
 * Whether a killed process had this execution in flight when it died: it was the last one of that process for that run.
 * (Its body may have ended while its record was being written.) Everything earlier must have been recorded.
 */
function wasInFlight(execution: Execution, all: readonly Execution[], killed: ReadonlySet<number>): boolean {
  if (!killed.has(execution.pid)) return false;
  return !all.some(
    ({ runId, pid, begun }) => runId === execution.runId && pid === execution.pid && begun > execution.begun,
  );
}
