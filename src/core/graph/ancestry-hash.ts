/**
 * The ancestry hash of a completed execution. It covers the node, the attempt, the output and the ancestry hashes of the
 * executions that the node depends on, so a change to any of them changes the hashes of all executions after it.
 */

import { sha256Hex } from "../naming/ids.js";
import { isCompensation } from "../run/compensation.js";
import type { NewEvent } from "../run/event.js";
import type { RunState } from "../run/state.js";
import { readStepFacts, stepOutputText, withStepHash } from "../run/step-completed.js";
import { scopeSeparator } from "../run/step-key.js";
import type { PredecessorsOf } from "./predecessors.js";

/**
 * @param output the encoded output, as it is stored
 * @param predecessorHashes the hashes of the latest completed attempts at the node's predecessors, in any order
 */
export function ancestryHash(
  node: string,
  attempt: number,
  output: string,
  predecessorHashes: readonly string[],
): string {
  return sha256Hex([node, attempt, sha256Hex(output), ...[...predecessorHashes].sort()].join(":"));
}

/** The hash of a node that completes now; null for an unknown node. Skipped predecessors have no hash and do not count. */
export function ancestryHashFor(
  state: RunState,
  predecessorsOf: PredecessorsOf,
  node: string,
  attempt: number,
  output: string,
): string | null {
  const predecessors = predecessorsOf(node);
  if (predecessors === null) return null;
  const hashes = predecessors.flatMap((predecessor) => {
    const op = state.ops.get(predecessor);
    return op?.kind === "step" && op.ancestryHash !== null ? [op.ancestryHash] : [];
  });
  return ancestryHash(node, attempt, output, hashes);
}

/**
 * Adds the hash to `step.completed` events that were decided from a message or by an operator, as a worker does for the steps
 * that it executes. An operator may complete a step that this code does not define; it then counts as having no predecessors.
 */
export function withAncestryHashes(
  events: readonly NewEvent[],
  state: RunState,
  predecessorsOf: PredecessorsOf,
): NewEvent[] {
  return events.map((event) => {
    const { type, node, attempt, data } = event;
    if (type !== "step.completed" || node === null || data === null) return event;
    if (node.includes(scopeSeparator) || isCompensation(node) || readStepFacts(data).hash !== undefined) return event;
    const hash = ancestryHashFor(
      state,
      (name) => predecessorsOf(name) ?? [],
      node,
      attempt ?? 1,
      stepOutputText(data) ?? "",
    );
    return hash === null ? event : { ...event, data: withStepHash(data, hash) };
  });
}
