// PostgreSQL: a database of the benchmark's own on an existing server.

import { randomBytes, randomUUID } from "node:crypto";
import pg from "pg";
import { cpuOfThreads } from "../cost.mjs";
import { node, progressAt } from "./cursor-row.mjs";
import { columns, eventRow } from "./event-row.mjs";

let sent = 0;
const { query } = pg.Client.prototype;
pg.Client.prototype.query = function (...args) {
  sent += 1;
  return query.apply(this, args);
};

export async function openPostgres() {
  const server = process.env.PAWL_TEST_POSTGRES_URL ?? "postgres://postgres@127.0.0.1:5432/postgres";
  const name = `pawl_bench_${randomBytes(4).toString("hex")}`;
  await asAdmin(server, `CREATE DATABASE ${name}`);
  const url = Object.assign(new URL(server), { pathname: `/${name}` }).href;
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query(
    "CREATE TABLE bench_rows (run_id uuid, at bigint, seq int, span int, attempt int, type text, node text, outcome text, data text, PRIMARY KEY (run_id, seq))",
  );
  await client.query(
    "CREATE TABLE bench_cursors (run_id uuid, at bigint, node text, cursor text, progress text, PRIMARY KEY (run_id, node)) WITH (fillfactor = 50)",
  );
  return {
    label: process.env.PAWL_TEST_POSTGRES_URL_DESCRIPTION ?? "PostgreSQL",
    url,
    statements: () => sent,
    query: async (sql, values) => (await client.query(sql, values)).rows,
    usage: () => usage(client),
    cpuUs: () => cpuUs(client),
    limits: {
      oneRow: (count) => insertOneByOne(client, count),
      hundredRows: (count) => insertHundreds(client, count),
      oneUpdate: (count) => updateAgainAndAgain(client, count),
    },
    close: async () => {
      await client.end();
      await asAdmin(server, `DROP DATABASE ${name} WITH (FORCE)`);
    },
  };
}

async function asAdmin(url, sql) {
  const admin = new pg.Client({ connectionString: url });
  await admin.connect();
  try {
    await admin.query(sql);
  } finally {
    await admin.end();
  }
}

async function usage(client) {
  const { rows } = await client.query(`SELECT (SELECT count(*)::int FROM pawl_events) AS "eventRows",
    (pg_current_wal_insert_lsn() - '0/0')::float8 AS "logBytes"`);
  return { ...rows[0], cpuUs: await cpuUs(client) };
}

async function cpuUs(client) {
  const { rows } = await client.query(`SELECT pid FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'`);
  return cpuOfThreads(rows.map(({ pid }) => pid));
}

async function insertOneByOne(client, count) {
  const text = `INSERT INTO bench_rows (${columns}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`;
  const run = randomUUID();
  for (let seq = 1; seq <= count; seq += 1)
    await client.query({ name: "one", text, values: [run, seq, ...eventRow, Date.now()] });
}

async function insertHundreds(client, count) {
  const types = ["uuid", "int", "text", "int", "text", "int", "text", "text"];
  const text = `INSERT INTO bench_rows (${columns}) SELECT u.*, $9::bigint FROM unnest(${types.map((type, index) => `$${index + 1}::${type}[]`)}) u`;
  const runs = Array.from({ length: 100 }, () => randomUUID());
  const rest = eventRow.map((value) => runs.map(() => value));
  for (let seq = 1; seq <= count / 100; seq += 1)
    await client.query({ name: "hundred", text, values: [runs, runs.map(() => seq), ...rest, Date.now()] });
}

async function updateAgainAndAgain(client, count) {
  const run = randomUUID();
  await client.query("INSERT INTO bench_cursors (run_id, node, at) VALUES ($1, $2, 0)", [run, node]);
  const text = "UPDATE bench_cursors SET cursor = $3, progress = $4, at = $5 WHERE run_id = $1 AND node = $2";
  for (let n = 1; n <= count; n += 1)
    await client.query({ name: "update", text, values: [run, node, String(n), progressAt(n), Date.now()] });
}
