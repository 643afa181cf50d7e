/**
 * The expressions in which SQLite differs from other databases, for the queries that all SQL stores share (store/sql).
 */
import type { Dialect } from "../sql/dialect.js";
import { sqliteSizes } from "./size.js";

/** @param engine the name of the library, for display */
export const sqliteDialect = (clock: () => number, engine: string): Dialect => ({
  placeholder: () => "?",
  table: (name) => `pawl_${name}`,
  // With json_each the SQL text is the same for all lists of several ids, so one prepared statement serves them all.
  oneOf: (column, ids, bind) =>
    ids.length === 1
      ? `${column} = ${bind(ids[0])}`
      : `${column} IN (SELECT value FROM json_each(${bind(JSON.stringify(ids))}))`,
  isId: () => true,
  idAsText: (column) => column,
  contains: (column, placeholder) => `instr(${column}, ${placeholder}) > 0`,
  // SQLite runs inside this process, so the process's clock is the database's clock.
  now: (bind) => bind(clock()),
  onDuplicateUpdate: (key) => `ON CONFLICT (${key}) DO UPDATE SET`,
  insertedValue: (column) => `excluded.${column}`,
  isParked: "t.state = 0 AND t.due_at IS NOT NULL",
  isBefore: ([createdAt, id], position, bind) =>
    `(${createdAt}, ${id}) < (${bind(position.createdAt)}, ${bind(position.id)})`,
  forceRunIndex: () => "",
  readyRank: { column: "t.priority", order: "DESC", after: "<" },
  deleteOrder: () => "",
  forUpdate: "",
  sizes: sqliteSizes(engine),
});
