/** Limits on SQLite and libSQL. Rows of values are passed as JSON, so that one prepared statement serves any number of rows. */
import type { Dialect } from "../sql/dialect.js";
import { isBlockedOn } from "../sql/limits/classes.js";
import { buildStatement, type Column, isOneOfSlots, type LimitsDialect } from "../sql/limits/dialect.js";

export const sqliteLimitsDialect = (base: Dialect): LimitsDialect => ({
  base,
  selectFence: ({ workerId, epoch }, bind) =>
    `SELECT 1 AS one FROM pawl_workers WHERE id = ${bind(workerId)} AND epoch = ${bind(epoch)} AND live = 1`,
  // A transaction that writes excludes all others.
  lock: { wait: "", skip: "", share: "", skipForUpdate: "" },
  isOneOf: (column, texts, bind) => `${column} IN (SELECT value FROM json_each(${bind(JSON.stringify(texts))}))`,
  isNoneOf: (column, texts, bind) => `${column} NOT IN (SELECT value FROM json_each(${bind(JSON.stringify(texts))}))`,
  isOneOfSlots,
  forEach: (columns, rows, select) =>
    rows.map((row, index) =>
      buildStatement(base, (bind) =>
        select(
          (name) => (name === "n" ? String(index + 1) : bind(row[columns.findIndex(([column]) => column === name)])),
          bind,
        ),
      ),
    ),
  insertOrLock: (table, columns, rows, key) =>
    buildStatement(base, (bind) => {
      const names = columns.map(([name]) => name).join(", ");
      return `INSERT INTO ${table} (${names}) SELECT ${valuesOf(columns)} FROM json_each(${bind(JSON.stringify(rows))}) WHERE true ON CONFLICT (${key}) DO NOTHING`;
    }),
  updateEach: (table, key, columns, rows, assignments) =>
    buildStatement(base, (bind) => {
      const values = `SELECT ${valuesOf(columns)} FROM json_each(${bind(JSON.stringify(rows))})`;
      const keyColumn = columns[0]?.[0];
      return `UPDATE ${base.table(table)} SET ${assignments((name) => `v.${name}`).join(", ")} FROM (${values}) v WHERE ${key} = v.${keyColumn}`;
    }),
  unblockFirst: (lane, bind) =>
    `UPDATE pawl_classes SET blocked_on = '' WHERE id = (SELECT c.id FROM pawl_classes c WHERE ${isBlockedOn(bind(lane))} ORDER BY c.turn LIMIT 1) RETURNING id`,
  tasksByRoute: "pawl_tasks t",
  tasksByKey: "pawl_tasks t",
  whenReady: "",
  whenParked: "",
  whenOwned: ", fresh = 0",
});

const valuesOf = (columns: readonly Column[]) =>
  columns.map(([name], index) => `value ->> ${index} AS ${name}`).join(", ");
