/** The statements that the tests of transaction attacks send, for each database. */
import type { Transaction } from "@libsql/client/ws";
import type Database from "better-sqlite3";
import type { Connection } from "mysql2/promise";
import type { ClientBase } from "pg";
import { mysqlTable, postgresTable, sqldTable, sqliteTable, type UserTable } from "../support/user-table.js";

export interface AttackSql {
  table(url: () => string): UserTable;
  /** Adds a row to `user_values`. */
  write(tx: unknown, value: string): Promise<void>;
  execute(tx: unknown, sql: string): Promise<void>;
  /** Prepares a statement now; the returned function executes it later. */
  prepared(tx: unknown, sql: string): () => Promise<unknown>;
  /** Executes the statement in its own transaction. */
  executeInOwnTransaction(table: UserTable, sql: string): Promise<void>;
  readonly begin: string;
  /** Whether a failed statement aborts the whole transaction. */
  readonly errorsAbortTransaction: boolean;
  /** Whether DDL commits the open transaction. */
  readonly ddlCommits: boolean;
  /** A statement that inserts a row after one second. */
  slowInsert(value: string): string;
}

const executeInOwnTransaction =
  (execute: AttackSql["execute"]): AttackSql["executeInOwnTransaction"] =>
  async (table, sql) => {
    const own = await table.beginCallerTransaction();
    await execute(own.tx, sql);
    await own.commit();
  };

const sqlite: AttackSql = {
  table: sqliteTable,
  write: async (tx, value) => {
    (tx as Database.Database).prepare("INSERT INTO user_values VALUES (?)").run(value);
  },
  execute: async (tx, sql) => {
    (tx as Database.Database).exec(sql);
  },
  prepared: (tx, sql) => {
    const statement = (tx as Database.Database).prepare(sql);
    return async () => statement.run();
  },
  executeInOwnTransaction: (table, sql) => executeInOwnTransaction(sqlite.execute)(table, sql),
  begin: "BEGIN IMMEDIATE",
  errorsAbortTransaction: false,
  ddlCommits: false,
  slowInsert: () => "",
};

const sqld: AttackSql = {
  table: sqldTable,
  write: async (tx, value) => {
    await (tx as Transaction).execute({ sql: "INSERT INTO user_values VALUES (?)", args: [value] });
  },
  execute: (tx, sql) => (tx as Transaction).executeMultiple(sql),
  prepared: (tx, sql) => () => (tx as Transaction).batch([sql]),
  executeInOwnTransaction: (table, sql) => executeInOwnTransaction(sqld.execute)(table, sql),
  begin: "BEGIN IMMEDIATE",
  errorsAbortTransaction: false,
  ddlCommits: false,
  slowInsert: (value) => `INSERT INTO user_values SELECT '${value}' FROM (
    WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000000) SELECT max(i) FROM n)`,
};

const postgres: AttackSql = {
  table: postgresTable,
  write: async (tx, value) => {
    await (tx as ClientBase).query({ text: "INSERT INTO user_values VALUES ($1)", values: [value] });
  },
  execute: async (tx, sql) => {
    await (tx as ClientBase).query(sql);
  },
  prepared: (tx, text) => {
    const query = (tx as ClientBase).query.bind(tx as ClientBase) as (config: object) => Promise<unknown>;
    return () => query({ name: "kept", text });
  },
  executeInOwnTransaction: (table, sql) => executeInOwnTransaction(postgres.execute)(table, sql),
  begin: "BEGIN",
  errorsAbortTransaction: true,
  ddlCommits: false,
  slowInsert: (value) => `INSERT INTO user_values SELECT '${value}' FROM (SELECT pg_sleep(1)) AS slept`,
};

const mysql: AttackSql = {
  table: mysqlTable,
  write: async (tx, value) => {
    await (tx as Connection).query("INSERT INTO user_values VALUES (?)", [value]);
  },
  execute: async (tx, sql) => {
    await (tx as Connection).query(sql);
  },
  prepared: (tx, sql) => {
    const statement = (tx as Connection).prepare(sql);
    statement.catch(() => {});
    return async () => (await statement).execute([]);
  },
  executeInOwnTransaction: (table, sql) => executeInOwnTransaction(mysql.execute)(table, sql),
  begin: "START TRANSACTION",
  errorsAbortTransaction: false,
  ddlCommits: true,
  slowInsert: (value) => `INSERT INTO user_values SELECT '${value}' FROM (SELECT SLEEP(1)) AS slept`,
};

export const sqlOf = (kind: "sqlite" | "sqld" | "postgres" | "mysql"): AttackSql =>
  ({ sqlite, sqld, postgres, mysql })[kind];
