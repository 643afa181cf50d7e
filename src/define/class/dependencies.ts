/** What each step and task of a class comes after: by its place in the chain, or as it says. */
import { GraphError } from "../../core/errors/errors.js";
import { orderOf } from "../../core/graph/topological-sort.js";
import { knownNames } from "../known-names.js";
import type { ChainStep } from "./chain.js";

export interface PlacedStep {
  readonly step: ChainStep;
  readonly after: readonly string[];
}

/**
 * The token PREVIOUS of a chain exists in here only: when all insertions are done, each step learns who is before it.
 *
 * @param chain the steps in their order; @param tasks nodes that are not in the chain
 */
export function resolveDependencies(
  workflow: string,
  chain: readonly ChainStep[],
  tasks: readonly ChainStep[],
): PlacedStep[] {
  const placed = new Map<string, PlacedStep>();
  chain.forEach((step, index) => {
    const previous = chain[index - 1]?.name;
    const { dependsOn, alsoDependsOn } = step.options;
    const own = dependsOn === undefined ? (previous === undefined ? [] : [previous]) : listOf(dependsOn);
    placed.set(step.name, { step, after: [...new Set([...own, ...listOf(alsoDependsOn)])] });
  });
  for (const step of tasks) {
    const { dependsOn, alsoDependsOn } = step.options;
    placed.set(step.name, { step, after: [...new Set([...listOf(dependsOn), ...listOf(alsoDependsOn)])] });
  }
  for (const { step, after } of placed.values()) {
    const unknown = after.find((name) => !placed.has(name));
    if (unknown === undefined) continue;
    const others = [...placed.keys()].filter((name) => name !== step.name);
    const known = knownNames(unknown, "other steps and tasks", others);
    throw new GraphError(
      `"${step.name}" of workflow ${workflow} depends on "${unknown}", which does not exist${known}`,
      {
        workflow,
        nodes: [step.name, unknown],
      },
    );
  }
  return inOrder(workflow, placed);
}

const listOf = (names: string | readonly string[] | null | undefined): readonly string[] =>
  names == null ? [] : typeof names === "string" ? [names] : names;

function inOrder(workflow: string, placed: ReadonlyMap<string, PlacedStep>): PlacedStep[] {
  const found = orderOf([...placed.values()].map(({ step, after }) => [step.name, after]));
  if (found.circle === null) return found.order.map((name) => placed.get(name) as PlacedStep);
  throw new GraphError(
    `The steps of workflow ${workflow} go in a circle: ${found.circle.join(" → ")}. Leave out one of these dependencies.`,
    {
      workflow,
      nodes: found.circle,
    },
  );
}
