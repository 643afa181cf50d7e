/**
 * I11: a timer fires once and not early, and a wait ends once: by signals, by its timeout, or because it was withdrawn.
 * Only a wait that received its signals after another arm of its race had won is withdrawn after that: it returns them.
 */
import type { Evidence, Report } from "../evidence.js";

export function checkTimers(evidence: Evidence, report: Report): void {
  for (const [run, log] of evidence.runs()) {
    const due = new Map<string, number>();
    const over = new Map<string, string>();
    for (const { type, node, data, at } of log) {
      if (node === null) continue;
      if (type === "timer.started") due.set(node, data.until ?? at + data.ms);
      if (type === "wait.started" && data.timeoutMs !== undefined) due.set(node, at + data.timeoutMs);
      if (!/^(timer\.fired|wait\.(completed|timed_out|withdrawn))$/.test(type)) continue;
      const givesBack = type === "wait.withdrawn" && over.get(node) === "wait.completed";
      if (over.has(node) && !givesBack) report("I11", run.id, `${node} is over twice: ${over.get(node)} and ${type}.`);
      over.set(node, type);
      const dueAt = due.get(node);
      const isByTime = type === "timer.fired" || type === "wait.timed_out";
      if (isByTime && dueAt === undefined) report("I11", run.id, `${node} ended by time, and none was set.`);
      if (isByTime && dueAt !== undefined && at < dueAt)
        report("I11", run.id, `${node} fired ${dueAt - at} ms before its time.`);
    }
  }
}
