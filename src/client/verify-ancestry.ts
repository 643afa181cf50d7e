/** Recomputes the ancestry hashes of a frozen graph from its log: an output, an attempt or a link that was changed shows. */
import { ancestryHash, hashIn, outputIn, type ParentsOf } from "../core/ancestry.js";
import { dagOf, parentsInDag } from "../core/dag.js";
import { dataOf, type StoredEvent } from "../core/event.js";
import { frozenVersion } from "../core/route.js";
import type { RunRecord } from "../store/store.js";

export interface WrongHash {
  readonly node: string;
  readonly expected: string;
  readonly actual: string | null;
}

export function checkAncestry(run: RunRecord, log: readonly StoredEvent[]): WrongHash[] {
  if (run.version !== frozenVersion) return [];
  const found: WrongHash[] = [];
  const hashes = new Map<string, string>();
  let parentsOf: ParentsOf = parentsInDag(dagOf(run, { dag: null }) as NonNullable<ReturnType<typeof dagOf>>);
  for (const one of log) {
    if (one.type === "dag.imported") parentsOf = parentsInDag(dataOf(one, "dag.imported").dag);
    if (one.type !== "step.completed" || one.node === null || one.data === null) continue;
    const parents = (parentsOf(one.node) ?? []).flatMap((parent) => hashes.get(parent) ?? []);
    const expected = ancestryHash(one.node, one.attempt ?? 1, outputIn(one.data), parents);
    const actual = hashIn(one.data);
    if (actual !== expected) found.push({ node: one.node, expected, actual });
    if (actual !== null) hashes.set(one.node, actual);
  }
  return found;
}
