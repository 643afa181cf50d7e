// The comparison: in every round each contender has its turn, one after the other, in a process of its own. `npm run
// bench:peers` installs the peers, builds the library, finds PostgreSQL and runs this file under the peers' Node.

import { readFileSync, writeFileSync } from "node:fs";
import { cpus } from "node:os";
import { measureLimits } from "../limits.mjs";
import { summary } from "../statistics.mjs";
import { openPostgres } from "../stores/postgres.mjs";
import { readArguments } from "./arguments.mjs";
import { contenders } from "./contenders.mjs";
import { printReport } from "./report.mjs";
import { figures, ratiosTo, summarise } from "./summary.mjs";
import { judge } from "./targets.mjs";
import { takeTurn } from "./turn.mjs";

const { names, workloads, rounds: count, quick, json } = readArguments(process.argv.slice(2));
const size = quick ? "quick" : "full";
const chosen = contenders
  .filter(({ name }) => names.includes(name))
  .map((contender) => ({ ...contender, version: versionOf(contender) }));

const broken = new AbortController();
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => broken.abort());

const machine = await openPostgres();
try {
  const rounds = await playRounds();
  if (!broken.signal.aborted) report(rounds);
} finally {
  await machine.close();
}
process.exit(process.exitCode ?? (broken.signal.aborted ? 130 : 0));

async function playRounds() {
  console.log(
    `${cpus().length} cores, Node ${process.version}, ${machine.label}; ${count} round(s), client and worker in one process.`,
  );
  await measureLimits(machine, "quick");
  const rounds = [];
  for (let number = 1; number <= count && !broken.signal.aborted; number += 1) {
    const round = new Map();
    // The order is reversed in every other round, so that no contender always profits from an early place.
    for (const contender of number % 2 === 1 ? chosen : chosen.toReversed()) {
      if (broken.signal.aborted) break;
      const limits = await measureLimits(machine, size);
      const beganAt = performance.now();
      const turn = await takeTurn(contender, workloads, size, broken.signal);
      if (broken.signal.aborted) break;
      round.set(contender.name, { ...turn, limits });
      const seconds = ((performance.now() - beganAt) / 1000).toFixed(0);
      console.log(
        `  round ${number}: ${contender.label}, ${turn.failure ? `FAILED: ${turn.failure}` : `${seconds} s`}`,
      );
    }
    rounds.push(round);
  }
  return rounds;
}

function report(rounds) {
  const results = chosen.map((contender) => summarise(contender, rounds));
  const peers = names.includes("pawl") ? chosen.filter(({ name }) => name !== "pawl") : [];
  const whole = {
    results,
    ratios: peers.map(({ name, label }) => ({ name, label, figures: ratiosTo(name, rounds) })),
    targets: judge(rounds),
    limits: limitsOf(rounds),
  };
  printReport(whole);
  if (json !== undefined) writeFileSync(json, `${JSON.stringify({ ...conditions(), ...whole }, null, 2)}\n`);
  if (results.some(({ failures }) => failures.length > 0)) process.exitCode = 1;
}

function conditions() {
  const { label: server } = machine;
  return { node: process.version, cores: cpus().length, server, rounds: count, size, figures };
}

function limitsOf(rounds) {
  const all = rounds.flatMap((round) => [...round.values()].map(({ limits }) => limits));
  return Object.fromEntries(Object.keys(all[0]).map((name) => [name, summary(all.map((one) => one[name]))]));
}

/** The installed version, not the requested one; undefined when it is not installed. */
function versionOf({ name, package: packageName }) {
  const folder = name === "pawl" ? "../../" : `node_modules/${packageName}/`;
  try {
    return JSON.parse(readFileSync(new URL(`${folder}package.json`, import.meta.url), "utf8")).version;
  } catch {
    return undefined;
  }
}
