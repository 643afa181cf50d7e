/**
 * I1: every acknowledged start exists exactly once. I2, I19: when the faults are over, everything ends, and nothing is left over. I15: only runs that
 * killed their workers are quarantined, and no more often than allowed. I16: what the code saw and what clients were told is what is stored. I17: nothing
 * leaks. I25: a run is paused only for a reason of its own.
 */
import type { RunRecord } from "../../../src/store/contract/store.js";
import type { Evidence, Report } from "../evidence.js";
import type { Facts } from "./facts.js";

export function checkStarts(evidence: Evidence, report: Report): void {
  const byKey = new Map<string, string[]>();
  for (const { id, workflow, startKey } of evidence.runs) {
    if (startKey === null) continue;
    const key = `${workflow} ${startKey}`;
    byKey.set(key, [...(byKey.get(key) ?? []), id]);
  }
  for (const [key, ids] of byKey)
    if (ids.length > 1) report("I1", ids[1] as string, `${ids.length} runs have the key ${key}.`);
  for (const { workflow, key, run } of evidence.starts) {
    const found = byKey.get(`${workflow} ${key}`) ?? [];
    if (found[0] !== run) report("I1", run, `Its start was acknowledged; ${found[0] ?? "no run"} has its key ${key}.`);
  }
  const acknowledged = new Set(evidence.starts.map(({ key }) => key));
  for (const key of evidence.plannedKeys)
    if (!acknowledged.has(key) && evidence.stuck === null) report("I2", null, `Start ${key} was never acknowledged.`);
}

export function checkEnds(evidence: Evidence, report: Report): void {
  for (const error of evidence.unhandled)
    report("I25", null, `A rejection was not handled, which ends a process with all of its runs: ${error}`);
  if (evidence.stuck !== null) report("I2", null, evidence.stuck);
  for (const { id, status } of evidence.runs)
    if (!["completed", "failed", "canceled"].includes(status)) report("I2", id, `It is still ${status}.`);
  for (const task of evidence.tasks)
    report("I19", task.runId, `Its task is still there: ${task.state}, due ${task.dueAt}.`);
  for (const [run, rows] of evidence.inbox)
    report("I19", run, `${rows.length} message(s) are left over: ${rows.map(({ kind }) => kind).join()}.`);
}

export function checkLeaks(evidence: Evidence, report: Report): void {
  for (const { id, live } of evidence.workers) {
    const isDead = evidence.deaths.length > 0;
    if (live && !isDead) report("I17", null, `Worker ${id} is still marked live.`);
  }
  for (const { process, transactions, listeners, timers } of evidence.leftOpen)
    if (transactions + listeners + timers > 0)
      report(
        "I17",
        null,
        `Process ${process} has left ${transactions} transaction(s), ${listeners} listener(s) and ${timers} timer(s).`,
      );
}

/** Why a run may be paused, by the name of the error or the beginning of the reason. */
export function checkPauses(evidence: Evidence, facts: Facts, report: Report): void {
  const deliveries = new Map<string, { readonly seq: number; readonly count: number; readonly process: string }[]>();
  for (const entry of evidence.journal)
    if (entry.kind === "claimed")
      for (const [index, run] of entry.runIds.entries())
        deliveries.set(run, [
          ...(deliveries.get(run) ?? []),
          { seq: entry.seq, count: entry.deliveries[index] as number, process: entry.process },
        ]);
  for (const run of evidence.runs) {
    const { id } = run;
    for (const event of facts.log(id)) {
      if (event.type !== "run.paused") continue;
      const { error, reason } = event.parsed as { error?: { name: string; message: string }; reason: string };
      if (error?.name === "QuarantineError") {
        const most = Math.max(0, ...(deliveries.get(id) ?? []).map(({ count }) => count));
        if (most <= evidence.maxDeliveries) report("I15", id, `It was quarantined after ${most} deliveries.`);
      } else if (!isLegitimatePause(error?.name ?? "", reason, run, evidence))
        report("I25", id, `It was paused for no reason of its own: ${error?.name} ${reason}`);
    }
  }
  const fruitless = facts.fruitlessDeliveries();
  for (const { run, begunAfter } of evidence.bodies) {
    const count = fruitless.get(run)?.findLast(({ seq }) => seq <= begunAfter)?.count ?? 0;
    if (count > evidence.maxDeliveries)
      report("I15", run, `Its code was executed in delivery ${count} without any progress.`);
  }
}

function isLegitimatePause(error: string, reason: string, run: RunRecord, evidence: Evidence): boolean {
  if (/^an operator|a planned (pause|failure)/.test(reason)) return true;
  // While all processes that have the job are down.
  if (error === "MissingJobError") return true;
  // Code that was changed, or that calls a step at another moment each time. A retry whose parallel branches end in another order
  // than in the run that it retries may not reach all of the calls that it has inherited.
  if (error === "NonDeterminismError") {
    const isParallelRetry = run.parentId === null && run.parentNode !== null && run.input.includes('"op":"parallel"');
    return evidence.hasTwoReleases || isParallelRetry || run.input.includes('"op":"stray"');
  }
  return /worker died|onCrash|could not be undone|compensation/i.test(reason);
}

/** Results that clients were told. */
export function checkResults(evidence: Evidence, report: Report): void {
  const outputs = new Map(evidence.runs.map(({ id, output }) => [id, output]));
  for (const { run, output } of evidence.results) {
    const stored = outputs.get(run) ?? null;
    if (stored === null || stored.replaceAll('{"$pawl":"undefined"}', "null") !== JSON.stringify(output ?? null))
      report("I16", run, "A client was told another output than the one that is stored.");
  }
}

/** The workflows whose output is what their code has seen. */
const programs: ReadonlySet<string> = new Set(["program", "limited", "keyed", "paced", "held"]);

/** What the code of a run has seen, which is its output, is what its log says. */
export function checkOutputs(evidence: Evidence, facts: Facts, report: Report): void {
  for (const { id, status, output, workflow } of evidence.runs) {
    if (status !== "completed" || output === null || !programs.has(workflow)) continue;
    const recorded = new Map(
      facts
        .log(id)
        .filter(({ type }) => type === "step.completed")
        .map(({ node, parsed }) => [node, parsed.output]),
    );
    const payloads = new Set<string>();
    const look = (seen: unknown): void => {
      if (!Array.isArray(seen)) return;
      const [name, value] = seen as [unknown, unknown];
      const received =
        name === "race"
          ? [seen[2]]
          : name === "signal" || name === "any"
            ? [value]
            : name === "all"
              ? (value as unknown[])
              : [];
      for (const payload of received) {
        if (typeof payload === "string" && payloads.has(payload))
          report("I10", id, `Its code received signal ${payload} twice.`);
        payloads.add(String(payload));
      }
      if (typeof name === "string" && typeof value === "string" && /^\w+#\d+$/.test(value)) {
        if (recorded.get(value.replace(/#\d+$/, "")) !== value)
          report("I4", id, `Its code saw ${value}, which its log does not have.`);
      }
      if (typeof name === "string" && /^[cm]\d+$/.test(name)) return;
      for (const part of seen) look(part);
    };
    look(JSON.parse(output));
  }
}
