/**
 * Counts the due tasks of each route, at most `cap` ready and `cap` parked tasks of each. Every statement reads entries of
 * the index that claims use, and no more of them than it counts.
 */
import { resumedOffsetMs } from "../../core/limits/order.js";
import { baseRouteOf, classRouteRangeOf, isClassRoute } from "../../core/naming/route.js";
import type { RouteBacklog } from "../contract/maintenance.js";
import { type Bind, createStatement, type Dialect, type Queryable, type SqlRow } from "./dialect.js";
import { taskState } from "./records.js";

interface RouteKey {
  readonly route: string;
  readonly version: string;
  /** Whether all classes of the route are meant: they are counted together, as tasks of the version of the first. */
  readonly ofClasses?: true;
}

/** A condition of a statement; it binds its values when the statement is built. */
type Condition = (bind: Bind) => string;

/** Of a task that resumes, and waits in a class, the due time is stored with an offset. */
const dueAt = `CASE WHEN x.due_at < 0 THEN x.due_at + ${resumedOffsetMs} ELSE x.due_at END`;

const isReady = `t.state = ${taskState.ready}`;

export class SqlBacklog {
  readonly #db: Queryable;
  readonly #dialect: Dialect;
  readonly #cap: number;

  constructor(db: Queryable, dialect: Dialect, cap: number) {
    this.#db = db;
    this.#dialect = dialect;
    this.#cap = cap;
  }

