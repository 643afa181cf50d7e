// `npm run bench:growth [-- --store postgres,sqlite] [--only tables,long,map,processes,payloads] [--rounds 5] [--quick]
// [--json FILE] [--plot]`: big tables, long runs, wide maps, several worker processes, large payloads. --plot draws the
// charts in docs/plots. See benchmark.mjs.

import { exitWith, runBenchmark } from "./benchmark.mjs";
import { install } from "./install.mjs";

await install();
const { readArguments } = await import("../bench/growth/arguments.mjs");
const args = process.argv.slice(2);

await exitWith(() => runBenchmark({ stores: readArguments(args).stores, program: "bench/growth/main.mjs", args }));
