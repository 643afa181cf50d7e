/**
 * I3: at most one recorded result per run and step. I4: each recorded result was returned by a body in the ledger.
 * "key": at most one effect per idempotency key is recorded as completed.
 */
import { type Evidence, isToken, type Report } from "../evidence.js";
import type { LogEvent, RunRow } from "../records.js";

export function checkResults(evidence: Evidence, report: Report): void {
  const recorded = new Map<string, { token: string; run: string }[]>();
  const note = (run: RunRow, token: string) => {
    const key = evidence.begins.get(token)?.key ?? token;
    recorded.set(key, [...(recorded.get(key) ?? []), { token, run: run.id }]);
  };
  for (const [run, log] of evidence.runs()) {
    const results = new Map<string, number>();
    for (const { type, node, data, seq } of log) {
      if (type !== "step.completed" || node === null) continue;
      if (results.has(node))
        report("I3", run.id, `Step ${node} has two results, events ${results.get(node)} and ${seq}.`);
      results.set(node, seq);
      if (data.by === "operator" || !isToken(data.output)) continue;
      checkToken(evidence, run.id, node, data.output, report);
      note(run, data.output);
    }
    if (run.status === "completed") checkOutput(evidence, run, log, note, report);
  }
  for (const [key, results] of recorded) {
    const tokens = new Set(results.map(({ token }) => token));
    if (tokens.size > 1)
      report(
        "key",
        results[0]?.run ?? null,
        `The key ${key} has ${tokens.size} completed effects: ${[...tokens].join(", ")}.`,
      );
  }
}

function checkToken({ begins, ended }: Evidence, run: string, node: string, token: string, report: Report): void {
  const begin = begins.get(token);
  if (begin === undefined) return report("I4", run, `The result ${token} of step ${node} is not in the ledger.`);
  if (!ended.has(token)) report("I4", run, `The result ${token} of step ${node} comes from a body that never ended.`);
  if (begin.run !== run || begin.step !== node)
    report("I4", run, `The result ${token} of step ${node} is that of ${begin.run} ${begin.step}.`);
}

/** The output of the code consists of recorded results. A job returns the token of its own body. */
function checkOutput(
  { begins, ended }: Evidence,
  run: RunRow,
  log: readonly LogEvent[],
  note: (run: RunRow, token: string) => void,
  report: Report,
): void {
  const output = JSON.parse(run.output ?? "null");
  if (run.workflow.startsWith("job:") && isToken(output)) {
    if (!begins.has(output) || !ended.has(output)) report("I4", run.id, `Its output ${output} is not in the ledger.`);
    if (begins.get(output)?.run !== run.parentId) report("I4", run.id, `Its output ${output} is that of another run.`);
    note(run, output);
  }
  if (!Array.isArray(output?.seen)) return;
  const recorded = new Set(log.filter(({ type }) => type === "step.completed").map(({ data }) => data.output));
  for (const seen of output.seen)
    if (isToken(seen) && !recorded.has(seen)) report("I4", run.id, `Its code has seen ${seen}, which is not recorded.`);
}
