/** SQLite's side of the shared reads. */
import type { Dialect } from "../sql/dialect.js";

export const sqliteDialect = (clock: () => number): Dialect => ({
  placeholder: () => "?",
  table: (name) => `pawl_${name}`,
  // One fixed text for lists of any length, so that it stays prepared.
  oneOf: (column, ids, bind) =>
    ids.length === 1
      ? `${column} = ${bind(ids[0])}`
      : `${column} IN (SELECT value FROM json_each(${bind(JSON.stringify(ids))}))`,
  isId: () => true,
  contains: (column, placeholder) => `instr(${column}, ${placeholder}) > 0`,
  // The machine's clock is the database's: they are one process.
  now: (bind) => bind(clock()),
  onDuplicateUpdate: (key) => `ON CONFLICT (${key}) DO UPDATE SET`,
  isParked: "t.state = 0 AND t.due_at IS NOT NULL",
  deleteOrder: () => "",
});
