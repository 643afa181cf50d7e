/** The maintenance that all SQL stores share. A store provides a `MaintenancePort` and its dialect. */

import type {
  AgePosition,
  ChildKey,
  ChildRun,
  Maintenance,
  PausedQueue,
  RootRun,
  RootRunsPage,
  RouteBacklog,
  RunSample,
  WaitingParent,
  WorkerRoutes,
} from "../contract/maintenance.js";
import type { DatabaseSize } from "../contract/size.js";
import type { Hint, RunStatus, WorkflowRecord } from "../contract/store.js";
import { SqlAudit } from "./audit.js";
import { SqlBacklog } from "./backlog.js";
import { type Bind, createStatement, type Dialect, type Queryable, type SqlRow } from "./dialect.js";
import { deletesOfGathered } from "./gatherings.js";
import { SqlQuestions } from "./questions.js";
import { decodeWorkflow, isOwned, numberOrNull, openTaskStateSql, taskState, workflowColumns } from "./records.js";
import { readSize } from "./size.js";
import { SqlStartDeadlines } from "./start-deadlines.js";

export interface WriteStatement {
  readonly text: string;
  readonly values: readonly unknown[];
}

export interface MaintenancePort extends Queryable {
  /** Executes the statements in order, in one transaction. */
  writeAtomically(writes: readonly WriteStatement[]): Promise<void>;
  /** Sends hints to this process, and to other processes if the database can notify. */
  emitHints(hints: readonly Hint[]): void;
}

/** The maximum number of runs that are deleted in one transaction. */
const runsPerTransaction = 500;

export class SqlMaintenance implements Maintenance {
  readonly audit: SqlAudit;
  readonly questions: SqlQuestions;
  readonly startDeadlines: SqlStartDeadlines;
  readonly #db: MaintenancePort;
  readonly #dialect: Dialect;

  constructor(db: MaintenancePort, dialect: Dialect) {
    this.#db = db;
    this.#dialect = dialect;
    this.audit = new SqlAudit(db, dialect);
    this.questions = new SqlQuestions(db, dialect);
    this.startDeadlines = new SqlStartDeadlines(db, dialect);
  }

