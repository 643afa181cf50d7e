// The runner: how do costs change as data grows? Every chosen part on every chosen store. `npm run bench:growth` builds
// the library and finds the servers first; when both exist, this file can be run by itself:
//
//   node bench/growth/main.mjs --store postgres --only tables --quick

import { writeFileSync } from "node:fs";
import { cpus } from "node:os";
import { readArguments } from "./arguments.mjs";
import { labelOf, openDatabase } from "./databases.mjs";
import { longRuns } from "./long-runs.mjs";
import { maps } from "./maps.mjs";
import { payloads } from "./payloads.mjs";
import { processes } from "./processes.mjs";
import { tables } from "./tables/part.mjs";

const parts = [tables, longRuns, maps, processes, payloads];

const { stores, parts: ids, rounds, quick, json, plot } = readArguments(process.argv.slice(2));
const chosen = parts.filter(({ id }) => ids.includes(id));
const size = quick ? "quick" : "full";

console.log(`${cpus().length} cores, Node ${process.version}${quick ? "; small sizes, for a look" : ""}`);
const results = [];
for (const storeName of stores) results.push(await measureStore(storeName));
const report = { kind: "growth", node: process.version, cores: cpus().length, size, results };
if (json !== undefined) writeFileSync(json, `${JSON.stringify(report, null, 2)}\n`);
if (plot) await (await import("../plot/plots.mjs")).writePlots([report]);

async function measureStore(storeName) {
  const label = await labelOf(storeName);
  const result = { store: storeName, label };
  for (const part of chosen) {
    console.log(`\n${part.title}: ${label}`);
    const beganAt = performance.now();
    result[part.id] = await part.measure({ storeName, openDatabase, size, rounds: rounds ?? part.rounds[size] });
    part.print(result[part.id]);
    console.log(`  (${((performance.now() - beganAt) / 1000).toFixed(0)} s)`);
  }
  return result;
}