  async read(): Promise<readonly RouteBacklog[]> {
    return mergeByRoute([...(await this.#readyBacklogs()), ...(await this.#overdueBacklogs())]);
  }

  /** One statement counts all ready tasks if they are few. Otherwise they are counted route by route. */
  async #readyBacklogs(): Promise<RouteBacklog[]> {
    const rows = await this.#query((bind, tasks) => {
      const first = `SELECT t.workflow, t.version, t.due_at FROM ${tasks} WHERE ${isReady} ORDER BY t.workflow, t.version LIMIT ${bind(this.#cap + 1)}`;
      return `SELECT x.workflow, x.version, count(*) AS due_count, min(${dueAt}) AS oldest_due_at FROM (${first}) x GROUP BY x.workflow, x.version`;
    });
    const readyCount = rows.reduce((sum, row) => sum + Number(row.due_count), 0);
    if (readyCount <= this.#cap) return rows.map((row) => this.#decode(row));
    const backlogs: RouteBacklog[] = [];
    for await (const key of this.#routesWith(isReady)) backlogs.push(await this.#readyBacklog(key));
    return backlogs;
  }

  async #readyBacklog(key: RouteKey): Promise<RouteBacklog> {
    if (key.ofClasses) return this.#classBacklog(key);
    const { column, order } = this.#dialect.readyRank;
    const backlog = await this.#count(key, () => isReady, `${column} ${order}, t.due_at`);
    // A task of a low priority may have been due for longer than those that were counted.
    return backlog.isCapped ? { ...backlog, oldestDueAt: await this.#oldestReady(key) } : backlog;
  }

  async #classBacklog({ route, version }: RouteKey): Promise<RouteBacklog> {
    const [from, to] = classRouteRangeOf(route);
    const rows = await this.#query((bind, tasks) => {
      const where = `${isReady} AND t.workflow >= ${bind(from)} AND t.workflow < ${bind(to)}`;
      const first = `SELECT t.due_at FROM ${tasks} WHERE ${where} ORDER BY t.workflow, t.version LIMIT ${bind(this.#cap + 1)}`;
      return `SELECT count(*) AS due_count, min(${dueAt}) AS oldest_due_at FROM (${first}) x`;
    });
    return this.#decode({ ...rows[0], workflow: route, version });
  }

  /** Jumps from one priority to the next: the first task of each is the oldest of that priority. */
  async #oldestReady({ route, version }: RouteKey): Promise<number> {
    const { column, order, after } = this.#dialect.readyRank;
    let oldestDueAt = Number.POSITIVE_INFINITY;
    let previousRank: number | null = null;
    for (;;) {
      const rows: readonly SqlRow[] = await this.#query((bind, tasks) => {
        const where = `${isReady} AND t.workflow = ${bind(route)} AND t.version = ${bind(version)}`;
        const isNext = previousRank === null ? "" : `AND ${column} ${after} ${bind(previousRank)}`;
        return `SELECT ${column} AS task_rank, t.due_at FROM ${tasks} WHERE ${where} ${isNext} ORDER BY ${column} ${order}, t.due_at LIMIT 1`;
      });
      const [row] = rows;
      if (row === undefined) return oldestDueAt;
      previousRank = Number(row.task_rank);
      oldestDueAt = Math.min(oldestDueAt, Number(row.due_at));
    }
  }

  async #overdueBacklogs(): Promise<RouteBacklog[]> {
    const { isParked } = this.#dialect;
    const isOverdue: Condition = (bind) => `${isParked} AND t.due_at <= ${this.#dialect.now(bind)}`;
    const backlogs: RouteBacklog[] = [];
    for await (const key of this.#routesWith(isParked)) {
      const backlog = await this.#count(key, isOverdue, "t.due_at");
      if (backlog.dueCount > 0) backlogs.push(backlog);
    }
    return backlogs;
  }

  /** @param order an order in which the index has the tasks, so that only the counted tasks are read */
  async #count({ route, version }: RouteKey, isDue: Condition, order: string): Promise<RouteBacklog> {
    const rows = await this.#query((bind, tasks) => {
      const where = `${isDue(bind)} AND t.workflow = ${bind(route)} AND t.version = ${bind(version)}`;
      const first = `SELECT t.due_at FROM ${tasks} WHERE ${where} ORDER BY ${order} LIMIT ${bind(this.#cap + 1)}`;
      return `SELECT count(*) AS due_count, min(x.due_at) AS oldest_due_at FROM (${first}) x`;
    });
    return this.#decode({ ...rows[0], workflow: route, version });
  }

  /**
   * Yields each route and version that has such a task. It jumps from one to the next by index, without reading the tasks in
   * between.
   */
  async *#routesWith(isIncluded: string): AsyncGenerator<RouteKey> {
    let previous: RouteKey | null = null;
    for (;;) {
      const row: SqlRow | undefined = await this.#nextRoute(previous, isIncluded);
      if (row === undefined) return;
      const [route, version] = [row.workflow as string, row.version as string];
      if (isClassRoute(route)) {
        const base = baseRouteOf(route);
        // The end of the range of the classes: the next route comes after all of them.
        previous = { route: classRouteRangeOf(base)[1], version: "" };
        yield { route: base, version, ofClasses: true };
        continue;
      }
      previous = { route, version };
      yield previous;
    }
  }

  /** The next version of the same route, or the next route. Only equality with a route leads to a position in the index. */
  async #nextRoute(previous: RouteKey | null, isIncluded: string): Promise<SqlRow | undefined> {
    const rows = await this.#query((bind, tasks) => {
      const first = (isNext: string) =>
        `SELECT t.workflow, t.version FROM ${tasks} WHERE ${isIncluded} AND ${isNext} ORDER BY t.workflow, t.version LIMIT 1`;
      if (previous === null) return first("t.workflow > ''");
      const { route, version } = previous;
      const nextVersion = first(`t.workflow = ${bind(route)} AND t.version > ${bind(version)}`);
      const nextRoute = first(`t.workflow > ${bind(route)}`);
      return `SELECT k.workflow, k.version FROM (
        SELECT a.workflow, a.version FROM (${nextVersion}) a UNION ALL SELECT b.workflow, b.version FROM (${nextRoute}) b
      ) k ORDER BY k.workflow, k.version LIMIT 1`;
    });
    return rows[0];
  }

  #query(buildSql: (bind: Bind, tasks: string) => string): Promise<readonly SqlRow[]> {
    const { bind, values } = createStatement(this.#dialect);
    return this.#db.query(buildSql(bind, `${this.#dialect.table("tasks")} t`), values);
  }

  #decode(row: SqlRow): RouteBacklog {
    const count = Number(row.due_count);
    return {
      route: baseRouteOf(row.workflow as string),
      version: row.version as string,
      dueCount: Math.min(count, this.#cap),
      isCapped: count > this.#cap,
      oldestDueAt: Number(row.oldest_due_at),
    };
  }
}

/** Adds up the counts of ready and of overdue tasks of each route and version. */
function mergeByRoute(parts: readonly RouteBacklog[]): readonly RouteBacklog[] {
  const byRoute = new Map<string, RouteBacklog>();
  for (const backlog of parts) {
    const key = `${backlog.route}\u0000${backlog.version}`;
    const other = byRoute.get(key);
    const sum: RouteBacklog = {
      ...backlog,
      dueCount: backlog.dueCount + (other?.dueCount ?? 0),
      isCapped: backlog.isCapped || other?.isCapped === true,
      oldestDueAt: Math.min(backlog.oldestDueAt, other?.oldestDueAt ?? backlog.oldestDueAt),
    };
    byRoute.set(key, sum);
  }
  return [...byRoute.entries()].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, backlog]) => backlog);
}
