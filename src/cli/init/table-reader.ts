/** Reads the tables of an application and the types of their keys from the database. It changes nothing and creates no file. */
import { existsSync } from "node:fs";
import { dirname } from "node:path";
import { parseRemoteAddress } from "../../store/libsql-remote/address.js";
import { loadClient } from "../../store/libsql-remote/driver.js";
import { loadDriver as loadMysql, parseUrl } from "../../store/mysql/driver.js";
import { loadPg } from "../../store/postgres/connection/driver.js";
import { connectionConfig } from "../../store/postgres/connection/sockets.js";
import { loadDriver as loadSqlite } from "../../store/sqlite/driver.js";
import { parseLocation } from "../../store/sqlite/open.js";
import type { DatabaseKind } from "../migration-sql.js";

export interface KeyColumn {
  readonly table: string;
  /** The only column of its primary key. */
  readonly column: string;
  /** The name of the type in the database. */
  readonly type: string;
}

export interface ApplicationTables {
  readonly keys: readonly KeyColumn[];
  /** PostgreSQL: the schema in which tables are created by default. */
  readonly schema: string | null;
}

type Row = Readonly<Record<string, unknown>>;

export function readTables(kind: DatabaseKind, url: string, schema: string | undefined): Promise<ApplicationTables> {
  return readers[kind](url, schema);
}

const readers: Readonly<Record<DatabaseKind, (url: string, schema: string | undefined) => Promise<ApplicationTables>>> =
  {
    postgres: readPostgres,
    mysql: readMysql,
    sqlite: readSqlite,
  };

async function readPostgres(url: string, schema: string | undefined): Promise<ApplicationTables> {
  const { Client } = await loadPg();
  const client = new Client(connectionConfig(url));
  client.on("error", () => {});
  await client.connect();
  try {
    const query = async (text: string, values: readonly unknown[] = []) => (await client.query({ text, values })).rows;
    const [schemaRow] = await query("SELECT current_schema() AS schema");
    const defaultSchema = (schemaRow?.schema as string | null) ?? null;
    const rows = await query(
      `SELECT c.relname AS "table", a.attname AS "column", format_type(a.atttypid, a.atttypmod) AS type
       FROM pg_index i
       JOIN pg_class c ON c.oid = i.indrelid AND c.relkind IN ('r', 'p') AND NOT c.relispartition
       JOIN pg_namespace n ON n.oid = c.relnamespace AND n.nspname = $1
       JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = i.indkey[0]
       WHERE i.indisprimary AND i.indnatts = 1
       ORDER BY c.relname`,
      [schema ?? defaultSchema],
    );
    return { keys: rows.map(toKeyColumn), schema: defaultSchema };
  } finally {
    await client.end();
  }
}

async function readMysql(url: string): Promise<ApplicationTables> {
  const connection = await (await loadMysql()).createConnection({ uri: parseUrl(url).uri });
  connection.on("error", () => {});
  try {
    const [rows] = await connection.query(
      `SELECT k.table_name AS \`table\`, MIN(k.column_name) AS \`column\`, MIN(c.column_type) AS type
       FROM information_schema.key_column_usage k
       JOIN information_schema.tables t ON t.table_schema = k.table_schema AND t.table_name = k.table_name
       JOIN information_schema.columns c ON c.table_schema = k.table_schema AND c.table_name = k.table_name
         AND c.column_name = k.column_name
       WHERE k.table_schema = DATABASE() AND k.constraint_name = 'PRIMARY' AND t.table_type = 'BASE TABLE'
       GROUP BY k.table_name
       HAVING COUNT(*) = 1
       ORDER BY k.table_name`,
    );
    return { keys: (rows as readonly Row[]).map(toKeyColumn), schema: null };
  } finally {
    await connection.end();
  }
}

const sqliteKeys = `SELECT m.name AS "table", MIN(p.name) AS "column", MIN(p.type) AS type
  FROM sqlite_master m, pragma_table_info(m.name) p
  WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite\\_%' ESCAPE '\\' AND p.pk > 0
  GROUP BY m.name
  HAVING COUNT(*) = 1
  ORDER BY m.name`;

/** Reads the tables of a libSQL server. */
export async function readRemoteTables(url: string, authToken: string | undefined): Promise<ApplicationTables> {
  const address = parseRemoteAddress(url, /[?&]authToken=/.test(url) ? undefined : authToken);
  const client = (await loadClient(address))();
  try {
    const { rows } = await client.execute({ sql: sqliteKeys, args: [] });
    return { keys: rows.map(toKeyColumn), schema: null };
  } finally {
    client.close();
  }
}

async function readSqlite(url: string): Promise<ApplicationTables> {
  const path = url.replace(/^\w+:/, "");
  // A missing database has no tables; the first worker creates it when it starts.
  if (!existsSync(dirname(path))) return { keys: [], schema: null };
  const { file } = parseLocation(`sqlite:${path}`);
  if (file === null || !existsSync(file)) return { keys: [], schema: null };
  const database = (await loadSqlite()).open(file);
  try {
    return { keys: database.prepare(sqliteKeys).all().map(toKeyColumn), schema: null };
  } finally {
    database.close();
  }
}

const toKeyColumn = ({ table, column, type }: Row): KeyColumn => ({
  table: String(table),
  column: String(column),
  type: String(type),
});
