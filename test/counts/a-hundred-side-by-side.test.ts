/**
 * What a worker with a hundred concurrent runs costs, however its commits are batched: rows and bytes per step, and how
 * few commits.
 */
import { crowds } from "./crowds.js";
import { holdToBudget } from "./hold-to-budget.js";

holdToBudget(crowds, { exact: false });
