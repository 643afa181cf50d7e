/** Upkeep of every SQL store, written once: a store hands in a way to query, a way to do several things at once, its dialect. */

import type {
  Age,
  Backlog,
  Child,
  ChildKey,
  Executing,
  PausedQueue,
  Root,
  RootsPage,
  RunSample,
  Upkeep,
  WaitingParent,
  WorkerRoutes,
} from "../contract/maintenance.js";
import type { Hint, RunStatus, WorkflowRecord } from "../contract/store.js";
import { SqlAudit } from "./audit.js";
import { type Bind, type Dialect, type Queryable, type SqlRow, statement } from "./dialect.js";
import { decodeWorkflow, isOwned, numberOrNull, taskState, taskStateOf, workflowColumns } from "./records.js";

export interface Write {
  readonly text: string;
  readonly values: readonly unknown[];
}

export interface UpkeepPort extends Queryable {
  /** All of the statements or none, in their order. */
  atomically(writes: readonly Write[]): Promise<void>;
  /** To this process, and to the others if the database can. */
  tell(hints: readonly Hint[]): void;
}

interface RouteKey {
  readonly route: string;
  readonly version: string;
}

/** So many runs are removed in one transaction at most. */
const runsAtOnce = 500;

export class SqlUpkeep implements Upkeep {
  readonly audit: SqlAudit;
  readonly #db: UpkeepPort;
  readonly #dialect: Dialect;

  constructor(db: UpkeepPort, dialect: Dialect) {
    this.#db = db;
    this.#dialect = dialect;
    this.audit = new SqlAudit(db, dialect);
  }

