/** Wherever a workflow is asked for, a definition will do and so will a workflow class. */
import { InvalidInputError, StepNotDefinedError } from "../core/errors.js";
import { definitionOf } from "./class/definition-of.js";
import { isWorkflowClass, type WorkflowClass } from "./class/workflow.js";
import { isDefinition, type WorkflowDefinition } from "./definition.js";

export type AnyWorkflow = WorkflowDefinition | WorkflowClass;

export function asDefinition(workflow: unknown): WorkflowDefinition {
  if (isDefinition(workflow)) return workflow;
  if (isWorkflowClass(workflow)) return definitionOf(workflow);
  throw new InvalidInputError(
    "This is not a workflow: it is made by workflow(…), or a class that extends Workflow. To start one by name use pawl.workflow(name).trigger(input).",
  );
}

function isWorkflow(value: unknown): value is AnyWorkflow {
  return isDefinition(value) || isWorkflowClass(value);
}

/** Collects the workflows that a module exports: `discoverWorkflows(await import("./workflows.js"))`. */
export function discoverWorkflows(module: object): WorkflowDefinition[] {
  const found = Object.values(module).flat().filter(isWorkflow);
  return [...new Set(found.filter((one) => !isFrame(one, found)).map(asDefinition))];
}

/** A class that others extend and that is not complete by itself: it is there for them. */
function isFrame(workflow: AnyWorkflow, others: readonly AnyWorkflow[]): boolean {
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
