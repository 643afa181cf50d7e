/** Orders the steps of a class and its parent classes into one chain. */
import { InvalidInputError, StepNotDefinedError } from "../../core/errors/errors.js";
import { suggestNames } from "../name-suggestions.js";
import type { Declarations, StepDeclaration } from "./declarations.js";

export interface ChainStep extends StepDeclaration {
  readonly name: string;
}

/** @param declarations one entry per class of the hierarchy: the base class first, the class itself last */
export function resolveChain(
  workflow: string,
  declarations: readonly Declarations[],
): { chain: ChainStep[]; tasks: ChainStep[] } {
  const declaredSteps = declarations.flatMap(({ steps }) => steps);
  const steps = nameSteps(declaredSteps.filter(({ kind }) => kind !== "task"));
  const tasks = declaredSteps.filter((step): step is ChainStep => step.kind === "task");
  checkUnique(workflow, [...steps, ...tasks]);
  const names = new Set(steps.map((step) => step.name));
  const chain: ChainStep[] = [];
  const anchoredSteps: ChainStep[] = [];
  for (const step of steps) {
    const { beforeStep, afterStep } = step.options;
    if (beforeStep !== undefined && afterStep !== undefined)
      throw new InvalidInputError(
        `Step "${step.name}" of ${workflow} has both beforeStep and afterStep; remove one of them.`,
      );
    const anchor = beforeStep ?? afterStep;
    if (anchor !== undefined && !names.has(anchor)) throw unknownAnchorError(workflow, step, anchor, [...names]);
    (anchor === undefined ? chain : anchoredSteps).push(step);
  }
  insertAll(workflow, chain, anchoredSteps);
  return { chain, tasks };
}

function unknownAnchorError(workflow: string, step: ChainStep, anchor: string, names: readonly string[]) {
  const option = step.options.beforeStep === undefined ? "afterStep" : "beforeStep";
  const others = names.filter((name) => name !== step.name);
  const problem = `Step "${step.name}" of workflow ${workflow} has ${option}: "${anchor}", which is not one of its steps`;
  return new StepNotDefinedError({
    workflow,
    step: anchor,
    problem: problem + suggestNames(anchor, "other steps", others),
  });
}

/** Gives a step without a name a name by its position among the declared steps: step_1, step_2 … */
function nameSteps(steps: readonly StepDeclaration[]): ChainStep[] {
  return steps.map((step, index) => ({ ...step, name: step.name ?? `step_${index + 1}` }));
}

function checkUnique(workflow: string, steps: readonly ChainStep[]): void {
  const seenNames = new Set<string>();
  for (const { name } of steps) {
    if (seenNames.has(name))
      throw new InvalidInputError(
        `Workflow ${workflow} has two steps called "${name}"; rename one of them. To change an inherited step, override its method.`,
      );
    seenNames.add(name);
  }
}

/**
 * Inserts the steps that have `beforeStep` or `afterStep` into the chain. Such a step may refer to another step of this kind
 * that is not inserted yet, so the loop repeats until all are inserted.
 */
function insertAll(workflow: string, chain: ChainStep[], anchoredSteps: readonly ChainStep[]): void {
  /** By anchor: the step that was last inserted after it. The next step is inserted after that one, in declared order. */
  const lastInsertedAfter = new Map<string, string>();
  let stepsToInsert = [...anchoredSteps];
  while (stepsToInsert.length > 0) {
    const remainingSteps = stepsToInsert.filter((step) => !insert(chain, step, lastInsertedAfter));
    if (remainingSteps.length === stepsToInsert.length) {
      const names = remainingSteps.map(({ name }) => `"${name}"`).join(", ");
      throw new InvalidInputError(
        `beforeStep and afterStep of the steps ${names} of ${workflow} form a cycle; remove one of these options.`,
      );
    }
    stepsToInsert = remainingSteps;
  }
}

function insert(chain: ChainStep[], step: ChainStep, lastInsertedAfter: Map<string, string>): boolean {
  const { beforeStep, afterStep } = step.options;
  const indexOf = (name: string) => chain.findIndex((step) => step.name === name);
  if (beforeStep !== undefined) {
    const index = indexOf(beforeStep);
    if (index < 0) return false;
    chain.splice(index, 0, step);
    return true;
  }
  const anchor = afterStep as string;
  const index = indexOf(lastInsertedAfter.get(anchor) ?? anchor);
  if (index < 0) return false;
  chain.splice(index + 1, 0, step);
  lastInsertedAfter.set(anchor, step.name);
  return true;
}
