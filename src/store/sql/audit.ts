/** The audit that all SQL stores share. Each page is one statement, so that all its rows are read at one instant. */
import type { Audit, AuditedRun, AuditedTask, AuditPage, OrphanTable } from "../contract/audit.js";
import { type Bind, createStatement, type Dialect, type Queryable, type SqlRow } from "./dialect.js";
import { decodeDueAt, decodeRoute, numberOrNull, sortByIds, taskStateNames } from "./records.js";

/** Longer lists are split, because databases limit the number of bound values. */
const idsPerQuery = 500;

export class SqlAudit implements Audit {
  readonly #db: Queryable;
  readonly #dialect: Dialect;

  constructor(db: Queryable, dialect: Dialect) {
    this.#db = db;
    this.#dialect = dialect;
  }

  async runs({ after, limit }: AuditPage): Promise<readonly AuditedRun[]> {
    const rows = await this.#query((bind) => {
      const where = after === null ? "" : `WHERE r.id > ${bind(after)}`;
      return `${this.#select()} ${where} ORDER BY r.id LIMIT ${bind(limit)}`;
    });
    return rows.map(decodeAuditedRun);
  }

  async runsById(ids: readonly string[]): Promise<readonly AuditedRun[]> {
    const validIds = ids.filter((id) => this.#dialect.isId(id));
    const auditedRuns: AuditedRun[] = [];
    for (let from = 0; from < validIds.length; from += idsPerQuery) {
      const chunk = validIds.slice(from, from + idsPerQuery);
      const rows = await this.#query((bind) => `${this.#select()} WHERE ${this.#dialect.oneOf("r.id", chunk, bind)}`);
      auditedRuns.push(...sortByIds(chunk, rows.map(decodeAuditedRun), (run) => run.id));
    }
    return auditedRuns;
  }

  async orphanedRunIds(table: OrphanTable, { after, limit }: AuditPage): Promise<readonly string[]> {
    const [parentTable, parentKey] = table === "inbox" ? (["tasks", "run_id"] as const) : (["runs", "id"] as const);
    const rows = await this.#query((bind) => {
      const afterClause = after === null ? "" : `x.run_id > ${bind(after)} AND`;
      const parentRowSql = `SELECT 1 FROM ${this.#dialect.table(parentTable)} o WHERE o.${parentKey} = x.run_id`;
      return `SELECT DISTINCT x.run_id FROM ${this.#dialect.table(table)} x
        WHERE ${afterClause} NOT EXISTS (${parentRowSql}) ORDER BY x.run_id LIMIT ${bind(limit)}`;
    });
    return rows.map((row) => row.run_id as string);
  }

  #select(): string {
    const table = (name: Parameters<Dialect["table"]>[0]) => this.#dialect.table(name);
    const fromLog = (expression: string) => `(SELECT ${expression} FROM ${table("events")} e WHERE e.run_id = r.id)`;
    const payloads = ["input", "output", "error", "waiting", "tags"].map((name) => `coalesce(length(r.${name}), 0)`);
    return `SELECT r.id, r.workflow, r.version, r.hero_type, r.hero_id, r.hero_key, r.start_key, r.parent_id, r.parent_node,
        r.parent_index, r.parent_attempt, r.status, r.started_at, r.finished_at, ${payloads.join(" + ")} AS payload_bytes,
        t.run_id AS task_run, t.workflow AS task_route, t.version AS task_version, t.state AS task_state, t.due_at, t.owner,
        t.epoch, t.deliveries, t.pending_messages, (SELECT count(*) FROM ${table("inbox")} i WHERE i.run_id = r.id) AS inbox_rows,
        ${fromLog("coalesce(max(e.seq + e.span - 1), 0)")} AS last_event,
        ${fromLog("coalesce(sum(coalesce(length(e.data), 0) + 100), 0)")} AS log_bytes
      FROM ${table("runs")} r LEFT JOIN ${table("tasks")} t ON t.run_id = r.id`;
  }

  #query(buildSql: (bind: Bind) => string): Promise<readonly SqlRow[]> {
    const { bind, values } = createStatement(this.#dialect);
    return this.#db.query(buildSql(bind), values);
  }
}

const textOrNull = (value: unknown) => value as string | null;

function decodeAuditedRun(row: SqlRow): AuditedRun {
  return {
    id: row.id as string,
    workflow: row.workflow as string,
    version: row.version as string,
    heroType: textOrNull(row.hero_type),
    heroId: textOrNull(row.hero_id),
    heroKey: textOrNull(row.hero_key),
    startKey: textOrNull(row.start_key),
    parentId: textOrNull(row.parent_id),
    parentNode: textOrNull(row.parent_node),
    parentIndex: numberOrNull(row.parent_index),
    parentAttempt: numberOrNull(row.parent_attempt),
    status: row.status as string,
    startedAt: numberOrNull(row.started_at),
    finishedAt: numberOrNull(row.finished_at),
    task: row.task_run === null ? null : decodeTask(row),
    inboxRows: Number(row.inbox_rows),
    lastEventSeq: Number(row.last_event),
    bytes: Number(row.payload_bytes) + Number(row.log_bytes),
  };
}

function decodeTask(row: SqlRow): AuditedTask {
  return {
    ...decodeRoute(row.task_route as string),
    version: row.task_version as string,
    state: taskStateNames[Number(row.task_state)] ?? null,
    dueAt: decodeDueAt(row.due_at),
    owner: textOrNull(row.owner),
    epoch: numberOrNull(row.epoch),
    deliveries: Number(row.deliveries),
    pendingMessages: Number(row.pending_messages),
  };
}
