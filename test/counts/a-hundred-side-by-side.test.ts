/** What a worker with a hundred runs costs, whatever meets in a commit: rows and bytes per step, and how few commits. */
import { crowds } from "./crowds.js";
import { holdToBudget } from "./hold-to-budget.js";

holdToBudget(crowds, { exact: false });
