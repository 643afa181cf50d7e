/** Commands of operators: a cancel takes effect at the next boundary, and no pause is carried out twice. */
import type { Evidence, Report } from "../evidence.js";
import type { Begin } from "../ledger.js";

/** The largest number of concurrent steps that any workflow of the campaign has. */
const branches = 3;

export function checkCommands(evidence: Evidence, report: Report): void {
  const begins = new Map<string, Begin[]>();
  for (const begin of evidence.begins.values()) begins.set(begin.run, [...(begins.get(begin.run) ?? []), begin]);
  for (const { command, run, key, isAcknowledged, answer } of evidence.commands) {
    if (run === null) continue;
    if (command === "cancel" && isAcknowledged) {
      const late = (begins.get(run) ?? []).filter(
        (one) => one.at > (answer?.at ?? 0) && !one.step.endsWith("#compensate"),
      );
      if (late.length > branches)
        report("cancel", run, `${late.length} bodies began after its cancel was acknowledged.`);
      const status = evidence.records.runs.get(run)?.status;
      const isRecorded = evidence.logOf(run).some(({ type }) => type === "run.cancel_requested");
      if (status === "completed")
        report("note", run, `Its cancel was acknowledged${isRecorded ? " and is in its log" : ""}, and it completed.`);
    }
    if (command !== "pause") continue;
    const paused = evidence.logOf(run).filter((one) => one.type === "run.paused" && one.data.reason === key).length;
    if (paused > 1) report("pause", run, `The pause ${key} was carried out ${paused} times.`);
  }
}
