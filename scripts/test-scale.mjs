// `npm run test:scale [-- --store postgres,mysql]`
//
// Fills tables with a million finished and 100,000 open runs, by SQL, and counts the pages or rows that each question of
// lists, counts and errors touches. Prints them, and fails if one exceeds its bound (test/scale/bounds.ts). It finds the
// servers as `npm test` does, and takes a few minutes and 4 GB of disk. Not part of `npm test`.

import { parseArgs } from "node:util";
import { exitWith, runBenchmark } from "./benchmark.mjs";
import { install } from "./install.mjs";

await install();
const { values } = parseArgs({ options: { store: { type: "string", default: "postgres,mysql" } } });
const stores = values.store.split(",");
process.env.PAWL_TEST_WITHOUT = ["postgres", "mysql"].filter((store) => !stores.includes(store)).join(",");

await exitWith(() =>
  runBenchmark({
    stores,
    program: "node_modules/vitest/vitest.mjs",
    args: ["run", "--config", "vitest.scale.config.ts", "--disable-console-intercept"],
  }),
);
