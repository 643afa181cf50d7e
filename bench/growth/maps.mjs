// Maps: is the time of a map linear in its children? Each in a process of its own, which also tells its memory.

import { connect } from "pawl";
import { asNumber, printTable } from "../report.mjs";
import { startProcess } from "./child.mjs";
import { summarise } from "./figures.mjs";

const sizes = { full: [100, 1000, 10_000], quick: [100, 1000] };
/** So many maps of a hundred children. */
const warmUp = 20;
const target = 1.5;

const figures = { childMs: "ms / child", seconds: "s", rssMb: "peak memory, MB" };

export const maps = {
  id: "map",
  title: "Maps",
  rounds: { full: 3, quick: 1 },

  async measure({ storeName, openDatabase, size, rounds }) {
    const measured = new Map(sizes[size].map((children) => [children, []]));
    for (let round = 0; round < rounds; round += 1) {
      for (const [children, rows] of measured) rows.push(await measureMap(storeName, openDatabase, children));
    }
    return [...measured].map(([children, rows]) => ({ children, ...summarise(rows, Object.keys(figures)) }));
  },

  print(rows) {
    printTable(
      ["children", ...Object.values(figures)],
      rows.map((row) => [
        row.children.toLocaleString("en"),
        ...Object.keys(figures).map((name) => asNumber(row[name].median)),
      ]),
    );
    const [before, last] = rows.slice(-2);
    const growth = last.childMs.median / before.childMs.median;
    const names = [last, before].map(({ children }) => children.toLocaleString("en"));
    const verdict = growth <= target ? "holds" : "does not hold";
    console.log(
      `  per child, ${names[0]} against ${names[1]}: ${growth.toFixed(2)} × (target ≤ ${target}: ${verdict})`,
    );
  },
};

async function measureMap(storeName, openDatabase, children) {
  const database = await openDatabase(storeName);
  // Only creates the tables, because the measured process must not do it.
  await (await connect(database.url)).close();
  const child = startProcess(new URL("map-process.mjs", import.meta.url), [database.url, children, warmUp]);
  try {
    const { ms, rssMb, rssBeforeMb } = await child.next("mapped");
    await checkChildren(database, children + 100 * warmUp);
    return { childMs: ms / children, seconds: ms / 1000, rssMb, rssBeforeMb };
  } finally {
    await child.kill();
    await database.close();
  }
}

async function checkChildren(database, expected) {
  const [{ n }] = await database.query(
    "SELECT count(*) AS n FROM pawl_runs WHERE workflow = 'growth_map_child' AND status = 'completed'",
  );
  if (Number(n) !== expected) throw new Error(`${n} children have completed, not ${expected}.`);
}
