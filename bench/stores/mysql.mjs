// MariaDB and MySQL: a database of the benchmark's own on an existing server.

import { randomBytes, randomUUID } from "node:crypto";
import { createConnection } from "mysql2/promise";
import { cpuOfThreads } from "../cost.mjs";
import { node, progressAt } from "./cursor-row.mjs";
import { columns, eventRow } from "./event-row.mjs";

let sent = 0;

export async function openMysql() {
  const server = process.env.PAWL_TEST_MYSQL_URL ?? "mysql://root@127.0.0.1:3306/test";
  const name = `pawl_bench_${randomBytes(4).toString("hex")}`;
  const admin = await createConnection({ uri: server });
  countStatements(admin);
  await admin.query(`CREATE DATABASE ${name} CHARACTER SET utf8mb4`);
  await admin.query(`USE ${name}`);
  await admin.query(
    "CREATE TABLE bench_rows (run_id VARBINARY(36), seq INT, span INT, type VARBINARY(64), node VARBINARY(255), attempt INT, outcome VARBINARY(64), data LONGTEXT, at BIGINT, PRIMARY KEY (run_id, seq))",
  );
  await admin.query(
    "CREATE TABLE bench_cursors (run_id VARBINARY(36), node VARBINARY(1024), `cursor` LONGTEXT, progress LONGTEXT, at BIGINT, PRIMARY KEY (run_id, node))",
  );
  const [[{ version }]] = await admin.query("SELECT version() AS version");
  const cpuUs = async () => (version.includes("MariaDB") ? cpuOfConnections(admin, name) : undefined);
  return {
    label: process.env.PAWL_TEST_MYSQL_URL_DESCRIPTION ?? `MySQL ${version}`,
    url: Object.assign(new URL(server), { pathname: `/${name}` }).href,
    statements: () => sent,
    query: async (sql, values) => (await admin.query(sql, values))[0],
    usage: () => usage(admin, cpuUs),
    cpuUs,
    limits: {
      oneRow: (count) => insertOneByOne(admin, count),
      hundredRows: (count) => insertHundreds(admin, count),
      oneUpdate: (count) => updateAgainAndAgain(admin, count),
    },
    close: async () => {
      await admin.query(`DROP DATABASE ${name}`);
      await admin.end();
    },
  };
}

let counted = false;

/** The store sends several statements in a packet; each has an answer of its own. */
function countStatements(connection) {
  if (counted) return;
  counted = true;
  const owner = Object.getPrototypeOf(connection);
  const { query, execute } = owner;
  owner.query = async function (...args) {
    const answer = await query.apply(this, args);
    sent += statementsIn(answer[0]);
    return answer;
  };
  owner.execute = function (...args) {
    sent += 1;
    return execute.apply(this, args);
  };
}

const isAnswer = (value) => Array.isArray(value) || value?.constructor?.name === "ResultSetHeader";
const statementsIn = (answer) => (Array.isArray(answer) && answer.some(isAnswer) ? answer.length : 1);

async function usage(admin, cpuUs) {
  const [[{ eventRows }]] = await admin.query("SELECT count(*) AS eventRows FROM pawl_events");
  const [[log]] = await admin.query("SHOW GLOBAL STATUS LIKE 'Innodb_os_log_written'");
  return { eventRows, logBytes: Number(log.Value), cpuUs: await cpuUs() };
}

/** MySQL does not report which thread serves a connection. */
async function cpuOfConnections(admin, database) {
  const sql = "SELECT tid FROM information_schema.processlist WHERE db = ? AND id <> connection_id()";
  const [threads] = await admin.query(sql, [database]);
  return cpuOfThreads(threads.map(({ tid }) => tid));
}

async function insertOneByOne(admin, count) {
  const run = randomUUID();
  const sql = `INSERT INTO bench_rows (${columns}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`;
  for (let seq = 1; seq <= count; seq += 1) await admin.execute(sql, [run, seq, ...eventRow, Date.now()]);
}

async function insertHundreds(admin, count) {
  const runs = Array.from({ length: 100 }, () => randomUUID());
  for (let seq = 1; seq <= count / 100; seq += 1) {
    const rows = runs.map((run) => [run, seq, ...eventRow, Date.now()]);
    await admin.query(`INSERT INTO bench_rows (${columns}) VALUES ?`, [rows]);
  }
}

async function updateAgainAndAgain(admin, count) {
  const run = randomUUID();
  await admin.execute("INSERT INTO bench_cursors (run_id, node, at) VALUES (?, ?, 0)", [run, node]);
  const sql = "UPDATE bench_cursors SET `cursor` = ?, progress = ?, at = ? WHERE run_id = ? AND node = ?";
  for (let n = 1; n <= count; n += 1) await admin.execute(sql, [String(n), progressAt(n), Date.now(), run, node]);
}
