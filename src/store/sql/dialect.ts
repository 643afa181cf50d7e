/** The expressions in which databases differ, as an object, so that no shared code branches on a database's name. */
import type { TableName } from "../contract/size.js";

export type SqlRow = Readonly<Record<string, unknown>>;

/** The part of a driver that the shared SQL uses. Values are bound in the order of their placeholders. */
export interface Queryable {
  query(sql: string, values: readonly unknown[]): Promise<readonly SqlRow[]>;
}

/** Adds a value to a statement and returns its placeholder. */
export type Bind = (value: unknown) => string;

/** The statements about the sizes of tables, in which databases differ. */
export interface SizeStatements {
  /** The name of the product, for display. */
  engineOf(version: string): string;
  /** Selects one row: `version`, and the `bytes` and `free_bytes` of the database's file, or null. */
  readonly selectDatabase: string;
  /**
   * Selects a row for each table: its full `name`, `row_estimate`, `bytes` and `index_bytes`. Tables of other programs may
   * be among them. null: the database does not tell, or would have to read all its pages.
   *
   * @param database the row of `selectDatabase`
   */
  selectTables(database: SqlRow): string | null;
}

export interface Dialect {
  /** The placeholder of the nth value of a statement, counted from 1: "?" or "$1". */
  placeholder(n: number): string;
  /** The full name of a table, with its schema and quotes where the database needs them. */
  table(name: TableName): string;
  /** A condition: `column` is one of the run ids. The dialect binds them as one list or as one value each. */
  oneOf(column: string, ids: readonly string[], bind: Bind): string;
  /**
   * False for text that a column of run ids cannot hold. Callers must not bind such text, because a statement that
   * compares it with a column of PostgreSQL's type uuid fails.
   */
  isId(text: string): boolean;
  /** A column of run ids as text, for aggregates that the type of the column does not have. */
  idAsText(column: string): string;
  /** A condition: the text of `column` contains the bound text, byte for byte. */
  contains(column: string, placeholder: string): string;
  /** The store's clock in epoch milliseconds: the bound value of a virtual clock, or the database's own expression. */
  now(bind: Bind): string;
  /** The clause after VALUES (…) that updates an existing row with the same key: "ON CONFLICT (name) DO UPDATE SET". */
  onDuplicateUpdate(key: string): string;
  /** In that clause: the value of this column that was to be inserted. */
  insertedValue(column: string): string;
  /** A condition: task `t` is parked with a due time, written so that the index of such tasks is used. */
  readonly isParked: string;
  /** A condition: a row comes before the position in an order by both columns, written so that it becomes an index range. */
  isBefore(
    columns: readonly [createdAt: string, id: string],
    position: { readonly createdAt: number; readonly id: string },
    bind: Bind,
  ): string;
  /** The clause after `runs r` that makes the database use this index; "" where its planner needs no such clause. */
  forceRunIndex(index: RunIndex): string;
  /** How ready tasks `t` are ordered within their route, as the index of ready tasks has them. */
  readonly readyRank: {
    readonly column: string;
    readonly order: "ASC" | "DESC";
    /** The comparison that selects the tasks of later ranks. */
    readonly after: "<" | ">";
  };
  /** The clause at the end of a DELETE that makes it find its rows by this key; "" where no clause is needed. */
  deleteOrder(key: string): string;
  /** The clause at the end of a SELECT that locks its rows; "" where a transaction has the only write lock. */
  readonly forUpdate: string;
  /** How the sizes of the tables are read. */
  readonly sizes: SizeStatements;
}

/** The indexes of the table of runs by which lists are read. */
export type RunIndex = "newest" | "newest_of_workflow" | "start_key" | "hero" | "parent" | "unsuccessful";

/** A statement under construction. */
export interface Statement {
  readonly bind: Bind;
  readonly values: readonly unknown[];
}

export function createStatement(dialect: Dialect): Statement {
  const values: unknown[] = [];
  return { values, bind: (value) => dialect.placeholder(values.push(value)) };
}
