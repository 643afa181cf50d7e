/** SQLite's side of the shared reads. */
import type { Dialect } from "../sql/dialect.js";

export const sqliteDialect = (clock: () => number): Dialect => ({
  placeholder: () => "?",
  table: (name) => `pawl_${name}`,
  // The text is the same for a list of any length, so its prepared statement is reused.
  oneOf: (column, ids, bind) =>
    ids.length === 1
      ? `${column} = ${bind(ids[0])}`
      : `${column} IN (SELECT value FROM json_each(${bind(JSON.stringify(ids))}))`,
  isId: () => true,
  contains: (column, placeholder) => `instr(${column}, ${placeholder}) > 0`,
  // SQLite runs inside this process, so the process's clock is the database's clock.
  now: (bind) => bind(clock()),
  onDuplicateUpdate: (key) => `ON CONFLICT (${key}) DO UPDATE SET`,
  isParked: "t.state = 0 AND t.due_at IS NOT NULL",
  deleteOrder: () => "",
});
