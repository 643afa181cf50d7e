/**
 * The ancestry hash of a completed execution: a chain of proof over the graph. It covers which attempt it was, what came
 * of it, and the hashes of the executions that it was built upon; who changes any of them changes all that come after.
 */

import { sha256Hex } from "../naming/ids.js";
import { isCompensation } from "../run/compensation.js";
import type { NewEvent } from "../run/event.js";
import type { RunState } from "../run/state.js";
import { scopeMark } from "../run/step-key.js";
import type { ParentsOf } from "./predecessors.js";

/** @param output as it is stored; @param parents the hashes of the latest completed attempts before it, in any order */
export function ancestryHash(node: string, attempt: number, output: string, parents: readonly string[]): string {
  return sha256Hex([node, attempt, sha256Hex(output), ...[...parents].sort()].join(":"));
}

/** The hash for a node that completes now. Parents that were skipped have none. */
export function hashFor(
  state: RunState,
  parentsOf: ParentsOf,
  node: string,
  attempt: number,
  output: string,
): string | null {
  const parents = parentsOf(node);
  if (parents === null) return null;
  const hashes = parents.flatMap((parent) => {
    const op = state.ops.get(parent);
    return op?.kind === "step" && op.hash !== null ? [op.hash] : [];
  });
  return ancestryHash(node, attempt, output, hashes);
}

/** It comes first in the data, behind `undo`, so that nobody has to decode the outputs of all steps to know it. */
export function hashIn(data: string | null): string | null {
  if (data === null) return null;
  const at = data.startsWith('{"undo":true,') ? 13 : 1;
  return data.startsWith('"hash":"', at) ? data.slice(at + 8, at + 72) : null;
}

/** The text of the output, which is last in the data of what others have executed. */
export function outputIn(data: string): string {
  const mark = '"output":';
  return data.slice(data.indexOf(mark) + mark.length, -1);
}

/**
 * Completions that a message or an operator has brought are stamped like those that a worker saw itself. An operator may
 * answer for a step that this code does not have: then it counts as built upon nothing.
 */
export function withHashes(events: readonly NewEvent[], state: RunState, parentsOf: ParentsOf): NewEvent[] {
  return events.map((one) => {
    if (one.type !== "step.completed" || one.node === null || one.data === null || hashIn(one.data) !== null)
      return one;
    if (one.node.includes(scopeMark) || isCompensation(one.node)) return one;
    const hash = hashFor(state, (node) => parentsOf(node) ?? [], one.node, one.attempt ?? 1, outputIn(one.data));
    if (hash === null) return one;
    const rest = one.data.startsWith('{"undo":true,') ? 13 : 1;
    return { ...one, data: `${one.data.slice(0, rest)}"hash":"${hash}",${one.data.slice(rest)}` };
  });
}
