/** Turns workflows of every style, definitions and classes alike, into definitions. */
import { InvalidInputError, StepNotDefinedError } from "../core/errors/errors.js";
import { definitionOf } from "./class/definition-of.js";
import { isWorkflowClass } from "./class/workflow.js";
import type { WorkflowClass } from "./class/workflow-instance.js";
import { isDefinition, type WorkflowDefinition } from "./definition.js";

/** A workflow of any style: what `workflow(…)` or `graph(…)` returned, or a class that extends `Workflow`. */
export type AnyWorkflow = WorkflowDefinition | WorkflowClass;

export function asDefinition(workflow: unknown): WorkflowDefinition {
  if (isDefinition(workflow)) return workflow;
  if (isWorkflowClass(workflow)) return definitionOf(workflow);
  throw new InvalidInputError(
    `This is not a workflow but ${describeValue(workflow)}. A workflow is made by workflow(…) or graph(…), or is a class that extends Workflow; to start one by name use pawl.workflow(name).trigger(input).`,
  );
}

/** The name of a workflow that is given by its name or its code. */
export const nameOf = (workflow: AnyWorkflow | string): string =>
  typeof workflow === "string" ? workflow : asDefinition(workflow).name;

/** @throws InvalidInputError that names the index and the kind of the first value that is no workflow */
export function asDefinitions(workflows: readonly unknown[]): WorkflowDefinition[] {
  return workflows.map((workflow, index) => {
    if (isWorkflow(workflow)) return asDefinition(workflow);
    throw new InvalidInputError(
      `workflows[${index}] is not a workflow but ${describeValue(workflow)}. A workflow is made by workflow(…) or graph(…), or is a class that extends Workflow. To take the workflows and jobs from all exports of a module, use discoverWorkflows(module).`,
    );
  });
}

function describeValue(value: unknown): string {
  if (typeof value === "string") return `the text ${JSON.stringify(value)}`;
  if (typeof value === "function") {
    const kind = /^class\b/.test(Function.prototype.toString.call(value)) ? "class" : "function";
    return value.name === "" ? `a ${kind}` : `the ${kind} ${value.name}`;
  }
  if (typeof value !== "object" || value === null) return String(value);
  const { signal, kind, name } = value as { readonly [key in "signal" | "kind" | "name"]?: unknown };
  if (typeof signal === "string") return `the signal "${signal}"`;
  if (typeof name === "string") return `${typeof kind === "string" ? `the ${kind}` : "an object called"} "${name}"`;
  return Array.isArray(value) ? "a list" : "an object";
}

function isWorkflow(value: unknown): value is AnyWorkflow {
  return isDefinition(value) || isWorkflowClass(value);
}

/**
 * Returns the workflows and jobs that a module exports, for `pawl.worker({ workflows })`. Ignores other exports, and base
 * classes whose steps have their methods only in the classes that extend them.
 *
 * @example
 * ```ts
 * const worker = pawl.worker({ workflows: discoverWorkflows(await import("./workflows.js")) });
 * ```
 */
export function discoverWorkflows(module: object): WorkflowDefinition[] {
  const workflows = Object.values(module).flat().filter(isWorkflow);
  return [...new Set(workflows.filter((workflow) => !isIncompleteBase(workflow, workflows)).map(asDefinition))];
}

/** Whether another exported class extends the class, and the class itself lacks methods for some of its steps. */
function isIncompleteBase(workflow: AnyWorkflow, others: readonly AnyWorkflow[]): boolean {
  if (!isWorkflowClass(workflow)) return false;
  const isExtended = others.some((other) => isWorkflowClass(other) && other.prototype instanceof workflow);
  try {
    definitionOf(workflow);
    return false;
  } catch (error) {
    if (isExtended && error instanceof StepNotDefinedError) return true;
    throw error;
  }
}
