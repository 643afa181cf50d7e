/** I13 and I21: a row of the user exists if and only if its step is recorded, once, with the value of the row. */
import type { Evidence, Report } from "../evidence.js";

export function checkTransactions(evidence: Evidence, report: Report): void {
  const rows = new Map<string, string[]>();
  for (const { runId, node, token } of evidence.records.userRows) {
    const key = `${runId} ${node}`;
    rows.set(key, [...(rows.get(key) ?? []), token]);
  }
  let counted = 0;
  for (const [run, log] of evidence.runs()) {
    if (run.workflow !== "booker") continue;
    for (const { type, node, data } of log) {
      if (type !== "step.completed" || data.by === "operator") continue;
      const tokens = rows.get(`${run.id} ${node}`) ?? [];
      rows.delete(`${run.id} ${node}`);
      if (/^(contended|caught)/.test(String(node))) counted += 1;
      if (tokens.length !== 1 || tokens[0] !== data.output)
        report("I13", run.id, `Step ${node} is recorded as ${data.output}; its rows are ${JSON.stringify(tokens)}.`);
    }
  }
  for (const [key, tokens] of rows)
    report("I13", key.split(" ")[0] ?? null, `Rows ${JSON.stringify(tokens)} of ${key} have no step record.`);
  for (const [index, n] of evidence.records.counters.entries())
    if (n !== counted) report("I21", null, `Counter ${index + 1} is ${n}; ${counted} recorded steps have counted.`);
}
