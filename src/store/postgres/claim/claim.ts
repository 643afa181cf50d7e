/** The claim makes a worker the owner of due tasks and reads their runs, in one statement. */

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
      // Bounds need real time: with a virtual clock, the instant of the next full claim cannot be computed.
      if (this.#clock.isVirtual) return { kind: "claimed", at, tasks, nextDueAt };
      this.#bounds.recordFullScan(request.routes, {
        tookMs,
        oldestDueAt: isBelowLimit ? at : Math.min(...claimedRows.map((row) => Number(row.due_at))),
        priorities: claimedRows.map((row) => Number(row.priority)),
        deadRows: tookMs < slowClaimMs ? 0 : await this.#countDeadRows(execute),
      });
      return { kind: "claimed", at, tasks, nextDueAt };
    }
    // The caller must claim again in time for the next full claim, which finds the tasks outside of the bounds.
    const fullScanAt = at + this.#bounds.msToFullScan(request.routes);
    return {
      kind: "claimed",
      at,
      tasks,
      nextDueAt: isBelowLimit ? Math.min(nextDueAt ?? fullScanAt, fullScanAt) : null,
    };
  }

  /**
   * The count shows whether dead rows or a busy machine made a claim slow. Errors are ignored, because the tasks are
   * already claimed and must be returned.
   */
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
 * Most claimed runs are plain: new, without a hero, without a parent. For a plain run only the columns that differ from
 * run to run are sent, the route as its index in the request. The other columns are in `rare_fields`, which is null for
 * a plain run, because parsing fields takes half of the time that Node spends on a claim. A run whose task has another
 * route or priority than the run itself, or whose queue is not named like its workflow, is not plain.
 */
const rareColumns =
  "r.waiting, r.hero_type, r.hero_id, r.start_key, r.tags, r.parent_id, r.parent_node, r.parent_index, " +
  "r.parent_attempt, r.started_at, r.schedule";
const isDerivableFromTask = "r.workflow = t.workflow AND r.priority = t.priority AND r.queue = r.workflow";
const isPlain = [isDerivableFromTask, ...rareColumns.split(", ").map((column) => `${column} IS NULL`)].join(" AND ");

const claimedColumns = `r.id, t.priority, r.input, r.created_at, t.deliveries, t.pending_messages, c.fresh AS is_fresh, c.due_at, c.route,
    CASE WHEN NOT (${isPlain}) THEN json_build_array(r.workflow, r.priority, r.queue, ${rareColumns}) END AS rare_fields`;

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
  schedule: string | null,
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
    schedule,
  ] = (row.rare_fields as RareFields | null) ?? plainFields;
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
    ...(schedule === null ? {} : { schedule }),
  };
  return {
    run,
    route,
    deliveries: Number(row.deliveries),
    pendingMessages: Number(row.pending_messages),
    isFresh: row.is_fresh as boolean,
  };
}

/**
 * For each route, selects ready tasks by priority and due time, and parked tasks that have become due. Each of the two
 * kinds has its own index, which is read from its beginning, so that sleeping, paused and owned tasks are never read.
 * Rows that another claim has locked are skipped, not waited for. The candidates are MATERIALIZED, because evaluating
 * them twice would lock more tasks than are returned.
 *
 * The update finds the rows by run id and not by ctid, which would be cheaper: a message that arrived after the
 * snapshot has created a new version of the row. The lock finds that version, but the snapshot cannot see it by its
 * ctid.
 *
 * For `isBounded` see claim-bounds.ts: the query searches each of the bound priorities separately, because only then is
 * the minimum due time a position in the index.
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
  const readyTasksSql = `SELECT ${columns} ${from} AND t.state = ${ready} AND fence.at IS NOT NULL`;
  const readySelectSql = isBounded
    ? `SELECT q.* FROM unnest(${bind()}::int[]) p(priority), LATERAL (
        ${readyTasksSql} AND t.priority = p.priority ${minDueAtCondition} ORDER BY t.due_at ${lock}) q`
    : `SELECT q.* FROM (${readyTasksSql} ORDER BY t.priority DESC, t.due_at ${lock}) q`;
  return `WITH fence AS MATERIALIZED (${fenceClause(tables, now, workerId, epoch)}),
candidates AS MATERIALIZED (
  SELECT d.*, r.route FROM fence, ${routes}, LATERAL (
    SELECT * FROM (
      ${readySelectSql}
      UNION ALL
      SELECT q.* FROM (SELECT ${columns} ${from} AND t.state = ${parked} AND t.due_at <= fence.at ${minDueAtCondition} ORDER BY t.due_at ${lock}) q
    ) e ORDER BY e.priority DESC, e.due_at LIMIT ${limitPerRoute}
  ) d ORDER BY d.priority DESC, d.due_at LIMIT ${limit}),
claimed AS (
  UPDATE ${tables.tasks} t SET state = ${owned}, owner = ${workerId}, epoch = ${epoch}, deliveries = t.deliveries + 1, fresh = false
  FROM candidates c JOIN ${tables.runs} r ON r.id = c.run_id WHERE t.run_id = c.run_id
    AND r.id = ANY (ARRAY(SELECT run_id FROM candidates)) AND t.run_id = ANY (ARRAY(SELECT run_id FROM candidates))
  RETURNING ${claimedColumns})
SELECT fence.at, CASE WHEN (SELECT count(*) FROM candidates) < ${limit} THEN (
    SELECT min(n.due_at) FROM fence, ${routes}, LATERAL (
      SELECT t.due_at ${from} AND t.state = ${parked} AND t.due_at > fence.at ORDER BY t.due_at LIMIT 1) n) END AS next_due_at, claimed.*
FROM fence LEFT JOIN claimed ON true`;
}
