/** Databases on the MySQL or MariaDB server of the tests. */
import { randomBytes } from "node:crypto";
import { type Connection, createConnection } from "mysql2/promise";
import { giveBack, mayKeep, type PooledDatabase, register, takeFree, unregister } from "./database-pool.js";

/** @param migrate makes the tables in the database of this URL; without it the database has none */
export async function takeMysqlDatabase(
  server: string,
  migrate: ((url: string) => Promise<void>) | null,
): Promise<PooledDatabase> {
  const withTables = migrate === null ? undefined : takeFree(server, true);
  if (withTables !== undefined) return withTables;
  const name = `pawl_test_${process.pid}_${randomBytes(4).toString("hex")}`;
  register(server, name);
  await onMysql(server, (connection) => connection.query(`CREATE DATABASE ${name} CHARACTER SET utf8mb4`));
  if (migrate === null) return { name, fingerprint: null };
  const url = databaseUrl(server, name);
  await migrate(url);
  return { name, fingerprint: await onMysql(url, fingerprintOf) };
}

/** Only its rows are deleted, if it has the tables of a migration as they were. Otherwise it is dropped. */
export async function returnMysqlDatabase(server: string, database: PooledDatabase): Promise<void> {
  if (mayKeep() && database.fingerprint !== null && (await hasDeletedRows(server, database)))
    giveBack(server, database);
  else await dropMysqlDatabase(server, database.name);
}

export async function dropMysqlDatabase(server: string, name: string): Promise<void> {
  await onMysql(server, (connection) => connection.query(`DROP DATABASE IF EXISTS ${name}`));
  unregister(name);
}

export async function onMysql<Result>(
  server: string,
  work: (connection: Connection) => Promise<Result>,
): Promise<Result> {
  const connection = await createConnection({ uri: server, multipleStatements: true });
  try {
    return await work(connection);
  } finally {
    await connection.end();
  }
}

function databaseUrl(server: string, name: string): string {
  const url = new URL(server);
  url.pathname = `/${name}`;
  return url.href;
}

async function rowsOf<Row>(connection: Connection, sql: string): Promise<Row[]> {
  return (await connection.query(sql))[0] as Row[];
}

const here = (column: string) => `${column} = DATABASE()`;

/**
 * Tables, columns, indexes, views, triggers and routines, and the one table whose rows are kept: a test may have written that a newer
 * Pawl has migrated the database.
 */
const schemaQueries = [
  `SELECT table_name, table_type, engine, table_collation FROM information_schema.tables WHERE ${here("table_schema")} ORDER BY 1`,
  `SELECT table_name, column_name, column_type, is_nullable, column_default, extra, collation_name
    FROM information_schema.columns WHERE ${here("table_schema")} ORDER BY 1, 2`,
  `SELECT table_name, index_name, seq_in_index, column_name, sub_part, non_unique
    FROM information_schema.statistics WHERE ${here("table_schema")} ORDER BY 1, 2, 3`,
  `SELECT table_name, view_definition FROM information_schema.views WHERE ${here("table_schema")} ORDER BY 1`,
  `SELECT trigger_name, action_statement FROM information_schema.triggers WHERE ${here("trigger_schema")} ORDER BY 1`,
  `SELECT routine_name, routine_definition FROM information_schema.routines WHERE ${here("routine_schema")} ORDER BY 1`,
  "SELECT * FROM pawl_migrations ORDER BY version",
];

async function fingerprintOf(connection: Connection): Promise<string> {
  const parts: unknown[] = [];
  for (const sql of schemaQueries) parts.push(await rowsOf(connection, sql));
  return JSON.stringify(parts);
}

const otherSessions = `
  SELECT count(*) AS n FROM information_schema.processlist WHERE ${here("db")} AND id <> CONNECTION_ID()`;

async function hasDeletedRows(server: string, { name, fingerprint }: PooledDatabase): Promise<boolean> {
  try {
    return await onMysql(databaseUrl(server, name), async (connection) => {
      const sessions = async () => Number((await rowsOf<{ n: number }>(connection, otherSessions))[0]?.n);
      // A session ends on the server a moment after its client has closed it.
      for (let looks = 1; (await sessions()) > 0; looks += 1) {
        if (looks === 5) return false;
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
      if ((await fingerprintOf(connection)) !== fingerprint) return false;
      const tables = await rowsOf<{ name: string }>(
        connection,
        `SELECT table_name AS name FROM information_schema.tables
          WHERE ${here("table_schema")} AND table_type = 'BASE TABLE' AND table_name <> 'pawl_migrations'`,
      );
      const deletes = tables.map((table) => `DELETE FROM \`${table.name}\``);
      await connection.query(["SET foreign_key_checks = 0", ...deletes].join("; "));
      return true;
    });
  } catch {
    // For instance, the test has dropped it, or another session holds a lock on its tables.
    return false;
  }
}
