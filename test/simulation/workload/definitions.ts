/** All that a simulated process has defined. */
import type { AnyWorkflow, JobDefinition } from "../../../src/index.js";
import type { Bench } from "./bench.js";
import { classWorkflows, jobsOf } from "./class-workflows.js";
import { functionWorkflows } from "./function-workflows.js";
import { gatheringWorkflows } from "./gathering-workflows.js";
import { graphWorkflow } from "./graph-workflows.js";
import { limitsOf } from "./limited-workflows.js";

export type Definitions = ReturnType<typeof definitionsFor>;

export function definitionsFor(bench: Bench) {
  const ownJobs = jobsOf(bench);
  const limits = limitsOf(bench.release);
  const starts = {
    ...functionWorkflows(bench, limits),
    ...gatheringWorkflows(bench, limits.slots),
    ...classWorkflows(bench, ownJobs),
    order: graphWorkflow(bench),
  };
  const workflows: readonly AnyWorkflow[] = Object.values(starts);
  const jobs: readonly JobDefinition[] = Object.values(ownJobs);
  return { ...starts, ...ownJobs, workflows, jobs };
}
