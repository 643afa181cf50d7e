/** What the commits, claims and messages of a store cost for a hundred runs at once: in statements, rows and bytes. */
import { batches } from "./batches.js";
import { testBudgets } from "./hold-to-budget.js";

testBudgets(batches, { exact: true });
