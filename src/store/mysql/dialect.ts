/** MySQL's side of the shared reads. */
import type { Dialect } from "../sql/dialect.js";
import { type Clock, nowOf } from "./clock.js";

export const mysqlDialect = (clock: Clock): Dialect => ({
  placeholder: () => "?",
  table: (name) => `pawl_${name}`,
  oneOf: (column, ids, bind) =>
    ids.length === 1 ? `${column} = ${bind(ids[0])}` : `${column} IN (${ids.map(bind).join(",")})`,
  isId: () => true,
  contains: (column, placeholder) => `LOCATE(CAST(${placeholder} AS BINARY), ${column}) > 0`,
  now: () => nowOf(clock),
  onDuplicate: () => "ON DUPLICATE KEY UPDATE",
});
