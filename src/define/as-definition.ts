/** Wherever a workflow is asked for, a definition will do and so will a workflow class. */
import { InvalidInputError } from "../core/errors.js";
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
  const found = new Set<WorkflowDefinition>();
  for (const value of Object.values(module)) {
    for (const item of Array.isArray(value) ? value : [value]) if (isWorkflow(item)) found.add(asDefinition(item));
  }
  return [...found];
}
