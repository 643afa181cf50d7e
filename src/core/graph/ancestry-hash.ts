/**
 * The ancestry hash of a completed execution. It covers the node, the attempt, the output and the ancestry hashes of the
 * node's predecessors, so a change to one execution changes the hashes of all executions that depend on it.
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

/** The hash of a node that completes now; null for an unknown node. Skipped predecessors have no hash and are left out. */
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
 * Adds the hash to `step.completed` events that result from a message or from an operator's command; to the events of the
 * steps that it executes, a worker adds the hash itself. An operator may complete a step that this code does not define:
 * the hash is then computed without predecessors.
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
