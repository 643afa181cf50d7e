/**
 * The reads that all SQL stores share. A store provides a way to query and its dialect. Arguments are bound wherever
 * possible, so that the texts of statements vary little and drivers can keep them prepared.
 */

import type {
  CursorRow,
  Fence,
  InboxRow,
  RunFilter,
  RunRecord,
  RunStatus,
  Store,
  StoredEvent,
  TaskRecord,
  WorkerRecord,
  WorkflowRecord,
  WorkflowRegistration,
} from "../contract/store.js";
import { unpackRow } from "../shared/event-rows.js";
import { type Bind, createStatement, type Dialect, type Queryable, type SqlRow } from "./dialect.js";
import {
  decodeEventRow,
  decodeInboxRow,
  decodeRun,
  decodeTask,
  decodeWorker,
  decodeWorkflow,
  runColumns,
  sortByIds,
  taskState,
  taskStateSubquery,
  workflowColumns,
} from "./records.js";
import { hasTag } from "./run-walk.js";

/** Longer lists are split, because databases limit the number of bound values (SQLite 32,766). */
const idsPerQuery = 500;

/** The greatest number that the column can be compared with on every database. */
const maxEventSeq = 2_147_483_647;

type ReadSide = Pick<
  Store,
  | "run"
  | "runsById"
  | "runs"
  | "tasks"
  | "ownedTasks"
  | "ownedWithMessages"
  | "log"
  | "logs"
  | "inbox"
  | "cursors"
  | "workers"
  | "workflow"
  | "registerWorkflows"
>;

export class SqlReads implements ReadSide {
  readonly #db: Queryable;
  readonly #dialect: Dialect;

  constructor(db: Queryable, dialect: Dialect) {
    this.#db = db;
    this.#dialect = dialect;
  }

  async run(id: string): Promise<RunRecord | null> {
    return (await this.runsById([id]))[0] ?? null;
  }

  async runsById(ids: readonly string[]): Promise<readonly RunRecord[]> {
    const rows = await this.#queryByIds(ids, (oneOf) => `${this.#selectRuns()} WHERE ${oneOf("r.id")}`);
    return sortByIds(ids, rows.map(decodeRun), (run) => run.id);
  }

