// MariaDB and MySQL count the rows that are read and the pages that are requested, in the whole server. The minimum of
// several claims is used, because other work of the server only adds.

import { claimFully } from "./claim-cost.mjs";

export const claims = 12;
const unprepared = 2;

export async function watchClaims({ store, database, request }) {
  const costs = [];
  for (let round = 0; round < claims; round += 1) {
    const before = await counters(database);
    await claimFully(store, request);
    const after = await counters(database);
    if (round >= unprepared) costs.push({ buffers: after.pages - before.pages, rowsRead: after.rows - before.rows });
  }
  // Reading the counters also reads the rows that it returns.
  const [first, second] = [await counters(database), await counters(database)];
  const perRun = (name, asking) => (Math.min(...costs.map((cost) => cost[name])) - asking) / request.limit;
  return {
    buffers: perRun("buffers", second.pages - first.pages),
    rowsRead: perRun("rowsRead", second.rows - first.rows),
  };
}

async function counters(database) {
  const found = await database.query(
    "SHOW GLOBAL STATUS WHERE Variable_name LIKE 'Handler_read%' OR Variable_name = 'Innodb_buffer_pool_read_requests'",
  );
  let [pages, rows] = [0, 0];
  for (const { Variable_name: name, Value: value } of found) {
    if (name.startsWith("Handler_read")) rows += Number(value);
    else pages = Number(value);
  }
  return { pages, rows };
}