  async roots({ bornBefore, workflow, after, limit }: RootsPage): Promise<readonly Root[]> {
    const rows = await this.#query((bind, table) => {
      const conditions = [`r.created_at < ${bind(bornBefore)}`];
      if (workflow !== null) conditions.push(`r.workflow = ${bind(workflow)}`);
      if (after !== null) conditions.push(olderFirst(after, bind));
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

  /** In the order of the parents first: in that of the ids alone, PostgreSQL might walk through all runs. */
  async children(
    parentIds: readonly string[],
    { after, limit }: { readonly after: ChildKey | null; readonly limit: number },
  ): Promise<readonly Child[]> {
    const asked = parentIds.filter((id) => this.#dialect.isId(id) && (after === null || id >= after.parentId));
    if (asked.length === 0) return [];
    const rows = await this.#query((bind, table) => {
      const conditions = [this.#dialect.oneOf("r.parent_id", asked, bind)];
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

  async remove(runIds: readonly string[]): Promise<number> {
    const asked = runIds.filter((id) => this.#dialect.isId(id));
    let removed = 0;
    for (let from = 0; from < asked.length; from += runsAtOnce) {
      removed += await this.#remove(asked.slice(from, from + runsAtOnce));
    }
    return removed;
  }

  /** An ended run never changes, so what was found to have ended may be deleted a moment later. */
  async #remove(runIds: readonly string[]): Promise<number> {
    const rows = await this.#query((bind, table) => {
      const isAsked = this.#dialect.oneOf("r.id", runIds, bind);
      return `SELECT r.id FROM ${table("runs")} r WHERE ${isAsked} AND r.finished_at IS NOT NULL ORDER BY r.id`;
    });
    const ended = rows.map((row) => row.id as string);
    if (ended.length === 0) return 0;
    const keys = { events: "run_id, seq", inbox: "run_id, id", cursors: "run_id, node", runs: "id" } as const;
    const deletes = (Object.keys(keys) as (keyof typeof keys)[]).map((name): Write => {
      const { bind, values } = statement(this.#dialect);
      const isEnded = this.#dialect.oneOf(name === "runs" ? "id" : "run_id", ended, bind);
      return {
        text: `DELETE FROM ${this.#dialect.table(name)} WHERE ${isEnded} ${this.#dialect.deletedBy(keys[name])}`,
        values,
      };
    });
    await this.#db.atomically(deletes);
    return ended.length;
  }

  async silentWorkers({ silentSince }: { readonly silentSince: number }): Promise<readonly string[]> {
    const rows = await this.#query(
      (bind, table) =>
        `SELECT w.id FROM ${table("workers")} w WHERE w.live AND w.beat_at < ${bind(silentSince)} ORDER BY w.id`,
    );
    return rows.map((row) => row.id as string);
  }

  /** Whether they own anything is asked only if there are some: it may mean to read all open tasks. */
  async forgetWorkers({ silentSince }: { readonly silentSince: number }): Promise<readonly string[]> {
    const rows = await this.#query(
      (bind, table) =>
        `SELECT w.id, w.name FROM ${table("workers")} w WHERE NOT w.live AND w.beat_at < ${bind(silentSince)} ORDER BY w.id`,
    );
    if (rows.length === 0) return [];
    const owners = await this.#query((bind, table) => {
      const some = rows.map((row) => bind(row.id)).join(", ");
      return `SELECT DISTINCT t.owner FROM ${table("tasks")} t WHERE t.owner IN (${some})`;
    });
    const busy = new Set(owners.map((row) => row.owner));
    const idle = rows.filter((row) => !busy.has(row.id));
    if (idle.length === 0) return [];
    await this.#query((bind, table) => {
      const ids = idle.map((row) => bind(row.id)).join(", ");
      return `DELETE FROM ${table("workers")} WHERE id IN (${ids}) AND NOT live AND beat_at < ${bind(silentSince)}`;
    });
    return idle.map((row) => row.name as string);
  }

  async workerRoutes(): Promise<readonly WorkerRoutes[]> {
    const rows = await this.#query(
      (_, table) => `SELECT w.routes, w.live, w.beat_at, w.lease_ms FROM ${table("workers")} w`,
    );
    return rows.map((row) => ({
      routes: JSON.parse(row.routes as string) as WorkerRoutes["routes"],
      live: Number(row.live) === 1,
      beatAt: Number(row.beat_at),
      leaseMs: Number(row.lease_ms),
    }));
  }

  /** Ready ones and overdue ones are found by an index each. */
  async parentsWaitingFor(routes: readonly string[], limit: number): Promise<readonly WaitingParent[]> {
    if (routes.length === 0) return [];
    const ready = await this.#parents(routes, limit, () => `t.state = ${taskState.ready}`);
    const overdue = await this.#parents(
      routes,
      limit,
      (bind) => `${this.#dialect.isParked} AND t.due_at <= ${this.#dialect.now(bind)}`,
    );
    const found = new Map<string, WaitingParent>();
    for (const row of [...ready, ...overdue]) {
      const parent = { parentId: row.parent_id as string, route: row.route as string };
      found.set(`${parent.parentId} ${parent.route}`, parent);
    }
    return [...found.keys()]
      .sort()
      .slice(0, limit)
      .map((key) => found.get(key) as WaitingParent);
  }

  #parents(routes: readonly string[], limit: number, isDue: (bind: Bind) => string): Promise<readonly SqlRow[]> {
    return this.#query((bind, table) => {
      const isAsked = `t.workflow IN (${routes.map(bind).join(", ")})`;
      return `SELECT DISTINCT r.parent_id, t.workflow AS route FROM ${table("tasks")} t
        JOIN ${table("runs")} r ON r.id = t.run_id
        JOIN ${table("runs")} p ON p.id = r.parent_id
        JOIN ${table("tasks")} pt ON pt.run_id = r.parent_id
        WHERE ${isAsked} AND ${isDue(bind)} AND p.status <> 'paused' AND pt.mail = 0
        ORDER BY r.parent_id, t.workflow LIMIT ${bind(limit)}`;
    });
  }

  async samples(
    workflow: string,
    { since, limit }: { readonly since: number; readonly limit: number },
  ): Promise<readonly RunSample[]> {
    const rows = await this.#query((bind, table) => {
      const state = `CASE WHEN r.finished_at IS NULL THEN ${taskStateOf(table("tasks"))} END`;
      return `SELECT r.status, ${state} AS task_state, r.created_at, r.started_at, r.finished_at FROM ${table("runs")} r
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

  async backlog(): Promise<readonly Backlog[]> {
    const ready = await this.#query(
      (_, table) => `SELECT t.workflow, t.version, count(*) AS due, min(t.due_at) AS oldest FROM ${table("tasks")} t
        WHERE t.state = ${taskState.ready} GROUP BY t.workflow, t.version`,
    );
    const found = ready.map(decodeBacklog);
    for await (const key of this.#routesOfParked()) {
      const overdue = await this.#overdue(key);
      if (overdue !== null) found.push(overdue);
    }
    return merged(found);
  }

  /** From one route to the next, each found by index: the many that sleep between them are not read. */
  async *#routesOfParked(): AsyncGenerator<RouteKey> {
    let last: RouteKey | null = null;
    for (;;) {
      last = (last === null ? null : await this.#nextVersion(last)) ?? (await this.#nextRoute(last));
      if (last === null) return;
      yield last;
    }
  }

  #nextVersion({ route, version }: RouteKey): Promise<RouteKey | null> {
    return this.#firstParked((bind) => `t.workflow = ${bind(route)} AND t.version > ${bind(version)}`);
  }

  #nextRoute(last: RouteKey | null): Promise<RouteKey | null> {
    return this.#firstParked((bind) => `t.workflow > ${bind(last?.route ?? "")}`);
  }

  async #firstParked(condition: (bind: Bind) => string): Promise<RouteKey | null> {
    const [row] = await this.#query(
      (bind, table) => `SELECT t.workflow, t.version FROM ${table("tasks")} t
        WHERE ${this.#dialect.isParked} AND ${condition(bind)} ORDER BY t.workflow, t.version LIMIT 1`,
    );
    return row === undefined ? null : { route: row.workflow as string, version: row.version as string };
  }

  async #overdue({ route, version }: RouteKey): Promise<Backlog | null> {
    const [row] = await this.#query(
      (bind, table) => `SELECT count(*) AS due, min(t.due_at) AS oldest FROM ${table("tasks")} t
        WHERE ${this.#dialect.isParked} AND t.workflow = ${bind(route)} AND t.version = ${bind(version)}
        AND t.due_at <= ${this.#dialect.now(bind)}`,
    );
    return row === undefined || Number(row.due) === 0 ? null : decodeBacklog({ ...row, workflow: route, version });
  }

  async executing(): Promise<readonly Executing[]> {
    const rows = await this.#query(
      (_, table) => `SELECT t.workflow, t.version, count(*) AS owned FROM ${table("tasks")} t
        WHERE t.state = ${taskState.owned} GROUP BY t.workflow, t.version ORDER BY t.workflow, t.version`,
    );
    return rows.map((row) => ({
      route: row.workflow as string,
      version: row.version as string,
      owned: Number(row.owned),
    }));
  }

  async workflows(): Promise<readonly WorkflowRecord[]> {
    const rows = await this.#query(
      (_, table) => `SELECT ${workflowColumns} FROM ${table("workflows")} w ORDER BY w.name`,
    );
    return rows.map(decodeWorkflow);
  }

  async pausedQueues(): Promise<readonly PausedQueue[]> {
    const rows = await this.#query(
      (_, table) => `SELECT q.name, q.paused_at, q.reason FROM ${table("queues")} q ORDER BY q.name`,
    );
    return rows.map((row) => ({
      name: row.name as string,
      pausedAt: Number(row.paused_at),
      reason: row.reason as string | null,
    }));
  }

  async pauseQueue(name: string, reason: string | null): Promise<void> {
    await this.#query((bind, table) => {
      const row = `${bind(name)}, ${this.#dialect.now(bind)}, ${bind(reason)}`;
      const insert = `INSERT INTO ${table("queues")} (name, paused_at, reason) VALUES (${row})`;
      return `${insert} ${this.#dialect.onDuplicate("name")} reason = ${bind(reason)}`;
    });
    this.#db.tell([{ kind: "anything" }]);
  }

  async resumeQueue(name: string): Promise<void> {
    await this.#query((bind, table) => `DELETE FROM ${table("queues")} WHERE name = ${bind(name)}`);
    this.#db.tell([{ kind: "anything" }]);
  }

  #query(text: (bind: Bind, table: Dialect["table"]) => string): Promise<readonly SqlRow[]> {
    const { bind, values } = statement(this.#dialect);
    return this.#db.query(
      text(bind, (name) => this.#dialect.table(name)),
      values,
    );
  }
}

const hasFailed = (row: SqlRow): boolean => row.status === "failed";

/** The first comparison is implied by the others; it is the one that an index range is made of. */
const olderFirst = ({ createdAt, id }: Age, bind: Bind) =>
  `r.created_at >= ${bind(createdAt)} AND (r.created_at > ${bind(createdAt)} OR r.id > ${bind(id)})`;

const decodeBacklog = (row: SqlRow): Backlog => ({
  route: row.workflow as string,
  version: row.version as string,
  due: Number(row.due),
  oldestDueAt: Number(row.oldest),
});

/** What is ready and what is overdue, as one. */
function merged(parts: readonly Backlog[]): readonly Backlog[] {
  const byRoute = new Map<string, Backlog>();
  for (const part of parts) {
    const key = `${part.route}\u0000${part.version}`;
    const other = byRoute.get(key);
    byRoute.set(
      key,
      other === undefined
        ? part
        : { ...part, due: part.due + other.due, oldestDueAt: Math.min(part.oldestDueAt, other.oldestDueAt) },
    );
  }
  return [...byRoute.entries()].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, backlog]) => backlog);
}
