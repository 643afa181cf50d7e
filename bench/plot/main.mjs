// Charts for the documentation, from the reports that the benchmarks wrote with --json:
//
//   node bench/plot/main.mjs growth.json peers.json
//
// Several reports of the same benchmark (of one store each, say) are drawn together.

import { readFileSync } from "node:fs";
import { relative } from "node:path";
import { writePlots } from "./plots.mjs";

const reports = process.argv.slice(2).map((file) => JSON.parse(readFileSync(file, "utf8")));
if (reports.length === 0) throw new Error("Name the reports: node bench/plot/main.mjs growth.json peers.json");
const files = writePlots(reports);
if (files.length === 0) throw new Error("There is nothing to draw in these reports.");
for (const file of files) console.log(relative(process.cwd(), file));
