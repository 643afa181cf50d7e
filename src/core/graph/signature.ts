/** The signature of a workflow's declared steps, and what a change of the steps means for an open run. */
import { sha256Hex } from "../naming/ids.js";
import type { RunState } from "../run/state.js";

/** A declared step, and in `after` the names of the steps that it directly depends on. */
export interface ShapedNode {
  readonly name: string;
  readonly after: readonly string[];
}

/**
 * A hash of the steps and their order, short enough to be stored in every run's log. What `details` returns for a step is
 * hashed too, so that a change to it changes the signature even if the names and the order stay the same.
 */
export function shapeSignature(nodes: readonly ShapedNode[], details: (name: string) => unknown = () => null): string {
  const lines = nodes.map(({ name, after }) => JSON.stringify([name, [...after].sort(), details(name)]));
  return sha256Hex(lines.sort().join("\n")).slice(0, 16);
}

/** The signature of a function-style workflow, whose steps are not declared. */
export const undeclaredSignature = "";

export interface ShapeChange {
  /** Steps that the run has recorded and that the code no longer has. */
  readonly removedSteps: readonly string[];
  /** New steps that the run has already passed: it has recorded a step that now comes after them. */
  readonly passedSteps: readonly string[];
}

/** @param nodes the declared steps in topological order: each step follows the steps that it depends on */
export function findShapeChange(
  nodes: readonly ShapedNode[],
  state: RunState,
  isStep: (key: string) => boolean,
): ShapeChange {
  const names = new Set(nodes.map(({ name }) => name));
  const removedSteps = [...state.ops.keys()].filter((key) => isStep(key) && !names.has(key));
  const namesPassed = new Set<string>();
  const passedSteps: string[] = [];
  for (const { name, after } of nodes.toReversed()) {
    const isKnown = state.ops.has(name);
    if (!isKnown && namesPassed.has(name)) passedSteps.unshift(name);
    if (isKnown || namesPassed.has(name)) for (const predecessor of after) namesPassed.add(predecessor);
  }
  return { removedSteps, passedSteps };
}