  async runs(filter: RunFilter): Promise<readonly RunRecord[]> {
    if (typeof filter.parentId === "string" && !this.#dialect.isId(filter.parentId)) return [];
    const { bind, values } = createStatement(this.#dialect);
    const conditions = this.#filterConditions(filter, bind);
    const where = conditions.length === 0 ? "" : `WHERE ${conditions.join(" AND ")}`;
    const order = `ORDER BY r.created_at DESC, r.id DESC LIMIT ${bind(filter.limit)}`;
    const rows = await this.#db.query(`${this.#selectRuns()} ${where} ${order}`, values);
    return rows.map(decodeRun);
  }

  #filterConditions(filter: RunFilter, bind: Bind): string[] {
    const conditions: string[] = [];
    const addEquality = (column: string, value: string | undefined) => {
      if (value !== undefined) conditions.push(`${column} = ${bind(value)}`);
    };
    addEquality("r.workflow", filter.workflow);
    if (filter.status === "running") {
      conditions.push(`${this.#taskStateSql()} = ${taskState.owned}`);
    } else if (filter.status !== undefined) {
      conditions.push(`r.status = ${statusNames.has(filter.status) ? `'${filter.status}'` : bind(filter.status)}`);
      conditions.push(`coalesce(${this.#taskStateSql()}, ${taskState.parked}) <> ${taskState.owned}`);
    }
    if (filter.active !== undefined) conditions.push(`r.finished_at IS ${filter.active ? "" : "NOT "}NULL`);
    addEquality("r.hero_type", filter.heroType);
    addEquality("r.hero_id", filter.heroId);
    addEquality("r.start_key", filter.startKey);
    if (filter.parentId === null) conditions.push("r.parent_id IS NULL");
    else addEquality("r.parent_id", filter.parentId);
    if (filter.tag !== undefined) conditions.push(hasTag(this.#dialect, filter.tag, bind));
    if (filter.createdAfter !== undefined) conditions.push(`r.created_at >= ${bind(filter.createdAfter)}`);
    if (filter.createdBefore !== undefined) conditions.push(`r.created_at < ${bind(filter.createdBefore)}`);
    if (filter.after !== undefined) {
      const { createdAt, id } = filter.after;
      // The second condition implies the first, but only the first can become an index range.
      conditions.push(`r.created_at <= ${bind(createdAt)}`);
      conditions.push(`(r.created_at < ${bind(createdAt)} OR r.id < ${bind(id)})`);
    }
    return conditions;
  }

  async tasks(runIds: readonly string[]): Promise<readonly TaskRecord[]> {
    const rows = await this.#queryByIds(runIds, (oneOf) => `${this.#selectTasks()} WHERE ${oneOf("t.run_id")}`);
    return sortByIds(runIds, rows.map(decodeTask), (task) => task.runId);
  }

  /** Reads all open tasks where no index of owned tasks exists, so workers call it only after a lost connection. */
  async ownedTasks({ workerId, epoch }: Fence): Promise<readonly TaskRecord[]> {
    const { bind, values } = createStatement(this.#dialect);
    const isOwned = `t.state = ${taskState.owned} AND t.owner = ${bind(workerId)} AND t.epoch = ${bind(epoch)}`;
    return (await this.#db.query(`${this.#selectTasks()} WHERE ${isOwned}`, values)).map(decodeTask);
  }

  async ownedWithMessages({ workerId, epoch }: Fence): Promise<readonly string[]> {
    const { bind, values } = createStatement(this.#dialect);
    const isOwnedWithMessages = `t.owner = ${bind(workerId)} AND t.pending_messages > 0 AND t.epoch = ${bind(epoch)}`;
    const rows = await this.#db.query(
      `SELECT t.run_id FROM ${this.#dialect.table("tasks")} t WHERE ${isOwnedWithMessages}`,
      values,
    );
    return rows.map((row) => row.run_id as string);
  }

  #selectTasks(): string {
    const columns = "t.run_id, t.workflow, t.state, t.due_at, t.owner, t.epoch, t.deliveries, t.pending_messages";
    return `SELECT ${columns} FROM ${this.#dialect.table("tasks")} t`;
  }

  /**
   * A row may hold several events, and the page may begin inside a row. The row with event number after + 1 is the last
   * row whose seq is not greater than after + 1. Finding that row is one lookup in the primary key; comparing seq +
   * span would read the whole log.
   */
  async log(runId: string, page: { readonly after: number; readonly limit: number }): Promise<readonly StoredEvent[]> {
    if (!this.#dialect.isId(runId)) return [];
    const { bind, values } = createStatement(this.#dialect);
    const eventsTable = this.#dialect.table("events");
    // Without this bound, a page of a log whose rows hold many events each would read as many rows as it has events.
    const lastSeq = Math.min(page.after + page.limit, maxEventSeq);
    const firstSeqSql = `SELECT max(f.seq) FROM ${eventsTable} f WHERE f.run_id = ${bind(runId)} AND f.seq <= ${bind(page.after + 1)}`;
    const rows = await this.#db.query(
      `SELECT ${eventColumns} FROM ${eventsTable} e WHERE e.seq >= coalesce((${firstSeqSql}), 0) AND e.run_id = ${bind(runId)} ` +
        `AND e.seq <= ${bind(lastSeq)} ORDER BY e.seq LIMIT ${bind(page.limit)}`,
      values,
    );
    const storedEvents: StoredEvent[] = [];
    for (const row of rows) unpackRow(decodeEventRow(row), page.after, storedEvents);
    return storedEvents.slice(0, page.limit);
  }

  async logs(runIds: readonly string[]): Promise<ReadonlyMap<string, readonly StoredEvent[]>> {
    const from = `${this.#dialect.table("events")} e`;
    const select = `SELECT e.run_id, ${eventColumns} FROM ${from} WHERE`;
    const rows = await this.#queryByIds(runIds, (oneOf) => `${select} ${oneOf("e.run_id")} ORDER BY e.run_id, e.seq`);
    const logs = new Map<string, StoredEvent[]>();
    for (const row of rows) unpackRow(decodeEventRow(row), 0, getOrCreateList(logs, row.run_id as string));
    return logs;
  }

  async inbox(runIds: readonly string[]): Promise<ReadonlyMap<string, readonly InboxRow[]>> {
    const select = `SELECT i.run_id, i.id, i.kind, i.data, i.at FROM ${this.#dialect.table("inbox")} i WHERE`;
    const rows = await this.#queryByIds(runIds, (oneOf) => `${select} ${oneOf("i.run_id")} ORDER BY i.run_id, i.id`);
    const inboxes = new Map<string, InboxRow[]>();
    for (const row of rows) getOrCreateList(inboxes, row.run_id as string).push(decodeInboxRow(row));
    return inboxes;
  }

  async cursors(runId: string): Promise<readonly CursorRow[]> {
    // "cursor" is a reserved word in MySQL and needs quotes, but not after `c.`.
    const select = `SELECT c.node, c.cursor, c.progress, c.at FROM ${this.#dialect.table("cursors")} c WHERE`;
    const rows = await this.#queryByIds([runId], (oneOf) => `${select} ${oneOf("c.run_id")} ORDER BY c.node`);
    return rows.map((row) => ({
      node: row.node as string,
      cursor: row.cursor as string | null,
      progress: row.progress as string | null,
      at: Number(row.at),
    }));
  }

  async workers(): Promise<readonly WorkerRecord[]> {
    const columns =
      "w.id, w.name, w.host, w.pid, w.port, w.routes, w.lease_ms, w.epoch, w.live, w.started_at, w.heartbeat_at, w.executing, w.loop_lag_ms, w.schedule_set";
    const from = `${this.#dialect.table("workers")} w`;
    const rows = await this.#db.query(`SELECT ${columns} FROM ${from} ORDER BY w.started_at, w.id`, []);
    return rows.map(decodeWorker);
  }

  async workflow(name: string): Promise<WorkflowRecord | null> {
    const { bind, values } = createStatement(this.#dialect);
    const from = `${this.#dialect.table("workflows")} w`;
    const rows = await this.#db.query(`SELECT ${workflowColumns} FROM ${from} WHERE w.name = ${bind(name)}`, values);
    return rows[0] === undefined ? null : decodeWorkflow(rows[0]);
  }

  /**
   * Sends one statement per workflow, in the order of names, so that processes that register the same workflows at once
   * when they start cannot deadlock.
   */
  async registerWorkflows(workflows: readonly WorkflowRegistration[]): Promise<void> {
    const table = this.#dialect.table("workflows");
    for (const { name, queue, version, signature, graph } of workflows.toSorted(byName)) {
      const { bind, values } = createStatement(this.#dialect);
      const placeholders = [name, queue ?? name, version ?? "", signature, graph].map(bind).join(", ");
      const insert = `INSERT INTO ${table} (name, queue, version, signature, graph, created_at)`;
      const columnValues = Object.entries({ queue, version, signature, graph });
      const valuesClause = `VALUES (${placeholders}, ${this.#dialect.now(bind)})`;
      const updates = columnValues.map(([column, value]) => `${column} = coalesce(${bind(value)}, ${table}.${column})`);
      await this.#db.query(
        `${insert} ${valuesClause} ${this.#dialect.onDuplicateUpdate("name")} ${updates.join(", ")}`,
        values,
      );
    }
  }

  #selectRuns(): string {
    const { table } = this.#dialect;
    return `SELECT ${runColumns(table("tasks"))} FROM ${table("runs")} r`;
  }

  #taskStateSql(): string {
    return taskStateSubquery(this.#dialect.table("tasks"));
  }

  async #queryByIds(
    ids: readonly string[],
    buildSql: (oneOf: (column: string) => string) => string,
  ): Promise<readonly SqlRow[]> {
    const validIds = ids.filter((id) => this.#dialect.isId(id));
    const query = (chunk: readonly string[]) => {
      const { bind, values } = createStatement(this.#dialect);
      return this.#db.query(
        buildSql((column) => this.#dialect.oneOf(column, chunk, bind)),
        values,
      );
    };
    if (validIds.length === 0) return [];
    if (validIds.length <= idsPerQuery) return query(validIds);
    const rows: SqlRow[] = [];
    for (let from = 0; from < validIds.length; from += idsPerQuery) {
      for (const row of await query(validIds.slice(from, from + idsPerQuery))) rows.push(row);
    }
    return rows;
  }
}

/** Statuses are written into the SQL, not bound: a partial index is used only for a value that the planner can see. */
const statusNames: ReadonlySet<string> = new Set<RunStatus>([
  "pending",
  "waiting",
  "paused",
  "completed",
  "failed",
  "canceled",
]);

const eventColumns = "e.seq, e.span, e.type, e.node, e.attempt, e.outcome, e.data, e.at";

const byName = (a: WorkflowRegistration, b: WorkflowRegistration) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0);

function getOrCreateList<T>(lists: Map<string, T[]>, key: string): T[] {
  let list = lists.get(key);
  if (list === undefined) {
    list = [];
    lists.set(key, list);
  }
  return list;
}
