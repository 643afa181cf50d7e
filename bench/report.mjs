// Tables for the terminal.

import { limitNames } from "./limits.mjs";

export const asNumber = (value) =>
  value >= 1000
    ? Math.round(value).toLocaleString("en")
    : value >= 100
      ? value.toFixed(0)
      : value >= 10
        ? value.toFixed(1)
        : value >= 0.1
          ? value.toFixed(2)
          : value.toFixed(4);

const costs = {
  statements: "statements",
  eventRows: "event rows",
  logBytes: "log bytes *",
  nodeUs: "µs CPU, Node",
  serverUs: "µs CPU, server",
};

export function printStore({ label, figures, limits, costs: perUnit }) {
  console.log(`\n${label}`);
  const rows = figures.map(({ name, median, min, max, ratio, limit, as }) => [
    name,
    asNumber(median),
    `${asNumber(min)} – ${asNumber(max)}`,
    ratio === undefined ? "" : `${ratio.toFixed(2)} × ${as === "share" ? limitNames[limit] : "a one-row insert"}`,
  ]);
  for (const [name, { median, min, max }] of Object.entries(limits ?? {}))
    rows.push([`the machine: ${limitNames[name]}`, asNumber(median), `${asNumber(min)} – ${asNumber(max)}`, ""]);
  printTable(["", "median", "min – max", "ratio"], rows);
  printCosts(perUnit);
}

function printCosts(perUnit) {
  if (perUnit.length === 0) return;
  const known = Object.keys(costs).filter((name) => perUnit.some((one) => one[name] !== undefined));
  const cells = (one) => known.map((name) => (one[name] === undefined ? "" : asNumber(one[name])));
  printTable(
    ["costs", ...known.map((name) => costs[name])],
    perUnit.map((one) => [`${one.id}, per ${one.unit}`, ...cells(one)]),
  );
  if (known.includes("logBytes")) console.log("  * of the whole server: only right when no other client uses it");
}

/** The first column to the left, the others to the right. */
export function printTable(head, rows) {
  const widths = head.map((title, column) =>
    Math.max(...[head, ...rows].map((row) => row[column].length), title.length),
  );
  for (const row of [head, ...rows]) {
    const cells = row.map((cell, column) => (column === 0 ? cell.padEnd(widths[0]) : cell.padStart(widths[column])));
    console.log(`  ${cells.join("   ")}`.trimEnd());
  }
}
