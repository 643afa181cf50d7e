// A table with a million ended runs, a hundred thousand sleeping and ten thousand paused. W1 is run before anything is
// pruned, and again while another process prunes: how many statements a run takes, and how many buffers the claim
// touches per run. Both are counts, so a busy machine does not affect them.

import { writeFileSync } from "node:fs";
import { connect } from "pawl";
import { startProcess } from "../growth/child.mjs";
import { labelOf, openDatabase } from "../growth/databases.mjs";
import { claimCost } from "../growth/tables/claim-cost.mjs";
import { dialects } from "../growth/tables/dialects.mjs";
import { fillTables } from "../growth/tables/fill.mjs";
import { printTable } from "../report.mjs";
import { summary } from "../statistics.mjs";
import { oneStepRuns } from "../workloads/one-step-runs.mjs";
import { readArguments } from "./arguments.mjs";

const limit = 1.2;
const runsPerRound = 5_000;
const dialect = dialects.postgres;

const { runs, rounds, json } = readArguments(process.argv.slice(2));
const label = await labelOf("postgres");
const database = await openDatabase("postgres");
const pawl = await connect(database.url, { logger: { ...console, debug: () => {}, info: () => {} } });
let pruner;
try {
  const fill = await fillTables({ pawl, database, dialect }, runs);
  console.log(
    `${label}: ${fill.runs.toLocaleString("en")} runs, ${Math.round(fill.bytes / 1e6).toLocaleString("en")} MB`,
  );
  await measureOnce();
  const before = await measure();
  pruner = startProcess(new URL("./prune-process.mjs", import.meta.url), [database.url]);
  await pruner.next("began");
  const pruning = pruner.next("done").then((pruned) => ({ ...pruned, isOver: true }));
  // If the measurement fails, report that error and not a later one.
  pruning.catch(() => {});
  const during = await measure();
  if (await isSettled(pruning)) throw new Error("The pruning was over before the measuring was; take more --runs.");
  const { runs: pruned, trees, seconds } = await pruning;
  const [{ n: left }] = await database.query("SELECT count(*)::int AS n FROM pawl_runs WHERE finished_at IS NOT NULL");
  const { differences } = await sampleOf(pawl);
  if (differences > 0) throw new Error(`verify() found ${differences} differences.`);
  print({ before, during, pruned, trees, seconds, left });
  if (json !== undefined)
    writeFileSync(
      json,
      `${JSON.stringify({ kind: "prune", fill, before, during, pruned, trees, seconds }, null, 2)}\n`,
    );
} finally {
  await pruner?.kill();
  await pawl.close();
  await database.close();
}

async function measure() {
  const found = [];
  for (let round = 0; round < rounds; round += 1) found.push(await measureOnce());
  const of = (name) => summary(found.map((one) => one[name]));
  return { statements: of("statements"), buffers: of("buffers"), perSecond: of("perSecond") };
}

async function measureOnce() {
  // Dead rows that earlier rounds left in the queue's tables would affect this one.
  for (const sql of dialect.betweenRounds) await database.query(sql);
  const { cost, units } = await oneStepRuns.measure({ pawl, database }, runsPerRound);
  await database.query("VACUUM pawl_tasks");
  const { buffers } = await claimCost("postgres", { pawl, database });
  return { statements: cost.statements / units, buffers, perSecond: (1_000 * units) / cost.ms };
}

async function isSettled(promise) {
  return (await Promise.race([promise, { isOver: false }])).isOver;
}

/** Of the remaining runs, which include the sleeping and paused ones. */
async function sampleOf(client) {
  const { runs: some } = await client.runs({ active: true, limit: 50 });
  let differences = 0;
  for (const { id } of some) {
    // The copy's log also contains the start of the original run, but only its row was moved in time.
    const found = (await client.verify(id)).differences.filter(({ what }) => what !== "startedAt");
    differences += found.length;
  }
  return { differences };
}

function print({ before, during, pruned, trees, seconds, left }) {
  const title = { statements: "statements per run", buffers: "buffers per claimed run", perSecond: "W1 runs / s" };
  const rows = Object.keys(title).map((name) => {
    const ratio = during[name].median / before[name].median;
    const verdict = name === "perSecond" ? "" : ratio <= limit ? "holds" : "does not hold";
    if (verdict === "does not hold") process.exitCode = 1;
    const digits = name === "statements" ? 4 : name === "buffers" ? 2 : 0;
    const cell = ({ median, min, max }) =>
      `${median.toFixed(digits)} (${min.toFixed(digits)} – ${max.toFixed(digits)})`;
    return [title[name], cell(before[name]), cell(during[name]), ratio.toFixed(2), verdict];
  });
  printTable(["", "before", "while pruning", "ratio", `target ≤ ${limit}`], rows);
  console.log(
    `  ${pruned.toLocaleString("en")} runs in ${trees.toLocaleString("en")} trees pruned in ${seconds.toFixed(0)} s; ended runs left: ${left.toLocaleString("en")}`,
  );
}
