// `npm run test:scale [-- --store postgres,mysql,chromium]`
//
// Fills tables with a million finished and 100,000 open runs, by SQL, and counts the pages or rows that each question of
// lists, counts and errors touches. Prints them, and fails if one exceeds its bound (test/scale/bounds.ts). It finds the
// servers as `npm test` does, and takes a few minutes and 4 GB of disk. "chromium" is the dashboard on SQLite, with 100,000
// runs, 50,000 events and 10,000 nodes: it bounds the rows and the memory of the page, and its long tasks. Not part of
// `npm test`.

import { parseArgs } from "node:util";
import { exitWith, runBenchmark } from "./benchmark.mjs";
import { buildDashboard } from "./dashboard.mjs";
import { install } from "./install.mjs";

await install();
const { values } = parseArgs({ options: { store: { type: "string", default: "postgres,mysql,chromium" } } });
const stores = values.store.split(",");
process.env.PAWL_TEST_WITHOUT = ["postgres", "mysql", "chromium"].filter((store) => !stores.includes(store)).join(",");

await exitWith(async () => {
  if ((await buildDashboard()) !== 0) throw new Error("The dashboard could not be built, so nothing was tested.");
  return runBenchmark({
    stores,
    program: "node_modules/vitest/vitest.mjs",
    args: ["run", "--config", "vitest.scale.config.ts", "--disable-console-intercept"],
  });
});
