// Several rounds of the same rows become one row, with each figure's median and spread.

import { summary } from "../statistics.mjs";

/** `names` are the names of figures; figures that the rows do not have are left out. */
export function summarise(rows, names) {
  const known = names.filter((name) => rows[0][name] !== undefined);
  return Object.fromEntries(
    known.map((name) => {
      const values = rows.map((row) => row[name]);
      return [name, { ...summary(values), values }];
    }),
  );
}
