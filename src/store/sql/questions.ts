/** The bounded reads of all SQL stores. Every statement reads at most `cap` entries of one index, or one page. */
import { routeSeparator } from "../../core/naming/route.js";
import type {
  ErrorGroup,
  ErrorGroups,
  FiguresRange,
  MinuteFigures,
  Questions,
  RunPage,
  RunQuery,
  StatusCount,
  StatusCounts,
} from "../contract/questions.js";
import { type Bind, createStatement, type Dialect, type Queryable, type SqlRow } from "./dialect.js";
import { taskState } from "./records.js";
import { queryRuns } from "./run-query.js";

const figureColumns = ["began", "completed", "failed", "canceled", "paused"] as const;

export class SqlQuestions implements Questions {
  readonly #db: Queryable;
  readonly #dialect: Dialect;

  constructor(db: Queryable, dialect: Dialect) {
    this.#db = db;
    this.#dialect = dialect;
  }

  runs(query: RunQuery): Promise<RunPage> {
    return queryRuns(this.#db, this.#dialect, query);
  }

  async statusCounts({ cap }: { readonly cap: number }): Promise<StatusCounts> {
    const counts: StatusCount[] = [];
    const cappedStatuses: StatusCount["status"][] = [];
    for (const status of ["paused", "failed", "canceled"] as const) {
      const rows = await this.#query(
        (bind) =>
          `SELECT x.workflow, count(*) AS run_count FROM (${this.#newestUnsuccessful(status, "r.workflow", cap, bind)}) x
          GROUP BY x.workflow ORDER BY x.workflow`,
      );
      counts.push(...rows.map((row) => toStatusCount(row, status)));
      if (sumOf(rows) >= cap) cappedStatuses.push(status);
    }
    const openRows = await this.#countOpenRuns(cap);
    if (sumOf(openRows) >= cap) cappedStatuses.push("pending", "running", "waiting");
    // Paused runs that no worker owns are among the unsuccessful runs that were counted above.
    // A task without a run, which `verify` reports, has no status.
    for (const row of openRows)
      if (row.status !== "paused" && row.status !== null)
        counts.push(toStatusCount(row, row.status as StatusCount["status"]));
    return { counts: counts.filter(({ count }) => count > 0), cappedStatuses };
  }

