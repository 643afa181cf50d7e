/**
 * Starts with `onConflict` and `startBy`. Of the runs that share an idempotency key, none begins before the one that it waits for has
 * ended; a run that has expired was never executed, and did not expire early.
 */
import type { Evidence, Report } from "../evidence.js";
import type { Facts } from "./facts.js";

interface Span {
  readonly run: string;
  readonly begin: number;
  readonly end: number;
}

export function checkConflicts(evidence: Evidence, facts: Facts, report: Report): void {
  const groups = new Map<string, Span[]>();
  for (const { id, workflow, input } of evidence.runs) {
    const group: unknown = input.includes('"group"') ? JSON.parse(input).group : undefined;
    const begin = beginOf(id, evidence, facts);
    if (typeof group !== "string" || begin === null || facts.ancestorsOf(id).length > 0) continue;
    const key = `${workflow} ${group}`;
    groups.set(key, [...(groups.get(key) ?? []), { run: id, begin, end: endOf(id, facts) }]);
  }
  for (const spans of groups.values()) {
    spans.sort((a, b) => a.begin - b.begin);
    for (const [index, { run, end }] of spans.slice(0, -1).entries()) {
      const next = spans[index + 1] as Span;
      if (next.begin < end) report("I1", next.run, `It began before run ${run}, which has the same key, had ended.`);
    }
  }
}

/** In entries of the journal. */
function beginOf(run: string, evidence: Evidence, facts: Facts): number | null {
  const started = facts.log(run).find(({ type }) => type === "run.started");
  const begins = evidence.bodies.filter((body) => body.run === run).map(({ begunAfter }) => begunAfter);
  if (started !== undefined) begins.push(facts.committedAt(run, started.seq));
  return begins.length === 0 ? null : Math.min(...begins);
}

function endOf(run: string, facts: Facts): number {
  const last = facts.log(run).at(-1);
  return last === undefined ? Number.POSITIVE_INFINITY : facts.committedAt(run, last.seq);
}

export function checkExpiry(evidence: Evidence, facts: Facts, report: Report): void {
  for (const { id, status, startKey, error, createdAt, finishedAt } of evidence.runs) {
    if (status !== "canceled" || error?.includes('"EXPIRED"') !== true) continue;
    const ms = evidence.startBy.get(startKey ?? "");
    if (ms === undefined) report("I11", id, "It has expired, although it might begin at any time.");
    else if ((finishedAt ?? 0) < createdAt + ms)
      report("I11", id, `It has expired ${createdAt + ms - (finishedAt ?? 0)} ms early.`);
    if (beginOf(id, evidence, facts) !== null) report("I11", id, "It has expired, although it had begun.");
  }
}

/** I12: a retry exists once, and what it has copied from the run that it retries is what that run has recorded. */
export function checkRetries(evidence: Evidence, facts: Facts, report: Report): void {
  const runs = new Map(evidence.runs.map((run) => [run.id, run]));
  const retryOf = new Map<string, string>();
  for (const { run, retry } of evidence.retries) {
    if (!runs.has(retry)) report("I1", retry, `It was acknowledged as the retry of run ${run}, and does not exist.`);
    const other = retryOf.get(run);
    if (other !== undefined && other !== retry && runs.get(other)?.status !== "canceled")
      report("I1", retry, `Run ${run} has two retries.`);
    retryOf.set(run, retry);
  }
  for (const { id } of evidence.runs) {
    const [from] = facts.ancestorsOf(id);
    if (from === undefined) continue;
    const source = new Map(
      facts
        .log(from)
        .filter(({ type }) => type === "step.completed")
        .map(({ node, parsed }) => [node, JSON.stringify(parsed.output)]),
    );
    for (const { type, node, parsed, seq } of facts.log(id)) {
      if (type !== "step.completed" || !facts.isInherited(id, seq)) continue;
      if (source.get(node) !== JSON.stringify(parsed.output))
        report("I4", id, `It has copied another result of step ${node} than run ${from} has recorded.`);
    }
  }
}
