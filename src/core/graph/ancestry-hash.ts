/**
 * The ancestry hash of a completed execution: a chain of proof over the graph. It covers which attempt it was, what came
 * of it, and the hashes of the executions that it was built upon; who changes any of them changes all that come after.
 */

import { sha256Hex } from "../naming/ids.js";
import { isCompensation } from "../run/compensation.js";
import type { NewEvent } from "../run/event.js";
import type { RunState } from "../run/state.js";
import { readStepFacts, stepOutputText, withStepHash } from "../run/step-completed.js";
import { scopeSeparator } from "../run/step-key.js";
import type { PredecessorsOf } from "./predecessors.js";

/** @param output as it is stored; @param predecessorHashes the hashes of the latest completed attempts before it, in any order */
export function ancestryHash(
  node: string,
  attempt: number,
  output: string,
  predecessorHashes: readonly string[],
): string {
  return sha256Hex([node, attempt, sha256Hex(output), ...[...predecessorHashes].sort()].join(":"));
}

/** The hash for a node that completes now. Parents that were skipped have none. */
export function ancestryHashFor(
  state: RunState,
  predecessorsOf: PredecessorsOf,
  node: string,
  attempt: number,
  output: string,
): string | null {
  const predecessors = predecessorsOf(node);
  if (predecessors === null) return null;
  const hashes = predecessors.flatMap((parent) => {
    const op = state.ops.get(parent);
    return op?.kind === "step" && op.ancestryHash !== null ? [op.ancestryHash] : [];
  });
  return ancestryHash(node, attempt, output, hashes);
}

/**
 * Completions that a message or an operator has brought are stamped like those that a worker saw itself. An operator may
 * answer for a step that this code does not have: then it counts as built upon nothing.
 */
export function withAncestryHashes(
  events: readonly NewEvent[],
  state: RunState,
  predecessorsOf: PredecessorsOf,
): NewEvent[] {
  return events.map((one) => {
    const { type, node, attempt, data } = one;
    if (type !== "step.completed" || node === null || data === null) return one;
    if (node.includes(scopeSeparator) || isCompensation(node) || readStepFacts(data).hash !== undefined) return one;
    const hash = ancestryHashFor(
      state,
      (name) => predecessorsOf(name) ?? [],
      node,
      attempt ?? 1,
      stepOutputText(data) ?? "",
    );
    return hash === null ? one : { ...one, data: withStepHash(data, hash) };
  });
}
