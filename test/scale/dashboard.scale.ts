/** `npm run test:scale`: the dashboard with 100,000 runs, a run of 50,000 events and a graph of 10,000 nodes. */
import { inBrowser } from "../dashboard/support/browser.js";
import { scaleTests } from "../dashboard/support/scale-tests.js";

inBrowser(() => scaleTests({ runs: 100_000, nodes: 10_000, updates: 60, longestTaskMs: 200 }));
