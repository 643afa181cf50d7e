/** The shape of a workflow whose steps are declared: its signature, and what a change of it means for a run under way. */
import { sha256Hex } from "../naming/ids.js";
import type { RunState } from "../run/state.js";

/** A step, and the names of those that it comes after. */
export interface ShapedNode {
  readonly name: string;
  readonly after: readonly string[];
}

/** Short enough to be in every run's log. `details` tell apart what has the same name and place. */
export function shapeSignature(nodes: readonly ShapedNode[], details: (name: string) => unknown = () => null): string {
  const lines = nodes.map(({ name, after }) => JSON.stringify([name, [...after].sort(), details(name)]));
  return sha256Hex(lines.sort().join("\n")).slice(0, 16);
}

/** In place of a signature: the run is executed by a function, whose steps are found out as it runs. */
export const undeclaredSignature = "";

export interface ShapeChange {
  /** Steps that the run has a record of, and the code does not have any more. */
  readonly removedSteps: readonly string[];
  /** Steps that the run has no record of, although it is past something that now comes after them. */
  readonly passedSteps: readonly string[];
}

/** @param nodes each after those that it depends on */
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
    if (isKnown || namesPassed.has(name)) for (const before of after) namesPassed.add(before);
  }
  return { removedSteps, passedSteps };
}
