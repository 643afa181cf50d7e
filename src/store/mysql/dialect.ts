/**
 * The expressions in which MySQL differs from other databases, for the queries that all SQL stores share (store/sql).
 */
import type { Dialect } from "../sql/dialect.js";
import { type Clock, nowExpression } from "./clock.js";
import { mysqlSizes } from "./size.js";

export const mysqlDialect = (clock: Clock): Dialect => ({
  placeholder: () => "?",
  table: (name) => `pawl_${name}`,
  oneOf: (column, ids, bind) =>
    ids.length === 1 ? `${column} = ${bind(ids[0])}` : `${column} IN (${ids.map(bind).join(",")})`,
  isId: () => true,
  idAsText: (column) => column,
  contains: (column, placeholder) => `LOCATE(CAST(${placeholder} AS BINARY), ${column}) > 0`,
  now: () => nowExpression(clock),
  onDuplicateUpdate: () => "ON DUPLICATE KEY UPDATE",
  insertedValue: (column) => `VALUES(${column})`,
  isParked: "t.state = 0 AND t.rank_no = 0",
  // A comparison of rows would not become an index range.
  isBefore: ([createdAt, id], position, bind) =>
    `(${createdAt} < ${bind(position.createdAt)} OR (${createdAt} = ${bind(position.createdAt)} AND ${id} < ${bind(position.id)}))`,
  forceRunIndex: (index) => `FORCE INDEX (${index})`,
  readyRank: { column: "t.rank_no", order: "ASC", after: ">" },
  // DELETE accepts no index hint, but with the order of a key and a limit it uses that key.
  deleteOrder: (key) => `ORDER BY ${key} LIMIT 1000000000`,
  forUpdate: "FOR UPDATE",
  sizes: mysqlSizes,
});
