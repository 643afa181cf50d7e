// Fills the tables with runs that were never executed: the engine creates one run of each kind, and the database copies
// its rows with other ids and times. The copies are therefore exactly what the engine writes.

import { setTimeout as sleep } from "node:timers/promises";
import { workOf } from "../work.mjs";

/**
 * Of every 111 runs one is paused, ten sleep and the others have ended, mixed as in a table that has been used for a
 * while.
 */
const cycle = 111;
const kindOf = (n) =>
  `CASE WHEN ${n} % ${cycle} = 0 THEN 'paused' WHEN ${n} % ${cycle} <= 10 THEN 'sleeping' ELSE 'completed' END`;

/** The age of the oldest run; the others follow at even distances. */
const oldestMs = 30 * 24 * 3_600_000;
/** No more than the numbers that a dialect can generate. */
const runsPerStatement = 99_900;

/** @returns {Promise<{ runs: number, seconds: number, bytes: number }>} */
export async function fillTables({ pawl, database, dialect }, runs) {
  const templates = await makeTemplates(pawl);
  const beganAt = performance.now();
  for (const sql of dialect.beforeFill) await database.query(sql);
  for (const { table, key } of tables) await keepTemplates(database, table, key, templates);
  const stepMs = Math.floor(oldestMs / runs);
  const now = Date.now();
  for (let from = 1; from <= runs; from += runsPerStatement) {
    const to = Math.min(runs, from + runsPerStatement - 1);
    const age = `(${runs} + 1 - s.n) * ${stepMs}`;
    const id = dialect.id(`${now} - ${age}`, "s.n");
    for (const { table, key } of tables)
      await database.query(await copyStatement(database, table, { key, id, age, numbers: dialect.numbers(from, to) }));
  }
  for (const sql of dialect.afterFill) await database.query(sql);
  const seconds = (performance.now() - beganAt) / 1000;
  const [{ bytes }] = await database.query(dialect.bytes);
  return { runs, seconds, bytes: Number(bytes) };
}

const tables = [
  { table: "runs", key: "id" },
  { table: "tasks", key: "run_id" },
  { table: "events", key: "run_id" },
];
const instants = new Set(["at", "created_at", "started_at", "finished_at", "due_at"]);

async function makeTemplates(pawl) {
  const work = workOf();
  const worker = await pawl.worker({ workflows: [work] }).start();
  const ids = {};
  for (const [kind, then] of Object.entries({ completed: undefined, sleeping: "sleep", paused: "pause" })) {
    const run = await pawl.start(work, { steps: 1, then });
    const status = kind === "sleeping" ? "waiting" : kind;
    while ((await run.status()) !== status) await sleep(5);
    ids[kind] = run.id;
  }
  await worker.stop();
  return ids;
}

/**
 * A table with the template's rows beside each table: a statement that reads the table that it writes is slow in some
 * databases.
 */
async function keepTemplates(database, table, key, templates) {
  const rows = Object.entries(templates).map(
    ([kind, id]) => `SELECT '${kind}' AS bench_kind, t.* FROM pawl_${table} t WHERE t.${key} = '${id}'`,
  );
  await database.query(`CREATE TEMPORARY TABLE bench_${table} AS ${rows.join(" UNION ALL ")}`);
}

/** Every column of the template, except for the id and the instants. */
async function copyStatement(database, table, { key, id, age, numbers }) {
  const [template] = await database.query(`SELECT * FROM bench_${table} LIMIT 1`);
  const columns = Object.keys(template).filter((column) => column !== "bench_kind");
  const values = columns.map((column) =>
    column === key ? id : instants.has(column) ? `t.${column} - ${age}` : `t.${column}`,
  );
  const from = `${numbers} JOIN bench_${table} t ON t.bench_kind = ${kindOf("s.n")}`;
  return `INSERT INTO pawl_${table} (${columns.join(", ")}) SELECT ${values.join(", ")} FROM ${from}`;
}
