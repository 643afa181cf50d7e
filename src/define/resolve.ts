/** Wherever a workflow is asked for, a definition will do and so will a workflow class. */
import { InvalidInputError, StepNotDefinedError } from "../core/errors/errors.js";
import { definitionOf } from "./class/definition-of.js";
import { isWorkflowClass } from "./class/workflow.js";
import type { WorkflowClass } from "./class/workflow-instance.js";
import { isDefinition, type WorkflowDefinition } from "./definition.js";

export type AnyWorkflow = WorkflowDefinition | WorkflowClass;

export function asDefinition(workflow: unknown): WorkflowDefinition {
  if (isDefinition(workflow)) return workflow;
  if (isWorkflowClass(workflow)) return definitionOf(workflow);
  throw new InvalidInputError(
    `This is not a workflow but ${describeValue(workflow)}. A workflow is made by workflow(…) or graph(…), or is a class that extends Workflow; to start one by name use pawl.workflow(name).trigger(input).`,
  );
}

/** The name of a workflow that is given by its name, or by its code. */
export const nameOf = (workflow: AnyWorkflow | string): string =>
  typeof workflow === "string" ? workflow : asDefinition(workflow).name;

/** Of a list, such as the exports of a module: what does not belong there is told by its place and by what it is. */
export function asDefinitions(workflows: readonly unknown[]): WorkflowDefinition[] {
  return workflows.map((one, index) => {
    if (isWorkflow(one)) return asDefinition(one);
    throw new InvalidInputError(
      `workflows[${index}] is not a workflow but ${describeValue(one)}. A workflow is made by workflow(…) or graph(…), or is a class that extends Workflow; of all that a module exports, discoverWorkflows(module) takes these and the jobs.`,
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

/** Collects the workflows and jobs that a module exports, and passes over the rest: `discoverWorkflows(await import("./workflows.js"))`. */
export function discoverWorkflows(module: object): WorkflowDefinition[] {
  const workflows = Object.values(module).flat().filter(isWorkflow);
  return [...new Set(workflows.filter((one) => !isIncompleteBase(one, workflows)).map(asDefinition))];
}

/** A class that others extend and that is not complete by itself: it is there for them. */
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
