/**
 * The sizes of the tables. The databases' own statistics cost next to nothing. Where they say that a table is small, or
 * nothing at all, its rows are counted up to a cap: statistics of small tables are often far off.
 */
import {
  type AppliedMigration,
  type DatabaseSize,
  type TableName,
  type TableSize,
  tableNames,
} from "../contract/size.js";
import type { Dialect, Queryable, SqlRow } from "./dialect.js";
import { numberOrNull } from "./records.js";

export async function readSize(db: Queryable, dialect: Dialect, cap: number): Promise<DatabaseSize> {
  const [database = {}] = await db.query(dialect.sizes.selectDatabase, []);
  const statement = dialect.sizes.selectTables(database);
  const statistics = new Map<unknown, SqlRow>();
  if (statement !== null) for (const row of await db.query(statement, [])) statistics.set(row.name, row);
  const statisticsOf = (name: TableName) => statistics.get(`pawl_${name}`);
  const isLarge = (name: TableName) => (numberOrNull(statisticsOf(name)?.row_estimate) ?? 0) > cap;
  const counts = await countRows(
    db,
    dialect,
    cap,
    tableNames.filter((name) => !isLarge(name)),
  );
  const tables = tableNames.map((name): TableSize => {
    const row = statisticsOf(name);
    return {
      name,
      ...(counts.get(name) ?? { rows: Number(row?.row_estimate), rowsAre: "estimated" }),
      bytes: numberOrNull(row?.bytes),
      indexBytes: numberOrNull(row?.index_bytes),
    };
  });
  const version = String(database.version);
  return {
    engine: dialect.sizes.engineOf(version),
    version,
    bytes: numberOrNull(database.bytes) ?? sumOf(tables),
    freeBytes: numberOrNull(database.free_bytes),
    tables,
    migrations: await readMigrations(db, dialect),
  };
}

type RowCount = Pick<TableSize, "rows" | "rowsAre">;

/** One statement counts all tables, each at most up to the cap. */
async function countRows(
  db: Queryable,
  dialect: Dialect,
  cap: number,
  names: readonly TableName[],
): Promise<ReadonlyMap<TableName, RowCount>> {
  if (names.length === 0) return new Map();
  const counts = names.map(
    (name) =>
      `SELECT '${name}' AS name, (SELECT count(*) FROM (SELECT 1 AS one FROM ${dialect.table(name)} LIMIT ${Math.floor(cap) + 1}) x) AS row_count`,
  );
  const rows = await db.query(counts.join(" UNION ALL "), []);
  return new Map(
    rows.map((row): [TableName, RowCount] => {
      const count = Number(row.row_count);
      return [row.name as TableName, { rows: Math.min(count, cap), rowsAre: count > cap ? "capped" : "exact" }];
    }),
  );
}

async function readMigrations(db: Queryable, dialect: Dialect): Promise<readonly AppliedMigration[]> {
  const rows = await db.query(
    `SELECT m.version, m.name, m.at FROM ${dialect.table("migrations")} m ORDER BY m.version`,
    [],
  );
  return rows.map((row) => ({ version: Number(row.version), name: row.name as string, at: Number(row.at) }));
}

function sumOf(tables: readonly TableSize[]): number | null {
  if (tables.every(({ bytes }) => bytes === null)) return null;
  return tables.reduce((sum, { bytes, indexBytes }) => sum + (bytes ?? 0) + (indexBytes ?? 0), 0);
}