  async rootRuns({ createdBefore, workflow, after, limit }: RootRunsPage): Promise<readonly RootRun[]> {
    const rows = await this.#query((bind, table) => {
      const conditions = [`r.created_at < ${bind(createdBefore)}`];
      if (workflow !== null) conditions.push(`r.workflow = ${bind(workflow)}`);
      if (after !== null) conditions.push(isAfterPosition(after, bind));
      return `SELECT r.id, r.created_at, r.finished_at, r.status FROM ${table("runs")} r
        WHERE ${conditions.join(" AND ")} AND r.parent_id IS NULL ORDER BY r.created_at, r.id LIMIT ${bind(limit)}`;
    });
    return rows.map((row) => ({
      id: row.id as string,
      createdAt: Number(row.created_at),
      finishedAt: numberOrNull(row.finished_at),
      hasFailed: hasFailed(row),
    }));
  }

  /** Orders by parent first: with an order by id alone, PostgreSQL might scan all runs. */
  async childRuns(
    parentIds: readonly string[],
    { after, limit }: { readonly after: ChildKey | null; readonly limit: number },
  ): Promise<readonly ChildRun[]> {
    const validParentIds = parentIds.filter((id) => this.#dialect.isId(id) && (after === null || id >= after.parentId));
    if (validParentIds.length === 0) return [];
    const rows = await this.#query((bind, table) => {
      const conditions = [this.#dialect.oneOf("r.parent_id", validParentIds, bind)];
      if (after !== null) conditions.push(`(r.parent_id > ${bind(after.parentId)} OR r.id > ${bind(after.id)})`);
      return `SELECT r.parent_id, r.id, r.finished_at, r.status FROM ${table("runs")} r
        WHERE ${conditions.join(" AND ")} ORDER BY r.parent_id, r.id LIMIT ${bind(limit)}`;
    });
    return rows.map((row) => ({
      parentId: row.parent_id as string,
      id: row.id as string,
      finishedAt: numberOrNull(row.finished_at),
      hasFailed: hasFailed(row),
    }));
  }

  async deleteRuns(runIds: readonly string[]): Promise<number> {
    const validIds = runIds.filter((id) => this.#dialect.isId(id));
    let deletedCount = 0;
    for (let from = 0; from < validIds.length; from += runsPerTransaction) {
      deletedCount += await this.#deleteEndedRuns(validIds.slice(from, from + runsPerTransaction));
    }
    return deletedCount;
  }

  /** An ended run never changes, so reading and deleting need not be one transaction. */
  async #deleteEndedRuns(runIds: readonly string[]): Promise<number> {
    const rows = await this.#query((bind, table) => {
      const isRequested = this.#dialect.oneOf("r.id", runIds, bind);
      return `SELECT r.id, r.schedule FROM ${table("runs")} r WHERE ${isRequested} AND r.finished_at IS NOT NULL ORDER BY r.id`;
    });
    const endedIds = rows.map((row) => row.id as string);
    if (endedIds.length === 0) return 0;
    const keys = {
      events: "run_id, seq",
      inbox: "run_id, id",
      cursors: "run_id, node",
      start_deadlines: "run_id",
      runs: "id",
    } as const;
    const deletes = (Object.keys(keys) as (keyof typeof keys)[]).map((name): WriteStatement => {
      const { bind, values } = createStatement(this.#dialect);
      const isEnded = this.#dialect.oneOf(name === "runs" ? "id" : "run_id", endedIds, bind);
      return {
        text: `DELETE FROM ${this.#dialect.table(name)} WHERE ${isEnded} ${this.#dialect.deleteOrder(keys[name])}`,
        values,
      };
    });
    await this.#db.writeAtomically([...deletesOfGathered(rows, this.#dialect), ...deletes]);
    return endedIds.length;
  }

  async expiredWorkers({ lastHeartbeatBefore }: { readonly lastHeartbeatBefore: number }): Promise<readonly string[]> {
    const rows = await this.#query(
      (bind, table) =>
        `SELECT w.id FROM ${table("workers")} w WHERE w.live AND w.heartbeat_at < ${bind(lastHeartbeatBefore)} ORDER BY w.id`,
    );
    return rows.map((row) => row.id as string);
  }

  /** Looks for owned tasks only if a worker could be deleted, because that query may read all open tasks. */
  async deleteDeadWorkers({
    lastHeartbeatBefore,
  }: {
    readonly lastHeartbeatBefore: number;
  }): Promise<readonly string[]> {
    const rows = await this.#query(
      (bind, table) =>
        `SELECT w.id, w.name FROM ${table("workers")} w WHERE NOT w.live AND w.heartbeat_at < ${bind(lastHeartbeatBefore)} ORDER BY w.id`,
    );
    if (rows.length === 0) return [];
    const owners = await this.#query((bind, table) => {
      const workerIds = rows.map((row) => bind(row.id)).join(", ");
      return `SELECT DISTINCT t.owner FROM ${table("tasks")} t WHERE t.owner IN (${workerIds})`;
    });
    const ownerIds = new Set(owners.map((row) => row.owner));
    const idleWorkers = rows.filter((row) => !ownerIds.has(row.id));
    if (idleWorkers.length === 0) return [];
    await this.#query((bind, table) => {
      const ids = idleWorkers.map((row) => bind(row.id)).join(", ");
      return `DELETE FROM ${table("workers")} WHERE id IN (${ids}) AND NOT live AND heartbeat_at < ${bind(lastHeartbeatBefore)}`;
    });
    return idleWorkers.map((row) => row.name as string);
  }

  async workerRoutes(): Promise<readonly WorkerRoutes[]> {
    const rows = await this.#query(
      (_, table) => `SELECT w.routes, w.live, w.heartbeat_at, w.lease_ms FROM ${table("workers")} w`,
    );
    return rows.map((row) => ({
      routes: JSON.parse(row.routes as string) as WorkerRoutes["routes"],
      live: Number(row.live) === 1,
      heartbeatAt: Number(row.heartbeat_at),
      leaseMs: Number(row.lease_ms),
    }));
  }

  /** Sends two queries, because ready tasks and overdue parked tasks are in different indexes. */
  async parentsWaitingFor(routes: readonly string[], limit: number): Promise<readonly WaitingParent[]> {
    if (routes.length === 0) return [];
    const readyRows = await this.#findWaitingParents(routes, limit, () => `t.state = ${taskState.ready}`);
    const overdueRows = await this.#findWaitingParents(
      routes,
      limit,
      (bind) => `${this.#dialect.isParked} AND t.due_at <= ${this.#dialect.now(bind)}`,
    );
    const parentsByKey = new Map<string, WaitingParent>();
    for (const row of [...readyRows, ...overdueRows]) {
      const parent = { parentId: row.parent_id as string, route: row.route as string };
      parentsByKey.set(`${parent.parentId} ${parent.route}`, parent);
    }
    return [...parentsByKey.keys()]
      .sort()
      .slice(0, limit)
      .map((key) => parentsByKey.get(key) as WaitingParent);
  }

  #findWaitingParents(
    routes: readonly string[],
    limit: number,
    isDue: (bind: Bind) => string,
  ): Promise<readonly SqlRow[]> {
    return this.#query((bind, table) => {
      const isRequestedRoute = `t.workflow IN (${routes.map(bind).join(", ")})`;
      return `SELECT DISTINCT r.parent_id, t.workflow AS route FROM ${table("tasks")} t
        JOIN ${table("runs")} r ON r.id = t.run_id
        JOIN ${table("runs")} p ON p.id = r.parent_id
        JOIN ${table("tasks")} pt ON pt.run_id = r.parent_id
        WHERE ${isRequestedRoute} AND ${isDue(bind)} AND p.status <> 'paused' AND pt.pending_messages = 0
        ORDER BY r.parent_id, t.workflow LIMIT ${bind(limit)}`;
    });
  }

  async runSamples(
    workflow: string,
    { since, limit }: { readonly since: number; readonly limit: number },
  ): Promise<readonly RunSample[]> {
    const rows = await this.#query((bind, table) => {
      const from = `${table("runs")} r ${this.#dialect.forceRunIndex("newest_of_workflow")}`;
      return `SELECT r.status, ${openTaskStateSql(table("tasks"))} AS task_state, r.created_at, r.started_at, r.finished_at FROM ${from}
        WHERE r.workflow = ${bind(workflow)} AND r.created_at >= ${bind(since)}
        ORDER BY r.created_at DESC, r.id DESC LIMIT ${bind(limit)}`;
    });
    return rows.map((row) => ({
      status: isOwned(row.task_state) ? "running" : (row.status as RunStatus),
      createdAt: Number(row.created_at),
      startedAt: numberOrNull(row.started_at),
      finishedAt: numberOrNull(row.finished_at),
    }));
  }

  backlog({ cap }: { readonly cap: number }): Promise<readonly RouteBacklog[]> {
    return new SqlBacklog(this.#db, this.#dialect, cap).read();
  }

  async ownedTaskCounts(workerIds: readonly string[]): Promise<ReadonlyMap<string, number>> {
    if (workerIds.length === 0) return new Map();
    const rows = await this.#query((bind, table) => {
      const isOwner = `t.owner IN (${workerIds.map(bind).join(", ")})`;
      return `SELECT t.owner, count(*) AS owned_count FROM ${table("tasks")} t WHERE ${isOwner} GROUP BY t.owner`;
    });
    return new Map(rows.map((row) => [row.owner as string, Number(row.owned_count)]));
  }

  async workflows(): Promise<readonly WorkflowRecord[]> {
    const rows = await this.#query(
      (_, table) => `SELECT ${workflowColumns} FROM ${table("workflows")} w ORDER BY w.name`,
    );
    return rows.map(decodeWorkflow);
  }

  size({ cap }: { readonly cap: number }): Promise<DatabaseSize> {
    return readSize(this.#db, this.#dialect, cap);
  }

  async pausedQueues(): Promise<readonly PausedQueue[]> {
    const rows = await this.#query(
      (_, table) => `SELECT q.name, q.paused_at, q.reason, q.paused_by FROM ${table("queues")} q ORDER BY q.name`,
    );
    return rows.map((row) => ({
      name: row.name as string,
      pausedAt: Number(row.paused_at),
      reason: row.reason as string | null,
      by: row.paused_by as string | null,
    }));
  }

  async pauseQueue(name: string, reason: string | null, by: string | null): Promise<void> {
    await this.#query((bind, table) => {
      const rowValues = `${bind(name)}, ${this.#dialect.now(bind)}, ${bind(reason)}, ${bind(by)}`;
      const insert = `INSERT INTO ${table("queues")} (name, paused_at, reason, paused_by) VALUES (${rowValues})`;
      return `${insert} ${this.#dialect.onDuplicateUpdate("name")} reason = ${bind(reason)}, paused_by = ${bind(by)}`;
    });
    this.#db.emitHints([{ kind: "anything" }]);
  }

  async resumeQueue(name: string): Promise<void> {
    await this.#query((bind, table) => `DELETE FROM ${table("queues")} WHERE name = ${bind(name)}`);
    this.#db.emitHints([{ kind: "anything" }]);
  }

  #query(buildSql: (bind: Bind, table: Dialect["table"]) => string): Promise<readonly SqlRow[]> {
    const { bind, values } = createStatement(this.#dialect);
    return this.#db.query(
      buildSql(bind, (name) => this.#dialect.table(name)),
      values,
    );
  }
}

const hasFailed = (row: SqlRow): boolean => row.status === "failed";

/** The second condition implies the first comparison, but only the first can become an index range. */
const isAfterPosition = ({ createdAt, id }: AgePosition, bind: Bind) =>
  `r.created_at >= ${bind(createdAt)} AND (r.created_at > ${bind(createdAt)} OR r.id > ${bind(id)})`;
