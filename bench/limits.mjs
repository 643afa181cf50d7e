// What the machine can do at best, in the same minutes: prepared statements for rows like Pawl's, one connection, one
// process.

const counts = { full: { oneRow: 500, hundredRows: 10_000 }, quick: { oneRow: 300, hundredRows: 5_000 } };

/** Rows a second, one and a hundred in a transaction; null for a store that has no such limit. */
export async function measureLimits({ limits }, size) {
  if (limits === null) return null;
  const rates = {};
  for (const [name, count] of Object.entries(counts[size])) {
    const beganAt = performance.now();
    await limits[name](count);
    rates[name] = (1000 * count) / (performance.now() - beganAt);
  }
  return rates;
}

export const limitNames = {
  oneRow: "one-row inserts / s",
  hundredRows: "100-row inserts, rows / s",
  oneUpdate: "one-row updates / s",
};

/** A figure beside the limit of its round: the share of a rate, the multiple of a time. */
export function ratio(value, { limit, as }, limits) {
  if (limit === undefined || limits === null) return undefined;
  return as === "share" ? value / limits[limit] : value / (1000 / limits[limit]);
}
