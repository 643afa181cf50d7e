/**
 * The statements about limits in which databases differ, and the form in which the others are written.
 *
 * A transaction is a generator: it yields statements and gets their rows, and ends with the statements to write. So the same
 * code runs on drivers that answer at once (SQLite) and on those that answer later.
 */
import type { TableName } from "../../contract/size.js";
import type { Fence } from "../../contract/store.js";
import { type Bind, createStatement, type Dialect, type SqlRow } from "../dialect.js";

export interface SqlText {
  readonly text: string;
  readonly values: readonly unknown[];
  /** Whether the statement may be sent as one with the next: neither reads what the other writes or locks. */
  readonly joinsNext?: true;
  /** Whether it also has the columns of the next, so that its rows need no form of their own. */
  readonly isLikeNext?: true;
}

/** Marks all statements but the last as independent of the next. Only reads return rows. */
export const joined = (statements: readonly SqlText[]): readonly SqlText[] =>
  statements.map((statement, index) => (index < statements.length - 1 ? { ...statement, joinsNext: true } : statement));

/** The same for reads that have the same columns. */
export const alike = (statements: readonly SqlText[]): readonly SqlText[] =>
  joined(statements).map((statement) => (statement.joinsNext ? { ...statement, isLikeNext: true } : statement));

/** Rows of joined statements that differ come as JSON. From about this number on, that costs more than the round trips that joining saves. */
export const maxJoinedRows = 40;

/** The same for reads that return about so many rows. */
export const joinedIfFew = (rowCount: number, statements: readonly SqlText[]): readonly SqlText[] =>
  rowCount <= maxJoinedRows ? joined(statements) : statements;

type Rows = readonly SqlRow[];

export interface TransactionEnd<R> {
  /** The last statements of the transaction, sent together with COMMIT; null rolls it back. */
  readonly writes: readonly SqlText[] | null;
  result(rows: readonly Rows[]): R;
}

/** Steps of a transaction that read or lock, and return something. */
export type ReadSteps<R> = Generator<readonly SqlText[], R, readonly Rows[]>;

export type TransactionSteps<R> = Generator<readonly SqlText[], TransactionEnd<R>, readonly Rows[]>;

export type ColumnType = "text" | "id" | "number";

/** A column of a relation that is made of bound values. Its name must not be that of a column of a table. */
export type Column = readonly [name: string, type: ColumnType];

/** The primary key of the table of slots. */
export interface SlotKey {
  readonly runId: string;
  readonly lane: string;
  readonly node: string;
}

/** For databases that search the primary key once for each of the alternatives. */
export const isOneOfSlots = (slots: readonly SlotKey[], bind: Bind): string =>
  `(${slots
    .map(({ runId, lane, node }) => `(run_id = ${bind(runId)} AND lane = ${bind(lane)} AND node = ${bind(node)})`)
    .join(" OR ")})`;

export interface LimitsDialect {
  readonly base: Dialect;
  /** Selects a row if the fence is valid, and keeps other workers from reaping the worker until the transaction ends. */
  selectFence(fence: Fence, bind: Bind): string;
  /** The clauses at the end of a SELECT that lock its rows; "" where a writing transaction excludes all others. */
  readonly lock: {
    readonly wait: string;
    readonly skip: string;
    readonly share: string;
    /** Like `skip`, but lets others see to it that the row is not deleted: starts do that with the classes of their runs. */
    readonly skipForUpdate: string;
  };
  /** A condition: the column is one of these texts. */
  isOneOf(column: string, texts: readonly string[], bind: Bind): string;
  /** A condition: the column is none of these texts. It is checked for many rows, so it must not compare with each text. */
  isNoneOf(column: string, texts: readonly string[], bind: Bind): string;
  /** A condition: the row of the table of slots is one of these. */
  isOneOfSlots(slots: readonly SlotKey[], bind: Bind): string;
  /** Statements that run `select` once for each row; `columnOf` names the values of the row, and `n` is its number, from 1. */
  forEach(
    columns: readonly Column[],
    rows: readonly (readonly unknown[])[],
    select: (columnOf: (name: string) => string, bind: Bind) => string,
  ): readonly SqlText[];
  /** An INSERT of these rows that changes nothing if a row exists, but locks it. */
  insertOrLock(table: string, columns: readonly Column[], rows: readonly (readonly unknown[])[], key: string): SqlText;
  /** An UPDATE of the rows whose key is in the first column. In `assignments`, `column` stands for a value of the row. */
  updateEach(
    table: TableName,
    key: string,
    columns: readonly Column[],
    rows: readonly (readonly unknown[])[],
    assignments: (columnOf: (name: string) => string) => readonly string[],
  ): SqlText;
  /** Unblocks the first class that is blocked on the lane, and returns its row; null where an UPDATE returns no rows. */
  readonly unblockFirst: ((lane: string, bind: Bind) => string) | null;
  /** The table of tasks as `t`, with the index of ready and parked tasks by route, or with its primary key. */
  readonly tasksByRoute: string;
  readonly tasksByKey: string;
  /** Further assignments to a task that becomes ready, is parked, or gets an owner. */
  readonly whenReady: string;
  readonly whenParked: string;
  readonly whenOwned: string;
}

export function buildStatement(dialect: Pick<Dialect, "placeholder">, build: (bind: Bind) => string): SqlText {
  const { bind, values } = createStatement(dialect as Dialect);
  const text = build(bind);
  return { text, values };
}
