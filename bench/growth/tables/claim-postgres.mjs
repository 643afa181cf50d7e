// PostgreSQL reports the buffers that a statement touched. The store's own claim is intercepted, prepared in a session
// of the benchmark, and executed under EXPLAIN often enough that the server has chosen a generic plan, as in a worker's
// session.

import pg from "pg";
import { median } from "../../statistics.mjs";
import { claimFully } from "./claim-cost.mjs";

const untilSettled = 6;
const counted = 5;
export const claims = 1 + untilSettled + counted;

export async function watchClaims({ store, database, request }) {
  const { text, values } = await overhear(() => claimFully(store, request));
  await database.query(`PREPARE bench_claim AS ${text}`);
  const explain = `EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) EXECUTE bench_claim (${values.map(literal).join(", ")})`;
  const plans = [];
  for (let round = 0; round < untilSettled + counted; round += 1) {
    const [row] = await database.query(explain);
    plans.push(row["QUERY PLAN"][0]);
  }
  await database.query("DEALLOCATE bench_claim");
  const perRun = (figure) => median(plans.slice(untilSettled).map(figure)) / request.limit;
  const buffers = ({ Plan }) => Plan["Shared Hit Blocks"] + Plan["Shared Read Blocks"];
  if (plans.some(({ Plan }) => Plan["Actual Rows"] !== request.limit))
    throw new Error("An explained claim was not full.");
  return { buffers: perRun(buffers), ms: perRun((plan) => plan["Execution Time"]), scans: scansOf(plans.at(-1).Plan) };
}

/** What the store sends while it claims. */
async function overhear(claim) {
  const { query } = pg.Client.prototype;
  let heard;
  pg.Client.prototype.query = function (config, ...rest) {
    if (/FOR UPDATE SKIP LOCKED/.test(config?.text)) heard = config;
    return query.call(this, config, ...rest);
  };
  try {
    await claim();
  } finally {
    pg.Client.prototype.query = query;
  }
  if (heard === undefined) throw new Error("The store's claim was not recognised among its statements.");
  return heard;
}

const literal = (value) => (value === null ? "NULL" : pg.escapeLiteral(String(value)));

/** How each table is read, which would reveal a plan that reads too much. */
function scansOf(plan) {
  const own = plan["Relation Name"] === undefined ? [] : [describe(plan)];
  return [...new Set([...own, ...(plan.Plans ?? []).flatMap(scansOf)])];
}

const describe = (plan) =>
  [plan["Node Type"], plan["Index Name"], `on ${plan["Relation Name"]}`].filter((part) => part !== undefined).join(" ");
