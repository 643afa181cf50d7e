/**
 * What a worker with a hundred concurrent runs costs, however its commits are batched: rows and bytes per step, and how
 * few commits.
 */
import { concurrentRuns } from "./concurrent-runs.js";
import { testBudgets } from "./hold-to-budget.js";

testBudgets(concurrentRuns, { exact: false });
