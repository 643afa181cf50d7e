// Writes the charts of reports into docs/plots.

import { mkdirSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { growthCharts } from "./growth-charts.mjs";
import { peersCharts } from "./peers-charts.mjs";

const folder = fileURLToPath(new URL("../../docs/plots/", import.meta.url));

/** @returns {string[]} the files */
export function writePlots(reports) {
  mkdirSync(folder, { recursive: true });
  return [...peersOf(reports), ...growthOf(reports)].map(([name, svg]) => {
    const file = `${folder}${name}.svg`;
    writeFileSync(file, svg);
    return file;
  });
}

const peersOf = (reports) => reports.filter(({ ratios }) => ratios !== undefined).flatMap(peersCharts);

/** Reports of several stores, or of several parts, are drawn as one. */
function growthOf(reports) {
  const stores = new Map();
  for (const { results = [] } of reports.filter(({ kind }) => kind === "growth"))
    for (const result of results) stores.set(result.store, { ...stores.get(result.store), ...result });
  return growthCharts({ results: [...stores.values()] });
}
