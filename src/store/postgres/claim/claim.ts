/** The claim: takes due tasks, with all that is needed to run them, in one statement. */

import type { Runtime } from "../../../runtime/runtime.js";
import type { ClaimedTask, ClaimRequest, ClaimResult, Route, RunRecord } from "../../contract/store.js";
import type { SqlRow } from "../../sql/dialect.js";
import { decodeTags, taskState } from "../../sql/records.js";
import type { SqlClock } from "../clock.js";
import { plainArray, textArray } from "../commit/arrays.js";
import { fenceClause } from "../commit/statement.js";
import type { ExecuteQuery, PgQuery } from "../connection/driver.js";
import type { Tables } from "../tables.js";
import { type ClaimBounds, type ClaimBoundsTracker, slowClaimMs } from "./claim-bounds.js";

const { parked, ready, owned } = taskState;

export class Claimer {
  readonly #tables: Tables;
  readonly #clock: SqlClock;
  readonly #bounds: ClaimBoundsTracker;
  readonly #fullText: string;
  readonly #boundedText: string;
  readonly #runtime: Runtime;

  constructor(tables: Tables, clock: SqlClock, bounds: ClaimBoundsTracker, runtime: Runtime) {
    this.#tables = tables;
    this.#clock = clock;
    this.#bounds = bounds;
    this.#runtime = runtime;
    this.#fullText = buildClaimSql(tables, clock, false);
    this.#boundedText = buildClaimSql(tables, clock, true);
  }

  async claim(execute: ExecuteQuery, request: ClaimRequest): Promise<ClaimResult> {
    const bounds = this.#bounds.boundsFor(request.routes);
    const startedAt = this.#runtime.monotonic();
    const rows = await execute(bounds === null ? this.#fullQuery(request) : this.#boundedQuery(request, bounds));
    const [first] = rows;
    if (first === undefined) return { kind: "fenced" };
    const claimedRows = rows.filter((row) => row.id !== null).sort(byPriorityThenTime);
    const at = Number(first.at);
    const isBelowLimit = claimedRows.length < request.limit;
    const nextDueAt = first.next_due_at === null ? null : Number(first.next_due_at);
    const tasks = claimedRows.map((row) => decodeClaimed(row, request.routes));
    if (bounds === null) {
      const tookMs = this.#runtime.monotonic() - startedAt;
      // A virtual clock cannot say when to come back.
      if (this.#clock.isVirtual) return { kind: "claimed", at, tasks, nextDueAt };
      this.#bounds.recordFullScan(request.routes, {
        tookMs,
        oldestDueAt: isBelowLimit ? at : Math.min(...claimedRows.map((row) => Number(row.due_at))),
        priorities: claimedRows.map((row) => Number(row.priority)),
        deadRows: tookMs < slowClaimMs ? 0 : await this.#countDeadRows(execute),
      });
      return { kind: "claimed", at, tasks, nextDueAt };
    }
    // What lies outside of the bounds is looked for soon, and the caller must come back for it.
    const fullScanAt = at + this.#bounds.msToFullScan(request.routes);
    return {
      kind: "claimed",
      at,
      tasks,
      nextDueAt: isBelowLimit ? Math.min(nextDueAt ?? fullScanAt, fullScanAt) : null,
    };
  }

