// SQLite: a file in a temporary folder, with the same settings as the store's own.

import { randomUUID } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadDriver } from "../../dist/store/sqlite/driver.js";
import { node, progressAt } from "./cursor-row.mjs";
import { columns, eventRow } from "./event-row.mjs";

let sent = 0;

export async function openSqlite() {
  const driver = await loadDriver();
  const folder = mkdtempSync(join(tmpdir(), "pawl-bench-"));
  const file = join(folder, "pawl.db");
  const limits = openLimits(driver, join(folder, "limits.db"));
  countStatements(limits.database);
  let reader;
  // Opened on demand, because the store creates the file.
  const read = () => {
    reader ??= new driver.Database(file);
    return reader;
  };
  return {
    label: `SQLite (${driver.name}, WAL, synchronous = FULL)`,
    url: `sqlite:${file}`,
    statements: () => sent,
    query: async (sql, values = []) => {
      const statement = read().prepare(sql);
      if (statement.reader !== false) return statement.all(...values);
      statement.run(...values);
      return [];
    },
    usage: async () => ({ eventRows: read().prepare("SELECT count(*) AS n FROM pawl_events").get().n }),
    cpuUs: async () => undefined,
    limits,
    close: async () => {
      reader?.close();
      limits.database.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

let counted = false;

/** Every statement of every connection goes through these methods of its class. */
function countStatements(database) {
  if (counted) return;
  counted = true;
  const statementClass = Object.getPrototypeOf(database.prepare("SELECT 1"));
  for (const [owner, name] of [
    ...["run", "get", "all"].map((name) => [statementClass, name]),
    [Object.getPrototypeOf(database), "exec"],
  ]) {
    const original = owner[name];
    owner[name] = function (...args) {
      sent += 1;
      return original.apply(this, args);
    };
  }
}

function openLimits({ Database }, file) {
  const database = new Database(file);
  database.exec("PRAGMA journal_mode = WAL");
  database.exec("PRAGMA synchronous = FULL");
  database.exec(
    "CREATE TABLE bench_rows (run_id TEXT, seq INTEGER, span INTEGER, type TEXT, node TEXT, attempt INTEGER, outcome TEXT, data TEXT, at INTEGER, PRIMARY KEY (run_id, seq)) WITHOUT ROWID",
  );
  database.exec(
    "CREATE TABLE bench_cursors (run_id TEXT, node TEXT, cursor TEXT, progress TEXT, at INTEGER, PRIMARY KEY (run_id, node))",
  );
  const insert = database.prepare(`INSERT INTO bench_rows (${columns}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`);
  return {
    database,
    oneRow: async (count) => {
      const run = randomUUID();
      for (let seq = 1; seq <= count; seq += 1) insert.run(run, seq, ...eventRow, Date.now());
    },
    hundredRows: async (count) => {
      const runs = Array.from({ length: 100 }, () => randomUUID());
      for (let seq = 1; seq <= count / 100; seq += 1) {
        database.exec("BEGIN IMMEDIATE");
        for (const run of runs) insert.run(run, seq, ...eventRow, Date.now());
        database.exec("COMMIT");
      }
    },
    oneUpdate: async (count) => {
      const run = randomUUID();
      database.prepare("INSERT INTO bench_cursors (run_id, node, at) VALUES (?, ?, 0)").run(run, node);
      const update = database.prepare(
        "UPDATE bench_cursors SET cursor = ?, progress = ?, at = ? WHERE run_id = ? AND node = ?",
      );
      for (let n = 1; n <= count; n += 1) update.run(String(n), progressAt(n), Date.now(), run, node);
    },
  };
}
