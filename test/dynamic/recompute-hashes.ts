/**
 * Recomputes the ancestry hash of every completed execution from the rows of a log and the graph's JSON, without any of
 * Pawl's code, as an auditor would. Returns the ids of the nodes whose record does not match.
 */
import { createHash } from "node:crypto";

interface Row {
  readonly type: string;
  readonly node: string | null;
  readonly attempt: number | null;
  readonly data: string | null;
}

const sha256 = (text: string) => createHash("sha256").update(text).digest("hex");

export function wrongHashes(rows: readonly Row[], graph: { nodes: Record<string, { depends_on: readonly string[] }> }) {
  const hashes = new Map<string, string>();
  const wrong: string[] = [];
  for (const { type, node, attempt, data } of rows) {
    if (type !== "step.completed" || node === null || data === null) continue;
    const { output, hash } = JSON.parse(data) as { output: unknown; hash: string };
    const parents = (graph.nodes[node]?.depends_on ?? []).flatMap((parent) => hashes.get(parent) ?? []);
    const own = sha256([node, attempt, sha256(JSON.stringify(output)), ...parents.sort()].join(":"));
    if (own !== hash) wrong.push(node);
    hashes.set(node, own);
  }
  return { wrong, checked: hashes.size };
}
