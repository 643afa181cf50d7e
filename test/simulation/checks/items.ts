/** I4, I6: a resumable step does each item once, and again only if its execution was interrupted. */
import type { Evidence, Report } from "../evidence.js";
import type { ItemEntry } from "../ledger.js";
import type { Facts } from "./facts.js";

export function checkItems(evidence: Evidence, facts: Facts, report: Report): void {
  const done = new Map<string, ItemEntry[]>();
  for (const entry of evidence.items) {
    const key = `${entry.run} ${entry.item}`;
    done.set(key, [...(done.get(key) ?? []), entry]);
  }
  for (const [, entries] of done) {
    const [{ run, item }] = entries as [ItemEntry];
    const times = facts.countRepeated(entries);
    if (times > 0)
      report("I6", run, `Item ${item} was done ${times} more time(s), although its execution was not interrupted.`);
  }
  for (const { id, workflow, input } of evidence.runs) {
    if (workflow !== "Sweep") continue;
    const swept = facts.log(id).find(({ type, node }) => type === "step.completed" && node === "sweep");
    if (swept === undefined || swept.parsed.by === "operator") continue;
    const lineage = [id, ...facts.ancestorsOf(id)];
    for (let item = 0; item < JSON.parse(input).items; item += 1)
      if (!lineage.some((run) => done.has(`${run} ${item}`)))
        report("I4", id, `Item ${item} was never done, and its step is completed.`);
  }
}
