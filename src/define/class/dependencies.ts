/** Finds the predecessors of the steps and tasks of a class: the previous step of the chain, or the names in `dependsOn`. */
import { GraphError } from "../../core/errors/errors.js";
import { topologicalSort } from "../../core/graph/topological-sort.js";
import { suggestNames } from "../name-suggestions.js";
import type { ChainStep } from "./chain.js";

export interface OrderedStep {
  readonly step: ChainStep;
  readonly after: readonly string[];
}

/**
 * Must be called after `beforeStep` and `afterStep` were applied, because only then the previous step of each step is known.
 *
 * @param chain the steps in their order
 * @param tasks the nodes that are not part of the chain
 * @returns steps and tasks in topological order
 */
export function resolveDependencies(
  workflow: string,
  chain: readonly ChainStep[],
  tasks: readonly ChainStep[],
): OrderedStep[] {
  const stepsByName = new Map<string, OrderedStep>();
  chain.forEach((step, index) => {
    const previous = chain[index - 1]?.name;
    const { dependsOn, alsoDependsOn } = step.options;
    const dependencies = dependsOn === undefined ? (previous === undefined ? [] : [previous]) : toList(dependsOn);
    stepsByName.set(step.name, { step, after: [...new Set([...dependencies, ...toList(alsoDependsOn)])] });
  });
  for (const step of tasks) {
    const { dependsOn, alsoDependsOn } = step.options;
    stepsByName.set(step.name, { step, after: [...new Set([...toList(dependsOn), ...toList(alsoDependsOn)])] });
  }
  for (const { step, after } of stepsByName.values()) {
    const unknownName = after.find((name) => !stepsByName.has(name));
    if (unknownName === undefined) continue;
    const others = [...stepsByName.keys()].filter((name) => name !== step.name);
    const suggestion = suggestNames(unknownName, "other steps and tasks", others);
    throw new GraphError(
      `"${step.name}" of workflow ${workflow} depends on "${unknownName}", which does not exist${suggestion}`,
      {
        workflow,
        nodes: [step.name, unknownName],
      },
    );
  }
  return sortSteps(workflow, stepsByName);
}

const toList = (names: string | readonly string[] | null | undefined): readonly string[] =>
  names == null ? [] : typeof names === "string" ? [names] : names;

function sortSteps(workflow: string, stepsByName: ReadonlyMap<string, OrderedStep>): OrderedStep[] {
  const sorted = topologicalSort([...stepsByName.values()].map(({ step, after }) => [step.name, after]));
  if (sorted.cycle === null) return sorted.order.map((name) => stepsByName.get(name) as OrderedStep);
  throw new GraphError(
    `The dependencies of workflow ${workflow} form a cycle: ${sorted.cycle.join(" → ")}. Remove one of them.`,
    {
      workflow,
      nodes: sorted.cycle,
    },
  );
}
