/** PostgreSQL's dialect for the shared SQL. */
import type { Dialect } from "../sql/dialect.js";
import { realNow } from "./clock.js";
import { plainArray } from "./commit/arrays.js";
import { isRunId } from "./ids.js";
import { postgresSizes } from "./size.js";
import type { Tables } from "./tables.js";

export const createPostgresDialect = (tables: Tables, virtualClock: (() => number) | undefined): Dialect => ({
  placeholder: (n) => `$${n}`,
  table: (name) => tables[name],
  oneOf: (column, ids, bind) => `${column} = ANY (${bind(plainArray(ids))}::uuid[])`,
  isId: isRunId,
  idAsText: (column) => `${column}::text`,
  contains: (column, placeholder) => `strpos(${column}, ${placeholder}) > 0`,
  now: (bind) => (virtualClock === undefined ? realNow : `${bind(Math.floor(virtualClock()))}::bigint`),
  onDuplicateUpdate: (key) => `ON CONFLICT (${key}) DO UPDATE SET`,
  insertedValue: (column) => `excluded.${column}`,
  isParked: "t.state = 0 AND t.due_at IS NOT NULL",
  isBefore: ([createdAt, id], position, bind) =>
    `(${createdAt}, ${id}) < (${bind(position.createdAt)}::bigint, ${bind(position.id)}::uuid)`,
  forceRunIndex: () => "",
  readyRank: { column: "t.priority", order: "DESC", after: "<" },
  deleteOrder: () => "",
  forUpdate: "FOR UPDATE",
  sizes: postgresSizes(tables),
});
