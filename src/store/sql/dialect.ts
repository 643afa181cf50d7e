/** What the shared SQL has to know about a database: an object with its expressions, never a name to branch on. */

export type SqlRow = Readonly<Record<string, unknown>>;

/** All that the reads need of a driver. Values are bound in the order of their placeholders. */
export interface Queryable {
  query(sql: string, values: readonly unknown[]): Promise<readonly SqlRow[]>;
}

/** Adds a value to a statement and gives back its placeholder. */
export type Bind = (value: unknown) => string;

export interface Dialect {
  /** The nth value of a statement, from 1: "?" or "$1". */
  placeholder(n: number): string;
  /** "runs" → the table's full name, quoted if need be and with its schema if it has one. */
  table(name: TableName): string;
  /** True where `column` is one of the run ids. Whether they are one bound list or one value each is the dialect's. */
  oneOf(column: string, ids: readonly string[], bind: Bind): string;
  /** False for text that no run id column could hold, so that it is not sent (PostgreSQL's uuid refuses it loudly). */
  isId(text: string): boolean;
  /** True where the text of `column` contains the bound text, byte for byte. */
  contains(column: string, placeholder: string): string;
  /** The store's now in epoch milliseconds: the virtual clock's reading, bound, or the database's own expression. */
  now(bind: Bind): string;
  /** What follows VALUES (…) to update the row that has this key already: "ON CONFLICT (name) DO UPDATE SET". */
  onDuplicateUpdate(key: string): string;
  /** Of a task `t`: it is parked, in the words of the index that has the parked ones by workflow, version and time. */
  readonly isParked: string;
  /** What follows a DELETE so that it finds its rows by this key; "" where that needs no saying. */
  deleteOrder(key: string): string;
}

export type TableName =
  | "runs"
  | "tasks"
  | "events"
  | "inbox"
  | "cursors"
  | "workers"
  | "workflows"
  | "queues"
  | "migrations";

/** A statement under construction. */
export interface Statement {
  readonly bind: Bind;
  readonly values: readonly unknown[];
}

export function createStatement(dialect: Dialect): Statement {
  const values: unknown[] = [];
  return { values, bind: (value) => dialect.placeholder(values.push(value)) };
}
