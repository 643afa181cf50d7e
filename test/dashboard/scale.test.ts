/** A smaller form of what `npm run test:scale` does with the dashboard. */
import { inBrowser } from "./support/browser.js";
import { scaleTests } from "./support/scale-tests.js";

inBrowser(() => scaleTests({ runs: 11_000, nodes: 2_000, updates: 8, longestTaskMs: null }));
