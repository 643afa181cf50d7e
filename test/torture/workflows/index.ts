/** All that the workers of a campaign execute. */
import { classWorkflows } from "./classes.js";
import { functionWorkflows } from "./functions.js";
import { graphWorkflow, jobsOf } from "./graphs.js";
import type { Bench } from "./tools.js";
import { transactionWorkflow } from "./transactions.js";

export const workloadOf = (bench: Bench) => ({
  workflows: [...functionWorkflows(bench), transactionWorkflow(bench), ...classWorkflows(bench), graphWorkflow(bench)],
  jobs: jobsOf(bench),
});
