/**
 * An independent judge of a graph after faults. It shares no code with the library: it reads the log through the public
 * API and recomputes every ancestry hash from the rule alone. It returns a list of problems as sentences.
 */
import { createHash } from "node:crypto";
import type { FrozenDag, HistoryEvent, NodeInfo } from "pawl";
import type { DoneItem } from "./item-ledger.js";

const sha256 = (text: string) => createHash("sha256").update(text).digest("hex");

/** Each node was started once and has one result, which came after those of all its dependencies. */
export function checkLog(history: readonly HistoryEvent[], { nodes }: FrozenDag): string[] {
  const problems: string[] = [];
  const dispatched = new Set<string>();
  const completed = new Set<string>();
  for (const { type, node } of history) {
    if (node === null || (type !== "node.dispatched" && type !== "step.completed")) continue;
    const seen = type === "node.dispatched" ? dispatched : completed;
    if (seen.has(node)) problems.push(`Node ${node} has a second "${type}".`);
    seen.add(node);
    if (type === "step.completed") continue;
    const missing = nodes[node]?.depends_on.find((before) => !completed.has(before));
    if (missing !== undefined) problems.push(`Node ${node} was handed out before ${missing} had completed.`);
  }
  for (const id of Object.keys(nodes)) if (!completed.has(id)) problems.push(`Node ${id} has no result.`);
  return problems;
}

/**
 * SHA-256 over node, attempt, digest of the output, and the hashes of the predecessors. Here every node returns its id.
 */
export function checkHashes(infos: readonly NodeInfo[], { nodes }: FrozenDag): string[] {
  const found = new Map(infos.map((one) => [one.id, one]));
  const hashOf = (id: string) => String(found.get(id)?.ancestryHash);
  return infos.flatMap(({ id, attempt, ancestryHash }) => {
    const parents = (nodes[id]?.depends_on ?? []).map(hashOf).sort();
    const expected = sha256([id, attempt, sha256(JSON.stringify(id)), ...parents].join(":"));
    return expected === ancestryHash ? [] : [`The hash of node ${id} is ${ancestryHash}, not ${expected}.`];
  });
}

/** All nodes were executed; of several executions of a node, only one by a process that was not killed. */
export function checkEffects(
  done: readonly DoneItem[],
  count: number,
  killed: ReadonlySet<number>,
): { readonly problems: string[]; readonly repeats: number } {
  const executions = new Map<number, number[]>();
  for (const { item, pid } of done) executions.set(item, [...(executions.get(item) ?? []), pid]);
  const problems: string[] = [];
  for (let item = 0; item < count; item += 1) {
    const pids = executions.get(item) ?? [];
    if (pids.length === 0) problems.push(`Node number ${item} was never executed.`);
    const survivors = pids.filter((pid) => !killed.has(pid));
    if (survivors.length > 1)
      problems.push(`Node number ${item} was executed by ${survivors.join(" and ")}, who all lived on.`);
    if (new Set(pids).size < pids.length) problems.push(`Node number ${item} was executed twice by one process.`);
  }
  return { problems, repeats: done.length - executions.size };
}
