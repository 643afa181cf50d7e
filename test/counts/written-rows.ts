/**
 * Counts the rows that are written, and their bytes, by the test's own triggers on every table of Pawl: exact,
 * immediate, and the same on all databases. Each row that is inserted or updated is kept as text, its columns one after
 * the other; deletions are only counted.
 */

import type { StoreKind } from "../support/databases.js";
import { type RawSql, rawSql } from "../support/raw-sql.js";

export interface WrittenRow {
  /** "events inserted", "tasks updated" … */
  readonly what: string;
  /** Empty for a deletion. */
  readonly text: string;
}

type SqlStoreKind = Exclude<StoreKind, "memory">;

const happenings = { INSERT: "inserted", UPDATE: "updated", DELETE: "deleted" };
/** Columns whose length depends on the machine or on earlier measurements. They are left out of the text. */
const varying: Readonly<Record<string, readonly string[]>> = { workers: ["host", "pid"], inbox: ["id"] };

/**
 * MariaDB loses LAST_INSERT_ID(…), by which the store gets the stamp of new events, when a trigger does anything. Their
 * rows are read instead: they are never changed, or the other two triggers would report it.
 */
const isRead = (kind: SqlStoreKind, what: string) => kind === "mysql" && what === "events inserted";

export class WrittenRows {
  readonly #sql: RawSql;
  /** Reads the rows that no trigger reports, if there are any. */
  readonly #events: string | null;
  readonly #seen = new Set<string>();

  /** Installs the triggers after the tables exist and before anything is written. */
  static async of(kind: SqlStoreKind, url: string): Promise<WrittenRows> {
    const sql = await rawSql(url);
    await sql.query(`CREATE TABLE written (what VARCHAR(50), text ${kind === "mysql" ? "LONGBLOB" : "TEXT"})`);
    for (const table of await tablesOf(kind, sql)) {
      const columns = await columnsOf(kind, sql, table);
      for (const statement of triggersOf(kind, table, columns)) await sql.query(statement);
    }
    const events = rowText[kind](await columnsOf(kind, sql, "events"), "");
    return new WrittenRows(sql, isRead(kind, "events inserted") ? `SELECT ${events} AS text FROM pawl_events` : null);
  }

  private constructor(sql: RawSql, events: string | null) {
    this.#sql = sql;
    this.#events = events;
  }

  /** What was written since the last call, read at a moment without pending writes. */
  async take(): Promise<WrittenRow[]> {
    const rows = await this.#sql.query("SELECT what, text FROM written");
    await this.#sql.query("DELETE FROM written");
    const written = rows.map(({ what, text }) => ({ what: String(what), text: String(text) }));
    return [...written, ...(await this.#newEvents())];
  }

  close(): Promise<void> {
    return this.#sql.close();
  }

  async #newEvents(): Promise<WrittenRow[]> {
    if (this.#events === null) return [];
    const texts = (await this.#sql.query(this.#events)).map(({ text }) => String(text));
    const fresh = texts.filter((text) => !this.#seen.has(text));
    for (const text of fresh) this.#seen.add(text);
    return fresh.map((text) => ({ what: "events inserted", text }));
  }
}

/** All tables, by their names without the prefix, including those of later migrations. */
async function tablesOf(kind: SqlStoreKind, sql: RawSql): Promise<string[]> {
  // The catalog also lists views.
  const inSchema =
    "SELECT table_name AS name FROM information_schema.tables WHERE table_type = 'BASE TABLE' AND table_schema";
  const query = {
    sqlite: "SELECT name FROM sqlite_master WHERE type = 'table'",
    postgres: `${inSchema} = current_schema()`,
    mysql: `${inSchema} = database()`,
  }[kind];
  const names = (await sql.query(query)).map(({ name }) => String(name));
  return names.flatMap((name) => (name.startsWith("pawl_") ? name.slice("pawl_".length) : []));
}

async function columnsOf(kind: SqlStoreKind, sql: RawSql, table: string): Promise<string[]> {
  const inSchema = `SELECT column_name AS name FROM information_schema.columns WHERE table_name = 'pawl_${table}' AND table_schema`;
  const query = {
    sqlite: `SELECT name FROM pragma_table_info('pawl_${table}')`,
    postgres: `${inSchema} = current_schema()`,
    mysql: `${inSchema} = database()`,
  }[kind];
  const names = (await sql.query(query)).map(({ name }) => String(name));
  return names.filter((name) => !varying[table]?.includes(name));
}

function triggersOf(kind: SqlStoreKind, table: string, columns: readonly string[]): string[] {
  return Object.entries(happenings).flatMap(([event, happened]) => {
    const what = `${table} ${happened}`;
    if (isRead(kind, what)) return [];
    const name = `count_${table}_${happened}`;
    const text = event === "DELETE" ? "''" : rowText[kind](columns, "NEW.");
    const insert = `INSERT INTO written (what, text) VALUES ('${what}', ${text})`;
    const on = `TRIGGER ${name} AFTER ${event} ON pawl_${table} FOR EACH ROW`;
    if (kind === "sqlite") return [`CREATE ${on} BEGIN ${insert}; END`];
    if (kind === "mysql") return [`CREATE ${on} ${insert}`];
    const body = `BEGIN ${insert}; RETURN NULL; END`;
    return [
      `CREATE FUNCTION ${name}() RETURNS trigger LANGUAGE plpgsql AS $$ ${body} $$`,
      `CREATE ${on} EXECUTE FUNCTION ${name}()`,
    ];
  });
}

const rowText: Record<SqlStoreKind, (columns: readonly string[], row: "NEW." | "") => string> = {
  sqlite: (columns, row) => columns.map((column) => `coalesce(${row}${column}, '')`).join(" || "),
  postgres: (columns, row) => `concat(${columns.map((column) => `${row}${column}`).join(", ")})`,
  mysql: (columns, row) => `CONCAT_WS('', ${columns.map((column) => `${row}\`${column}\``).join(", ")})`,
};
