// `npm run bench [-- --store postgres,sqlite] [--only W1,W2] [--rounds 5] [--quick] [--json FILE]`: see benchmark.mjs.

import { exitWith, runBenchmark } from "./benchmark.mjs";
import { install } from "./install.mjs";

await install();
const { readArguments } = await import("../bench/arguments.mjs");
const args = process.argv.slice(2);

await exitWith(() => runBenchmark({ stores: readArguments(args).stores, program: "bench/main.mjs", args }));
