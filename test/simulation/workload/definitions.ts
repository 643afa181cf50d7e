/** All that a simulated process has defined. */
import type { AnyWorkflow, JobDefinition } from "../../../src/index.js";
import type { Bench } from "./bench.js";
import { classWorkflows, jobsOf } from "./class-workflows.js";
import { functionWorkflows } from "./function-workflows.js";
import { graphWorkflow } from "./graph-workflows.js";

export type Definitions = ReturnType<typeof definitionsFor>;

export function definitionsFor(bench: Bench) {
  const ownJobs = jobsOf(bench);
  const starts = { ...functionWorkflows(bench), ...classWorkflows(bench, ownJobs), order: graphWorkflow(bench) };
  const workflows: readonly AnyWorkflow[] = Object.values(starts);
  const jobs: readonly JobDefinition[] = Object.values(ownJobs);
  return { ...starts, ...ownJobs, workflows, jobs };
}
