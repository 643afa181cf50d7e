/** What a start, a claim, a step, a sleep, a signal, a child and an end cost: in statements, rows, bytes and calls. */
import { holdToBudget } from "./hold-to-budget.js";
import { things } from "./things.js";

holdToBudget(things, { exact: true });
