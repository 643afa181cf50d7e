// `npm run bench:prune [-- --runs 1110000] [--rounds 5] [--json FILE]`: does pruning a million runs slow down those
// that are executed meanwhile? On PostgreSQL. See benchmark.mjs.

import { exitWith, runBenchmark } from "./benchmark.mjs";
import { install } from "./install.mjs";

await install();
const { readArguments } = await import("../bench/prune/arguments.mjs");
const args = process.argv.slice(2);

await exitWith(() => {
  readArguments(args);
  return runBenchmark({ stores: ["postgres"], program: "bench/prune/main.mjs", args });
});
