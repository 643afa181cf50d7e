/** All that a simulated process has defined. */
import type { AnyWorkflow, JobDefinition } from "../../../src/index.js";
import type { Bench } from "./bench.js";
import { functionWorkflows } from "./function-workflows.js";

export type Definitions = ReturnType<typeof definitionsFor>;

export function definitionsFor(bench: Bench) {
  const functions = functionWorkflows(bench);
  const workflows: readonly AnyWorkflow[] = Object.values(functions);
  const jobs: readonly JobDefinition[] = [];
  return { ...functions, workflows, jobs };
}
