/** What a start, a claim, a step, a sleep, a signal, a child and an end cost: in statements, rows, bytes and calls. */
import { testBudgets } from "./hold-to-budget.js";
import { operations } from "./operations.js";

testBudgets(operations, { exact: true });
