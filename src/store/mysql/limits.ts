/** Limits on MySQL and MariaDB. */
import type { Fence, Hint } from "../contract/store.js";
import type { Dialect } from "../sql/dialect.js";
import {
  buildStatement,
  type Column,
  isOneOfSlots,
  type LimitsDialect,
  type SqlText,
  type TransactionSteps,
} from "../sql/limits/dialect.js";
import { SqlLimits } from "../sql/limits/limits.js";
import type { Database } from "./database.js";
import type { Result } from "./session.js";
import { forcePrimaryKey, type Sql, sql, type Value } from "./sql.js";

export function createMysqlLimits(
  db: Database,
  dialect: Dialect,
  emitHints: (hints: readonly Hint[]) => void,
): SqlLimits {
  const port = {
    read: async (statements: readonly SqlText[]) => rowsOf(await db.read(statements.map(toSql))),
    write: async (statements: readonly SqlText[]) => {
      const rows: Result[] = [];
      for (const statement of statements) {
        const isRead = statement.text.startsWith("SELECT");
        const result = isRead ? (await db.read([toSql(statement)]))[0] : await db.write(toSql(statement));
        rows.push(result ?? { rows: [], affectedRows: 0, insertId: 0 });
      }
      return rowsOf(rows);
    },
    transact: <R>(begin: () => TransactionSteps<R>) =>
      db.transaction(async (transaction) => {
        const steps = begin();
        let step = steps.next();
        while (!step.done) step = steps.next(rowsOf(await transaction.run(step.value.map(toSql))));
        const { writes, result } = step.value;
        if (writes !== null) return result(rowsOf(await transaction.commit(writes.map(toSql))));
        await transaction.rollback();
        return result([]);
      }),
    underFence: <R>(_fence: Fence, work: () => Promise<R>) => work(),
    emitHints,
  };
  return new SqlLimits(port, mysqlLimitsDialect(dialect));
}

const toSql = ({ text, values }: SqlText): Sql => sql(text, values as readonly Value[]);
const rowsOf = (results: readonly Result[]) => results.map(({ rows }) => rows);

export const mysqlLimitsDialect = (base: Dialect): LimitsDialect => ({
  base,
  selectFence: ({ workerId, epoch }, bind) =>
    `SELECT 1 AS one FROM pawl_workers WHERE id = ${bind(workerId)} AND epoch = ${bind(epoch)} AND live = 1 LOCK IN SHARE MODE`,
  lock: {
    wait: "FOR UPDATE",
    skip: "FOR UPDATE SKIP LOCKED",
    share: "LOCK IN SHARE MODE",
    skipForUpdate: "FOR UPDATE SKIP LOCKED",
  },
  isOneOf: (column, texts, bind) => `${column} IN (${texts.map(bind).join(",")})`,
  isNoneOf: (column, texts, bind) => `${column} NOT IN (${texts.map(bind).join(",")})`,
  isOneOfSlots,
  forEach: (columns, rows, select) =>
    rows.map((row, index) =>
      buildStatement(base, (bind) =>
        select((name) => {
          if (name === "n") return String(index + 1);
          const column = columns.findIndex((candidate) => candidate[0] === name);
          return bind(row[column]);
        }, bind),
      ),
    ),
  insertOrLock: (table, columns, rows, key) =>
    buildStatement(base, (bind) => {
      const names = columns.map(([name]) => name).join(", ");
      const firstKey = key.split(",")[0];
      return `INSERT INTO ${table} (${names}) VALUES ${rows.map((row) => `(${row.map(bind).join(",")})`).join(",")} ON DUPLICATE KEY UPDATE ${firstKey} = ${table}.${firstKey}`;
    }),
  updateEach: (table, key, columns, rows, assignments) =>
    buildStatement(base, (bind) => {
      const values = rows.map((row, index) => `SELECT ${selectList(columns, row, index, bind)}`).join(" UNION ALL ");
      const keyColumn = columns[0]?.[0];
      return `UPDATE (${values}) v STRAIGHT_JOIN ${base.table(table)} t ${forcePrimaryKey} ON t.${key} = v.${keyColumn} SET ${assignments((name) => `v.${name}`).join(", ")}`;
    }),
  unblockFirst: null,
  tasksByRoute: "pawl_tasks t FORCE INDEX (due)",
  tasksByKey: `pawl_tasks t ${forcePrimaryKey}`,
  whenReady: ", rank_no = -priority",
  whenParked: ", rank_no = 0",
  whenOwned: ", fresh = 0, rank_no = 0",
});

/** Keys and names are compared byte for byte, so the bound texts are binary. */
const selectList = (
  columns: readonly Column[],
  row: readonly unknown[],
  index: number,
  bind: (value: unknown) => string,
) =>
  columns
    .map(([name, type], column) => {
      const value = type === "number" ? bind(row[column]) : `CAST(${bind(row[column])} AS BINARY)`;
      return index === 0 ? `${value} AS ${name}` : value;
    })
    .join(", ");