  /**
   * A paused run that a worker owns is running; it is counted as both until it is parked. Subqueries look up the runs: a
   * join could be planned to begin with all runs. Few routes are not names of workflows, so most runs are looked up once.
   */
  #countOpenRuns(cap: number): Promise<readonly SqlRow[]> {
    return this.#query((bind) => {
      const { table, contains } = this.#dialect;
      const ofRun = (column: string) => `(SELECT r.${column} FROM ${table("runs")} r WHERE r.id = t.run_id)`;
      const workflow = `CASE WHEN ${contains("t.workflow", bind(routeSeparator))} THEN ${ofRun("workflow")} ELSE t.workflow END`;
      const status = `CASE WHEN t.state = ${taskState.owned} THEN 'running' ELSE ${ofRun("status")} END`;
      const newest = `SELECT t.run_id, t.state, t.workflow FROM ${table("tasks")} t ORDER BY t.run_id DESC LIMIT ${bind(cap)}`;
      return `SELECT y.workflow, y.status, count(*) AS run_count
        FROM (SELECT ${workflow} AS workflow, ${status} AS status FROM (${newest}) t) y
        GROUP BY y.workflow, y.status ORDER BY y.workflow, y.status`;
    });
  }

  async errorGroups({
    cap,
    recentSince,
  }: {
    readonly cap: number;
    readonly recentSince: number;
  }): Promise<ErrorGroups> {
    const groups: ErrorGroup[] = [];
    const cappedStatuses: ErrorGroup["status"][] = [];
    for (const status of ["failed", "paused"] as const) {
      const rows = await this.#query((bind) => {
        const isRecent = `CASE WHEN x.created_at >= ${bind(recentSince)} THEN 1 ELSE 0 END`;
        const columns = `r.workflow, r.fingerprint, r.created_at, ${this.#dialect.idAsText("r.id")} AS id`;
        return `SELECT x.workflow, x.fingerprint, count(*) AS run_count, sum(${isRecent}) AS recent_count,
            min(x.created_at) AS first_at, max(x.created_at) AS last_at, max(x.id) AS latest_id
          FROM (${this.#newestUnsuccessful(status, columns, cap, bind)}) x
          GROUP BY x.workflow, x.fingerprint`;
      });
      if (sumOf(rows) >= cap) cappedStatuses.push(status);
      for (const row of rows) if (row.fingerprint !== null) groups.push(toErrorGroup(row, status));
    }
    return { groups: groups.sort(latestFirst), cappedStatuses };
  }

  /** The status is written into the text: SQLite uses a partial index only for a value that it can see. */
  #newestUnsuccessful(status: StatusCount["status"], columns: string, cap: number, bind: Bind): string {
    const from = `${this.#dialect.table("runs")} r ${this.#dialect.forceRunIndex("unsuccessful")}`;
    return `SELECT ${columns} FROM ${from} WHERE r.unsuccessful = '${status}' ORDER BY r.created_at DESC, r.id DESC LIMIT ${bind(cap)}`;
  }

  async lastEventSeq(runId: string): Promise<number> {
    if (!this.#dialect.isId(runId)) return 0;
    const rows = await this.#query(
      (bind) =>
        `SELECT e.seq + e.span - 1 AS last_seq FROM ${this.#dialect.table("events")} e WHERE e.run_id = ${bind(runId)}
        ORDER BY e.seq DESC LIMIT 1`,
    );
    return Number(rows[0]?.last_seq ?? 0);
  }

  /** The rows are sorted, so that processes that add to the same rows wait for each other and cannot deadlock. */
  async addFigures(figures: readonly MinuteFigures[]): Promise<void> {
    if (figures.length === 0) return;
    const sortedFigures = figures.toSorted((a, b) => a.minute - b.minute || (a.workflow < b.workflow ? -1 : 1));
    const table = this.#dialect.table("figures");
    await this.#query((bind) => {
      const rows = sortedFigures.map((row) => {
        const values = [row.minute, row.workflow, ...figureColumns.map((column) => row[column])];
        return `(${values.map(bind).join(", ")})`;
      });
      const insert = `INSERT INTO ${table} (minute, workflow, ${figureColumns.join(", ")}) VALUES ${rows.join(", ")}`;
      const additions = figureColumns.map(
        (column) => `${column} = ${table}.${column} + ${this.#dialect.insertedValue(column)}`,
      );
      return `${insert} ${this.#dialect.onDuplicateUpdate("minute, workflow")} ${additions.join(", ")}`;
    });
  }

  async figures({ from, to, bucketMinutes = 1 }: FiguresRange): Promise<readonly MinuteFigures[]> {
    // A number of the program, written into the statement: as a parameter, PostgreSQL would not take the expressions for equal.
    const bucket = `f.minute - f.minute % ${Math.trunc(bucketMinutes)}`;
    const isSummed = bucketMinutes !== 1;
    const columns = figureColumns.map((column) => (isSummed ? `SUM(f.${column}) AS ${column}` : `f.${column}`));
    const rows = await this.#query(
      (bind) =>
        `SELECT ${isSummed ? bucket : "f.minute"} AS bucket, f.workflow, ${columns.join(", ")}
        FROM ${this.#dialect.table("figures")} f WHERE f.minute >= ${bind(from)} AND f.minute <= ${bind(to)}
        ${isSummed ? `GROUP BY ${bucket}, f.workflow` : ""} ORDER BY bucket, f.workflow`,
    );
    return rows.map((row) => ({
      minute: Number(row.bucket),
      workflow: row.workflow as string,
      began: Number(row.began),
      completed: Number(row.completed),
      failed: Number(row.failed),
      canceled: Number(row.canceled),
      paused: Number(row.paused),
    }));
  }

  async deleteFigures({ before }: { readonly before: number }): Promise<void> {
    await this.#query((bind) => `DELETE FROM ${this.#dialect.table("figures")} WHERE minute < ${bind(before)}`);
  }

  #query(buildSql: (bind: Bind) => string): Promise<readonly SqlRow[]> {
    const { bind, values } = createStatement(this.#dialect);
    return this.#db.query(buildSql(bind), values);
  }
}

const toStatusCount = (row: SqlRow, status: StatusCount["status"]): StatusCount => ({
  workflow: row.workflow as string,
  status,
  count: Number(row.run_count),
});

const toErrorGroup = (row: SqlRow, status: ErrorGroup["status"]): ErrorGroup => ({
  workflow: row.workflow as string,
  fingerprint: row.fingerprint as string,
  status,
  count: Number(row.run_count),
  recentCount: Number(row.recent_count),
  firstCreatedAt: Number(row.first_at),
  lastCreatedAt: Number(row.last_at),
  latestRunId: row.latest_id as string,
});

const sumOf = (rows: readonly SqlRow[]) => rows.reduce((sum, row) => sum + Number(row.run_count), 0);

const latestFirst = (a: ErrorGroup, b: ErrorGroup) =>
  b.lastCreatedAt - a.lastCreatedAt || (a.fingerprint < b.fingerprint ? -1 : 1);
