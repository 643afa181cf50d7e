/** The claim: takes due tasks, with all that is needed to run them, in one statement. */
import { decodeRun, runColumns, taskState } from "../sql/records.js";
import type { Claimed, ClaimRequest, ClaimResult } from "../store.js";
import { textArray } from "./arrays.js";
import type { SqlClock } from "./clock.js";
import type { Run } from "./commit.js";
import { fenceClause } from "./statement.js";
import type { Tables } from "./tables.js";

const { parked, ready, owned } = taskState;

/** The text and how to call it; made once per store. */
export function claimer(tables: Tables, clock: SqlClock): (run: Run, request: ClaimRequest) => Promise<ClaimResult> {
  const text = claimText(tables, clock);
  return async (run, { fence, routes, limit, limitPerRoute }) => {
    const rows = await run({
      name: "pawl_claim",
      text,
      values: [
        ...clock.values(),
        fence.workerId,
        fence.epoch,
        textArray(routes.map(({ workflow }) => workflow)),
        textArray(routes.map(({ version }) => version)),
        limitPerRoute,
        limit,
      ],
    });
    const [first] = rows;
    if (first === undefined) return { kind: "fenced" };
    const nextDueAt = first.next_due_at === null ? null : Number(first.next_due_at);
    const tasks = rows
      .filter((row) => row.id !== null)
      .sort((a, b) => Number(b.priority) - Number(a.priority) || Number(a.due_at) - Number(b.due_at))
      .map(
        (row): Claimed => ({
          run: decodeRun(row),
          deliveries: Number(row.deliveries),
          mail: Number(row.mail),
          fresh: row.was_fresh as boolean,
        }),
      );
    return { kind: "claimed", at: Number(first.at), tasks, nextDueAt };
  };
}

/**
 * Per route the ready ones by priority and time, and the parked ones whose time has come; each from the beginning of its
 * own index, so that what sleeps, is paused or is owned is never read. Rows that another claim has locked are skipped, not
 * waited for. MATERIALIZED: a claim that were run twice would lock more than it returns.
 *
 * The update finds the rows by run id and not by ctid, which would be cheaper: a message that arrived since the snapshot
 * has moved the row, the lock has found the new version, but by its ctid the snapshot would not see it.
 */
function claimText(tables: Tables, clock: SqlClock): string {
  let bound = 0;
  const bind = () => `$${++bound}`;
  const now = clock.now(bind);
  const [workerId, epoch] = [`${bind()}::text`, `${bind()}::bigint`];
  const routes = `unnest(${bind()}::text[], ${bind()}::text[]) r(workflow, version)`;
  const [perRoute, limit] = [`${bind()}::int`, `${bind()}::int`];
  const from = `FROM ${tables.tasks} t WHERE t.workflow = r.workflow AND t.version = r.version`;
  const columns = "t.run_id, t.priority, t.due_at, t.fresh";
  const lock = `LIMIT ${perRoute} FOR UPDATE SKIP LOCKED`;
  return `WITH f AS MATERIALIZED (${fenceClause(tables, now, workerId, epoch)}),
c AS MATERIALIZED (
  SELECT d.* FROM f, ${routes}, LATERAL (
    SELECT * FROM (
      SELECT * FROM (SELECT ${columns} ${from} AND t.state = ${ready} AND f.at IS NOT NULL
        ORDER BY t.priority DESC, t.due_at ${lock}) a
      UNION ALL
      SELECT * FROM (SELECT ${columns} ${from} AND t.state = ${parked} AND t.due_at <= f.at ORDER BY t.due_at ${lock}) b
    ) e ORDER BY e.priority DESC, e.due_at LIMIT ${perRoute}
  ) d ORDER BY d.priority DESC, d.due_at LIMIT ${limit}),
u AS (
  UPDATE ${tables.tasks} t SET state = ${owned}, owner = ${workerId}, epoch = ${epoch}, deliveries = t.deliveries + 1, fresh = false
  FROM c JOIN ${tables.runs} r ON r.id = c.run_id WHERE t.run_id = c.run_id
  RETURNING ${runColumns}, t.deliveries, t.mail, c.fresh AS was_fresh, c.due_at)
SELECT f.at, CASE WHEN (SELECT count(*) FROM c) < ${limit} THEN (
    SELECT min(n.due_at) FROM f, ${routes}, LATERAL (
      SELECT t.due_at ${from} AND t.state = ${parked} AND t.due_at > f.at ORDER BY t.due_at LIMIT 1) n) END AS next_due_at, u.*
FROM f LEFT JOIN u ON true`;
}
