// Big tables: does the rest of the database matter? The same work, alternately, on an empty database and on one with a
// million ended runs, a hundred thousand sleeping and ten thousand paused, all of the measured workflow.

import { connect } from "pawl";
import { asNumber, printTable } from "../../report.mjs";
import { summary } from "../../statistics.mjs";
import { measureWork, unitsOf, works } from "../work.mjs";
import { checkSample } from "./check.mjs";
import { claimCost } from "./claim-cost.mjs";
import { dialects } from "./dialects.mjs";
import { fillTables } from "./fill.mjs";

const filled = { full: 1_110_000, quick: 111_000 };
const target = 0.9;

export const tables = {
  id: "tables",
  title: "Big tables",
  rounds: { full: 11, quick: 3 },

  async measure({ storeName, openDatabase, size, rounds }) {
    const dialect = dialects[storeName];
    const sides = {};
    try {
      for (const side of ["empty", "big"]) {
        const database = await openDatabase(storeName);
        sides[side] = { database, pawl: await connect(database.url), dialect };
      }
      const fill = await fillTables(sides.big, filled[size]);
      const checked = await checkSample(sides.big.pawl);
      const rates = await alternate(sides, size, rounds);
      const claim = {};
      for (const [side, target] of Object.entries(sides)) claim[side] = await claimCost(storeName, target);
      return { fill: { ...fill, checked }, works: rates, claim };
    } finally {
      for (const { pawl, database } of Object.values(sides)) {
        await pawl.close();
        await database.close();
      }
    }
  },

  print({ fill, works: rates, claim }) {
    const megabytes = Math.round(fill.bytes / 1e6).toLocaleString("en");
    console.log(
      `  ${fill.runs.toLocaleString("en")} runs (${megabytes} MB) in ${fill.seconds.toFixed(0)} s; ${fill.checked} of them checked`,
    );
    const cells = (title, { empty, big, ratio }) => [
      title,
      asNumber(empty.median),
      asNumber(big.median),
      ratio.median.toFixed(2),
      `${ratio.min.toFixed(2)} – ${ratio.max.toFixed(2)}`,
    ];
    const rows = rates.flatMap(({ title, unit, cpuUs, ...rate }) => [
      [...cells(title, rate), rate.ratio.median >= target ? "holds" : "does not hold"],
      [...cells(`   µs CPU per ${unit}, Node and server`, cpuUs), ""],
    ]);
    printTable(["", "empty", "big", "big / empty", "min – max", `target ${target.toFixed(2)}`], rows);
    printClaim(claim);
  },
};

/**
 * Which database goes first alternates from round to round; a ratio is computed within one round, in which the machine
 * was the same for both.
 */
async function alternate(sides, size, rounds) {
  // Warm-up, not counted: connections open, statements are prepared, code is compiled.
  for (const side of Object.values(sides))
    for (const { steps, runs } of Object.values(works)) await measureWork(side, { steps, runs: runs.quick });
  const measured = Object.entries(works).map(([id, work]) => ({ id, ...work, rates: pair(), cpuUs: pair() }));
  for (let round = 0; round < rounds; round += 1) {
    const order = round % 2 === 0 ? ["empty", "big"] : ["big", "empty"];
    for (const side of order)
      for (const sql of sides[side].dialect.betweenRounds) await sides[side].database.query(sql);
    for (const work of measured) {
      const runs = work.runs[size];
      const units = unitsOf(work, runs);
      for (const side of order) {
        const { ms, nodeUs, serverUs } = await measureWork(sides[side], { steps: work.steps, runs });
        work.rates[side].push((1000 * units) / ms);
        work.cpuUs[side].push((nodeUs + (serverUs ?? 0)) / units);
      }
    }
  }
  return measured.map(({ id, title, unit, rates, cpuUs }) => ({
    id,
    title,
    unit,
    ...compare(rates),
    cpuUs: compare(cpuUs),
  }));
}

const pair = () => ({ empty: [], big: [] });

const compare = ({ empty, big }) => ({
  empty: { ...summary(empty), values: empty },
  big: { ...summary(big), values: big },
  ratio: summary(big.map((value, round) => value / empty[round])),
});

const claimTitles = { buffers: "buffers per claimed run", rowsRead: "rows read per claimed run" };

function printClaim({ empty, big }) {
  const known = Object.keys(claimTitles).filter((name) => big[name] !== undefined);
  const rows = known.map((name) => [
    claimTitles[name],
    asNumber(empty[name]),
    asNumber(big[name]),
    (big[name] / empty[name]).toFixed(2),
  ]);
  if (rows.length > 0) printTable(["the claim", "empty", "big", "big / empty"], rows);
  if (big.plan === undefined) return;
  const { length } = big.plan.filter((detail) => detail.startsWith("SEARCH"));
  const scans = big.scans.length === 0 ? "no scan of a table" : `BUT ALSO ${big.scans.join(", ")}`;
  console.log(`  the claim: ${length} searches in indexes, ${scans}`);
}
