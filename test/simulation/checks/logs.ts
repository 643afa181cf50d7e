/** I8, I16: each log is exactly what was committed, in order and without a gap, and the row of its run agrees with it. I9: one end, for ever. */
import type { NewEvent, Transition } from "../../../src/store/contract/store.js";
import type { Evidence, Report } from "../evidence.js";

const columns = ["type", "node", "attempt", "outcome", "data"] as const;

export function checkLogs(evidence: Evidence, report: Report): void {
  const committed = new Map<string, { readonly event: NewEvent; readonly at: number }[]>();
  const ends = new Map<string, Extract<Transition["next"], { kind: "finish" }>>();
  for (const entry of evidence.journal) {
    if (entry.kind !== "commit" || entry.result.kind !== "committed") continue;
    for (const { runId, afterSeq, events, next } of entry.batch.transitions) {
      let log = committed.get(runId);
      if (log === undefined) committed.set(runId, (log = []));
      if (events.length > 0 && log.length !== afterSeq)
        report("I8", runId, `A write after event ${afterSeq} was accepted when the log had ${log.length}.`);
      for (const event of events) log.push({ event, at: entry.result.at });
      if (next.kind !== "finish") continue;
      if (ends.has(runId)) report("I9", runId, "It ended twice.");
      ends.set(runId, next);
    }
  }
  for (const run of evidence.runs) {
    const stored = evidence.logs.get(run.id) ?? [];
    const expected = committed.get(run.id) ?? [];
    if (stored.length !== expected.length)
      report("I8", run.id, `Its log has ${stored.length} events; ${expected.length} were committed.`);
    for (const [index, { event, at }] of expected.entries()) {
      const found = stored[index];
      if (found === undefined) break;
      if (found.seq !== index + 1) report("I8", run.id, `Event ${index + 1} has the number ${found.seq}.`);
      if (found.at !== at || columns.some((column) => found[column] !== event[column]))
        report("I8", run.id, `Event ${index + 1} (${found.type}) is not the one that was committed (${event.type}).`);
    }
    const end = ends.get(run.id);
    if (end === undefined) {
      if (run.finishedAt !== null) report("I16", run.id, `It is ${run.status}, but no commit has ended it.`);
    } else if (run.status !== end.status || run.output !== end.output || run.error !== end.error)
      report("I9", run.id, `It is ${run.status}, and it had ended as ${end.status}.`);
    else if (run.waiting !== String(stored.length))
      report("I16", run.id, `Its row says that its log has ${run.waiting} events; it has ${stored.length}.`);
  }
}
