/**
 * The completed steps of a run that failed or was canceled are compensated, each recorded once; a completed run
 * compensates nothing.
 */
import type { Evidence, Report } from "../evidence.js";

const undoable: Readonly<Record<string, readonly string[]>> = {
  trip: ["flight", "hotel", "car"],
  order: ["reserve", "charge"],
};

export function checkUndoing(evidence: Evidence, report: Report): void {
  const undone = new Set<string>();
  for (const { token, run, step } of evidence.begins.values())
    if (step.endsWith("#compensate") && evidence.ended.has(token)) undone.add(`${run} ${step}`);
  for (const [run, log] of evidence.runs()) {
    for (const name of undoable[run.workflow] ?? []) {
      const undo = `${name}#compensate`;
      const wasDone = log.some(
        (one) => one.type === "step.completed" && one.node === name && one.data.by !== "operator",
      );
      const ends = log.filter((one) => one.node === undo && /^step\.(completed|skipped)$/.test(one.type));
      if (ends.length > 1) report("undo", run.id, `${name} was undone twice.`);
      if (run.status === "completed" && undone.has(`${run.id} ${undo}`))
        report("undo", run.id, `It is completed, and ${name} was undone.`);
      if (!wasDone || !/failed|canceled/.test(run.status)) continue;
      if (ends.length === 0) report("undo", run.id, `It is ${run.status}, and ${name} was not undone.`);
      const byCode = ends.some((one) => one.type === "step.completed" && one.data.by !== "operator");
      if (byCode && !undone.has(`${run.id} ${undo}`))
        report("undo", run.id, `${name} is recorded as undone; the ledger says no.`);
    }
  }
}
