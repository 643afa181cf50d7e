// Tables for the terminal.

import { limitNames } from "../limits.mjs";
import { asNumber, printTable } from "../report.mjs";
import { figures } from "./summary.mjs";
import { workloads } from "./workloads.mjs";

const costs = {
  nodeUs: "µs CPU, Node",
  serverUs: "µs CPU, server",
  statements: "statements",
  transactions: "transactions *",
  logBytes: "WAL bytes *",
};

export function printReport({ results, ratios, targets, limits }) {
  const compared = ratios.filter((one) => Object.keys(one.figures).length > 0);
  const shown = figures.filter(({ id }) => results.some((result) => result.figures[id]));
  printFigures(results, shown, limits);
  printCosts(results);
  if (compared.length > 0) printRatios(compared, shown);
  if (targets.length > 0) printTargets(targets);
  printSettings(results);
}

function printFigures(results, shown, limits) {
  console.log("\nFigures: medians, and how far the rounds lie around them");
  printTable(
    ["", ...shown.map(({ id }) => id)],
    results.map((result) => [result.label, ...shown.map(({ id }) => withSpread(result.figures[id]))]),
  );
  for (const { label, failures } of results)
    for (const failure of failures) console.log(`  ${label} FAILED: ${failure}`);
  for (const { id, figure } of shown) console.log(`  ${id.padEnd(4)} ${figure}`);
  for (const [name, limit] of Object.entries(limits))
    console.log(`  the machine: ${limitNames[name]} ${withSpread(limit)}`);
}

const withSpread = (figure) => {
  if (figure === undefined) return "–";
  const { median, min, max } = figure;
  return `${asNumber(median)} ±${Math.round((50 * (max - min)) / median)}%`;
};

function printCosts(results) {
  const rows = workloads.flatMap(({ id, unit }) =>
    results.flatMap(({ label, costs: perUnit }) => {
      const cost = perUnit.find((one) => one.id === id);
      if (cost === undefined) return [];
      const cells = Object.keys(costs).map((name) => (cost[name] === undefined ? "–" : asNumber(cost[name])));
      return [[`${id}, per ${unit}: ${label}`, ...cells]];
    }),
  );
  if (rows.length === 0) return;
  console.log("\nCosts: the least of the rounds");
  printTable(["", ...Object.values(costs)], rows);
  console.log(
    "  statements as the driver sends them; transactions that wrote something (their numbers, not pg_stat_database)",
  );
  console.log("  * of the whole server: only right when no other client uses it");
}

function printRatios(ratios, shown) {
  const columns = shown.filter(({ id }) => ratios.some((one) => one.figures[id]));
  console.log("\nHow many times as fast as each peer Pawl is: medians of the rounds' own ratios");
  printTable(
    ["", ...columns.map(({ id }) => id)],
    ratios.map(({ label, figures: all }) => [label, ...columns.map(({ id }) => withSpread(all[id]))]),
  );
}

function printTargets(targets) {
  console.log("\nTargets");
  printTable(
    ["", "wanted", "measured", ""],
    targets.map(({ id, unit, atLeast, atMost, measured, holds }) => [
      `${id} ${unit}`,
      atLeast === undefined ? `≤ ${atMost}` : `≥ ${atLeast}`,
      asNumber(measured),
      holds ? "holds" : "does not hold",
    ]),
  );
}

function printSettings(results) {
  console.log("\nContenders");
  for (const { label, version, settings } of results)
    console.log(`  ${label} ${version ?? "(not installed)"}${settings === undefined ? "" : `: ${settings}`}`);
}
