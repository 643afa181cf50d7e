/** Plain SQL on a test's database, past the library. Written with `?` and without values from outside. */
import { createClient } from "@libsql/client/ws";
import Database from "better-sqlite3";
import { createConnection } from "mysql2/promise";
import pg from "pg";

export type Row = Record<string, string | number | null>;

export interface RawSql {
  query(sql: string): Promise<Row[]>;
  close(): Promise<void>;
}

export function rawSql(url: string): Promise<RawSql> {
  if (url.startsWith("sqlite:")) return rawSqlite(url.slice("sqlite:".length));
  if (url.startsWith("ws:")) return rawSqld(url);
  return url.startsWith("mysql:") ? rawMysql(url) : rawPostgres(url);
}

async function rawSqlite(file: string): Promise<RawSql> {
  const db = new Database(file, { timeout: 10_000 });
  return {
    query: async (sql) => {
      const statement = db.prepare(sql);
      if (statement.reader) return statement.all() as Row[];
      statement.run();
      return [];
    },
    close: async () => void db.close(),
  };
}

async function rawSqld(url: string): Promise<RawSql> {
  const client = createClient({ url });
  return {
    query: async (sql) => (await client.execute(sql)).rows as unknown as Row[],
    close: async () => client.close(),
  };
}

async function rawPostgres(url: string): Promise<RawSql> {
  const client = new pg.Client({ connectionString: url });
  client.on("error", () => {});
  await client.connect();
  return { query: async (sql) => (await client.query(sql)).rows, close: () => client.end() };
}

async function rawMysql(uri: string): Promise<RawSql> {
  const connection = await createConnection({ uri });
  connection.on("error", () => {});
  return {
    query: async (sql) => {
      const [rows] = await connection.query(sql);
      return Array.isArray(rows) ? (rows as Record<string, unknown>[]).map(withText) : [];
    },
    close: () => connection.end(),
  };
}

/** Binary columns hold text that is compared byte for byte. */
function withText(row: Record<string, unknown>): Row {
  const entries = Object.entries(row).map(([name, value]) => [name, Buffer.isBuffer(value) ? value.toString() : value]);
  return Object.fromEntries(entries);
}
