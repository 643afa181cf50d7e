/** Limits on PostgreSQL. Rows of values are passed as arrays, one for each column. */
import { createHash } from "node:crypto";
import type { Hint } from "../contract/store.js";
import type { Dialect, SqlRow } from "../sql/dialect.js";
import { isBlockedOn } from "../sql/limits/classes.js";
import {
  buildStatement,
  type Column,
  type ColumnType,
  type LimitsDialect,
  type SqlText,
  type TransactionSteps,
} from "../sql/limits/dialect.js";
import { type LimitsPort, SqlLimits } from "../sql/limits/limits.js";
import { plainArray, textArray } from "./commit/arrays.js";
import type { Database } from "./connection/database.js";
import type { ExecuteQuery, PgQuery } from "./connection/driver.js";
import { serverConditionMarker } from "./connection/server-identity.js";
import type { OperationTracker } from "./operation-tracker.js";
import type { Tables } from "./tables.js";

export interface PostgresLimitsPort {
  readonly db: Pick<Database, "read" | "transaction">;
  /** Lets the store wait for what is under way when it is closed. */
  readonly operations: OperationTracker;
  underFence: LimitsPort["underFence"];
  emitHints(hints: readonly Hint[]): void;
}

export function createPostgresLimits(port: PostgresLimitsPort, tables: Tables, dialect: Dialect): SqlLimits {
  const { db, operations } = port;
  // The writes may be executed twice, so they are retried like reads.
  const run = (statements: readonly SqlText[]) => operations.run(() => runAll((query) => db.read(query), statements));
  const limitsPort = {
    read: run,
    write: run,
    transact: <R>(begin: () => TransactionSteps<R>) =>
      operations.run(() =>
        db.transaction(async (execute) => {
          const steps = begin();
          let step = steps.next();
          while (!step.done) step = steps.next(await runAll(execute, step.value));
          const { writes, result } = step.value;
          // Without writes there is nothing to roll back but locks, which COMMIT releases as well.
          return result(await runAll(execute, writes ?? []));
        }),
      ),
    underFence: port.underFence,
    emitHints: (hints: readonly Hint[]) => port.emitHints(hints),
  };
  return new SqlLimits(limitsPort, postgresLimitsDialect(tables, dialect));
}

async function runAll(execute: ExecuteQuery, statements: readonly SqlText[]): Promise<readonly (readonly SqlRow[])[]> {
  const results: (readonly SqlRow[])[] = [];
  for (let from = 0; from < statements.length; ) {
    let to = from + 1;
    while (statements[to - 1]?.joinsNext && to < statements.length) to += 1;
    results.push(...(await runJoined(execute, statements.slice(from, to))));
    from = to;
  }
  return results;
}

/**
 * Sends independent statements as one, which saves round trips. Unless all of them have the same columns, the rows of reads come back
 * as JSON.
 */
async function runJoined(
  execute: ExecuteQuery,
  statements: readonly SqlText[],
): Promise<readonly (readonly SqlRow[])[]> {
  const [only] = statements;
  if (only !== undefined && statements.length === 1) return [await execute(named(only.text, only.values))];
  const values: unknown[] = [];
  const parts = statements.map(({ text, values: own }, index) => {
    const offset = values.length;
    values.push(...own);
    const numbered = text.replace(/\$(\d+)/g, (_, n: string) => `$${Number(n) + offset}`);
    return isRead(text) ? `q${index} AS MATERIALIZED (${numbered})` : `q${index} AS (${numbered})`;
  });
  const areAlike = statements.slice(0, -1).every(({ isLikeNext }) => isLikeNext === true);
  const selects = statements.flatMap(({ text }, index) =>
    isRead(text)
      ? [`SELECT ${index} AS part, ${areAlike ? `q${index}.*` : `to_json(q${index}) AS row`} FROM q${index}`]
      : [],
  );
  const text = `WITH ${parts.join(", ")} ${selects.length === 0 ? "SELECT 1 WHERE false" : selects.join(" UNION ALL ")}`;
  const rows = await execute(named(text, values));
  const results: SqlRow[][] = statements.map(() => []);
  for (const row of rows) results[Number(row.part)]?.push(areAlike ? row : (row.row as SqlRow));
  return results;
}

const isRead = (text: string): boolean => /^\s*SELECT\b/.test(text);

/** A statement is prepared and planned once per connection. There are few texts, because values are bound as arrays. */
const maxNames = 500;
const nameOf = new Map<string, string>();