  /** A slow claim may only mean a busy machine. A diagnosis that fails must not lose the tasks that were claimed. */
  async #countDeadRows(execute: ExecuteQuery): Promise<number> {
    const text = "SELECT n_dead_tup AS n FROM pg_stat_all_tables WHERE relid = $1::regclass";
    const rows = await execute({ text, values: [this.#tables.tasks] }).catch(() => []);
    return Number(rows[0]?.n ?? 0);
  }

  #fullQuery({ fence, routes, limit, limitPerRoute }: ClaimRequest): PgQuery {
    const names = [textArray(routes.map(({ workflow }) => workflow)), textArray(routes.map(({ version }) => version))];
    const values = [...this.#clock.values(), fence.workerId, fence.epoch, ...names, limitPerRoute, limit];
    return { name: "pawl_claim", text: this.#fullText, values };
  }

  #boundedQuery(request: ClaimRequest, { minDueAt, priorities }: ClaimBounds): PgQuery {
    const { text, values = [] } = { ...this.#fullQuery(request), text: this.#boundedText };
    return { name: "pawl_claim_bounded", text, values: [...values, minDueAt, plainArray(priorities)] };
  }
}

const byPriorityThenTime = (a: SqlRow, b: SqlRow) =>
  Number(b.priority) - Number(a.priority) || Number(a.due_at) - Number(b.due_at);

/**
 * Most claimed runs are plain: new, of no hero, nobody's child. For them only what differs from run to run is sent; the
 * route is known by its number, and everything else is in `rest`, which is null then. (Half of the time that Node spends
 * on a claim is spent on taking fields apart.) Route and priority are the task's; a run that was born with others is not
 * plain.
 */
const rareColumns =
  "r.waiting, r.hero_type, r.hero_id, r.start_key, r.tags, r.parent_id, r.parent_node, r.parent_index, " +
  "r.parent_attempt, r.started_at";
const matchesTask = "r.workflow = t.workflow AND r.priority = t.priority AND r.queue = r.workflow";
const isPlain = [matchesTask, ...rareColumns.split(", ").map((column) => `${column} IS NULL`)].join(" AND ");

const claimedColumns = `r.id, t.priority, r.input, r.created_at, t.deliveries, t.pending_messages, c.fresh AS was_fresh, c.due_at, c.route,
    CASE WHEN NOT (${isPlain}) THEN json_build_array(r.workflow, r.priority, r.queue, ${rareColumns}) END AS rest`;

type RareFields = [
  workflow: string,
  priority: number,
  queue: string,
  waiting: string | null,
  heroType: string | null,
  heroId: string | null,
  startKey: string | null,
  tags: string | null,
  parentId: string | null,
  parentNode: string | null,
  parentIndex: number | null,
  parentAttempt: number | null,
  startedAt: number | null,
];

function decodeClaimed(row: SqlRow, routes: readonly Route[]): ClaimedTask {
  const { workflow: route, version } = routes[Number(row.route) - 1] as Route;
  const plainFields: RareFields = [
    route,
    Number(row.priority),
    route,
    null,
    null,
    null,
    null,
    null,
    null,
    null,
    null,
    null,
    null,
  ];
  const [
    workflow,
    priority,
    queue,
    waiting,
    heroType,
    heroId,
    startKey,
    tags,
    parentId,
    parentNode,
    parentIndex,
    parentAttempt,
    startedAt,
  ] = (row.rest as RareFields | null) ?? plainFields;
  const run: RunRecord = {
    id: row.id as string,
    workflow,
    version,
    queue,
    priority,
    input: row.input as string,
    heroType,
    heroId,
    tags: decodeTags(tags),
    startKey,
    parentId,
    parentNode,
    parentIndex,
    parentAttempt,
    status: "running",
    output: null,
    error: null,
    waiting,
    createdAt: Number(row.created_at),
    startedAt,
    finishedAt: null,
  };
  return {
    run,
    deliveries: Number(row.deliveries),
    pendingMessages: Number(row.pending_messages),
    isFresh: row.was_fresh as boolean,
  };
}

/**
 * Per route the ready ones by priority and time, and the parked ones whose time has come; each from the beginning of its
 * own index, so that what sleeps, is paused or is owned is never read. Rows that another claim has locked are skipped, not
 * waited for. MATERIALIZED: a claim that were run twice would lock more than it returns.
 *
 * The update finds the rows by run id and not by ctid, which would be cheaper: a message that arrived since the snapshot
 * has moved the row, the lock has found the new version, but by its ctid the snapshot would not see it.
 *
 * `bounded`: see claim-bounds.ts. With priorities that are given, one by one, the lower bound is a place in the index.
 */
function buildClaimSql(tables: Tables, clock: SqlClock, isBounded: boolean): string {
  let parameterCount = 0;
  const bind = () => `$${++parameterCount}`;
  const now = clock.now(bind);
  const [workerId, epoch] = [`${bind()}::text`, `${bind()}::bigint`];
  const routes = `unnest(${bind()}::text[], ${bind()}::text[]) WITH ORDINALITY r(workflow, version, route)`;
  const [limitPerRoute, limit] = [`${bind()}::int`, `${bind()}::int`];
  const from = `FROM ${tables.tasks} t WHERE t.workflow = r.workflow AND t.version = r.version`;
  const columns = "t.run_id, t.priority, t.due_at, t.fresh";
  const lock = `LIMIT ${limitPerRoute} FOR UPDATE SKIP LOCKED`;
  const minDueAtCondition = isBounded ? `AND t.due_at >= ${bind()}::bigint` : "";
  const readyTasksSql = `SELECT ${columns} ${from} AND t.state = ${ready} AND f.at IS NOT NULL`;
  const readySelectSql = isBounded
    ? `SELECT q.* FROM unnest(${bind()}::int[]) p(priority), LATERAL (
        ${readyTasksSql} AND t.priority = p.priority ${minDueAtCondition} ORDER BY t.due_at ${lock}) q`
    : `SELECT q.* FROM (${readyTasksSql} ORDER BY t.priority DESC, t.due_at ${lock}) q`;
  return `WITH f AS MATERIALIZED (${fenceClause(tables, now, workerId, epoch)}),
c AS MATERIALIZED (
  SELECT d.*, r.route FROM f, ${routes}, LATERAL (
    SELECT * FROM (
      ${readySelectSql}
      UNION ALL
      SELECT q.* FROM (SELECT ${columns} ${from} AND t.state = ${parked} AND t.due_at <= f.at ${minDueAtCondition} ORDER BY t.due_at ${lock}) q
    ) e ORDER BY e.priority DESC, e.due_at LIMIT ${limitPerRoute}
  ) d ORDER BY d.priority DESC, d.due_at LIMIT ${limit}),
u AS (
  UPDATE ${tables.tasks} t SET state = ${owned}, owner = ${workerId}, epoch = ${epoch}, deliveries = t.deliveries + 1, fresh = false
  FROM c JOIN ${tables.runs} r ON r.id = c.run_id WHERE t.run_id = c.run_id
    AND r.id = ANY (ARRAY(SELECT run_id FROM c)) AND t.run_id = ANY (ARRAY(SELECT run_id FROM c))
  RETURNING ${claimedColumns})
SELECT f.at, CASE WHEN (SELECT count(*) FROM c) < ${limit} THEN (
    SELECT min(n.due_at) FROM f, ${routes}, LATERAL (
      SELECT t.due_at ${from} AND t.state = ${parked} AND t.due_at > f.at ORDER BY t.due_at LIMIT 1) n) END AS next_due_at, u.*
FROM f LEFT JOIN u ON true`;
}