function named(text: string, values: readonly unknown[]): PgQuery {
  let name = nameOf.get(text);
  if (name === undefined) {
    if (nameOf.size >= maxNames) return { text, values };
    name = `pawl_limits_${createHash("sha256").update(text).digest("hex").slice(0, 24)}`;
    nameOf.set(text, name);
  }
  return { name, text, values };
}

export const postgresLimitsDialect = (tables: Tables, base: Dialect): LimitsDialect => ({
  base,
  // FOR KEY SHARE conflicts with reaping, but not with the worker's own heartbeats; see `fenceClause`.
  selectFence: ({ workerId, epoch }, bind) =>
    `SELECT 1 AS one FROM ${tables.workers} WHERE id = ${bind(workerId)}::text AND epoch = ${bind(epoch)}::bigint AND live ${serverConditionMarker} FOR KEY SHARE`,
  lock: {
    wait: "FOR UPDATE",
    skip: "FOR UPDATE SKIP LOCKED",
    share: "FOR SHARE",
    skipForUpdate: "FOR NO KEY UPDATE SKIP LOCKED",
  },
  isOneOf: (column, texts, bind) => `${column} = ANY (${bind(textArray(texts))}::text[])`,
  isNoneOf: (column, texts, bind) => `${column} NOT IN (SELECT unnest(${bind(textArray(texts))}::text[]))`,
  isOneOfSlots: (slots, bind) => {
    const ids = () => `${bind(plainArray(slots.map(({ runId }) => runId)))}::uuid[]`;
    const texts = (column: "lane" | "node") => `${bind(textArray(slots.map((slot) => slot[column])))}::text[]`;
    return `run_id = ANY (${ids()}) AND (run_id, lane, node) IN (SELECT * FROM unnest(${ids()}, ${texts("lane")}, ${texts("node")}))`;
  },
  forEach: (columns, rows, select) => {
    if (rows.length === 0) return [];
    const { text, values } = buildStatement(base, (bind) => {
      const names = columns.map(([name]) => name).join(", ");
      const relation = `unnest(${arraysOf(columns, rows, bind)}) WITH ORDINALITY r(${names}, n)`;
      return `SELECT q.* FROM ${relation}, LATERAL (${select((name) => `r.${name}`, bind)}) q`;
    });
    return [{ text, values }];
  },
  insertOrLock: (table, columns, rows, key) =>
    buildStatement(base, (bind) => {
      const names = columns.map(([name]) => name).join(", ");
      const firstKey = key.split(",")[0];
      return `INSERT INTO ${table} AS x (${names}) SELECT * FROM unnest(${arraysOf(columns, rows, bind)}) ON CONFLICT (${key}) DO UPDATE SET ${firstKey} = x.${firstKey}`;
    }),
  updateEach: (table, key, columns, rows, assignments) =>
    buildStatement(base, (bind) => {
      const names = columns.map(([name]) => name).join(", ");
      const [keyColumn = "", keyType = "text"] = columns[0] ?? [];
      const isKey = `x.${key} = ANY (${bind(arrayOf(keyType, rows, 0))}::${sqlTypes[keyType]}[])`;
      return `UPDATE ${base.table(table)} x SET ${assignments((name) => `v.${name}`).join(", ")}
        FROM unnest(${arraysOf(columns, rows, bind)}) v(${names}) WHERE x.${key} = v.${keyColumn} AND ${isKey}`;
    }),
  unblockFirst: (lane, bind) =>
    `UPDATE ${tables.classes} SET blocked_on = '' WHERE id = (SELECT c.id FROM ${tables.classes} c WHERE ${isBlockedOn(bind(lane))} ORDER BY c.turn LIMIT 1) RETURNING id`,
  tasksByRoute: `${tables.tasks} t`,
  tasksByKey: `${tables.tasks} t`,
  whenReady: "",
  whenParked: "",
  whenOwned: ", fresh = false",
});

const sqlTypes: Readonly<Record<ColumnType, string>> = { text: "text", id: "uuid", number: "int8" };

const arrayOf = (type: ColumnType, rows: readonly (readonly unknown[])[], column: number) => {
  const values = rows.map((row) => row[column] as string | null);
  return type === "text" ? textArray(values) : plainArray(values);
};

const arraysOf = (
  columns: readonly Column[],
  rows: readonly (readonly unknown[])[],
  bind: (value: unknown) => string,
) => columns.map(([, type], index) => `${bind(arrayOf(type, rows, index))}::${sqlTypes[type]}[]`).join(", ");
