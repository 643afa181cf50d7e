/**
 * Answers a `RunQuery` by one index. The conditions that this index serves bound the range that is read. The other
 * conditions are computed for each run of the range, a chunk at a time, until the page is full or enough runs were
 * examined. No statement can so read the whole table, whatever the planner of the database thinks of it.
 */
import { routeSeparator } from "../../core/naming/route.js";
import type { RunPage, RunPosition, RunQuery } from "../contract/questions.js";
import type { RunRecord } from "../contract/store.js";
import { type Bind, createStatement, type Dialect, type Queryable, type RunIndex, type SqlRow } from "./dialect.js";
import { decodeRun, isOwned, runColumnsWith } from "./records.js";
import { type Condition, endedStatuses, type Match, RunWalk, unsuccessfulStatuses } from "./run-walk.js";

/** The index that bounds what a query reads. */
interface DrivingIndex {
  readonly name: RunIndex;
  readonly conditions: readonly Condition[];
  /** The fields of the query whose conditions the index serves. */
  readonly serves: ReadonlySet<string>;
}

export async function queryRuns(db: Queryable, dialect: Dialect, query: RunQuery): Promise<RunPage> {
  if (typeof query.parentId === "string" && !dialect.isId(query.parentId)) return emptyPage;
  if (isContradiction(query)) return emptyPage;
  if (isOpenRunsQuery(query)) return new OpenRuns(db, dialect, query).page();
  const needsWorkflows = query.startKey !== undefined && query.workflow === undefined;
  const workflows = needsWorkflows ? await findWorkflows(db, dialect) : [];
  const pages = [];
  // Runs with an error may be failed or paused, which are two ranges of the same index.
  for (const status of statusesOf(query))
    pages.push(await new RunsByAge(db, dialect, status === undefined ? query : { ...query, status }, workflows).page());
  return pages.length === 1 ? (pages[0] as RunPage) : mergePages(pages, query.limit);
}

/**
 * The workflows that have runs. The index of start keys begins with the workflow, so a key alone is looked up in each. It
 * jumps from one to the next by index, without reading the runs in between.
 */
async function findWorkflows(db: Queryable, dialect: Dialect): Promise<readonly string[]> {
  const from = `${dialect.table("runs")} r ${dialect.forceRunIndex("newest_of_workflow")}`;
  const workflows: string[] = [];
  for (;;) {
    const { bind, values } = createStatement(dialect);
    const isNext = `r.workflow > ${bind(workflows.at(-1) ?? "")}`;
    const [row] = await db.query(`SELECT r.workflow FROM ${from} WHERE ${isNext} ORDER BY r.workflow LIMIT 1`, values);
    if (row === undefined) return workflows;
    workflows.push(row.workflow as string);
  }
}

/** Whether no run can match, so that none needs to be examined. */
function isContradiction({ active, status, fingerprint }: RunQuery): boolean {
  if (status === undefined) return false;
  const contradictsActive = active !== undefined && active === endedStatuses.has(status);
  return contradictsActive || (fingerprint !== undefined && status !== "failed" && status !== "paused");
}

const emptyPage: RunPage = { runs: [], next: null, isCut: false };

const statusesOf = ({ fingerprint, errorText, status }: RunQuery) =>
  (fingerprint !== undefined || errorText !== undefined) && status === undefined
    ? (["failed", "paused"] as const)
    : ([status] as const);

/** Whether the query asks only for runs that have not ended, and no other index serves it better. */
const isOpenRunsQuery = ({ active, status, startKey, heroId, parentId, fingerprint, errorText }: RunQuery): boolean =>
  (active === true || status === "pending" || status === "waiting" || status === "running") &&
  status !== "paused" &&
  startKey === undefined &&
  heroId === undefined &&
  typeof parentId !== "string" &&
  fingerprint === undefined &&
  errorText === undefined;

/** Runs in the order of their creation, by one of the indexes of the table of runs. */
class RunsByAge extends RunWalk {
  readonly #workflows: readonly string[];

  /** @param workflows in which a start key is to be looked up if the query names none */
  constructor(db: Queryable, dialect: Dialect, query: RunQuery, workflows: readonly string[]) {
    super(db, dialect, query);
    this.#workflows = workflows;
  }

  /** Without further conditions every run of the range matches, and one statement reads the page. */
  override async page(): Promise<RunPage> {
    const index = this.#drivingIndex();
    if (this.conditionsExcept(index.serves).length > 0) return super.page();
    const { limit } = this.query;
    const runs = (await this.#readRange(index, this.query.after ?? null, limit + 1, () => null)).map(decodeRun);
    if (runs.length <= limit) return { runs, next: null, isCut: false };
    const page = runs.slice(0, limit);
    return { runs: page, next: page.at(-1) as RunRecord, isCut: false };
  }

  protected async readChunk(after: RunPosition | null, size: number): Promise<readonly Match[]> {
    const index = this.#drivingIndex();
    const matchConditions = this.conditionsExcept(index.serves);
    const rows = await this.#readRange(index, after, size, (bind) =>
      matchConditions.map((condition) => condition(bind)).join(" AND "),
    );
    return rows.map((row) => ({ position: this.toPosition(row), isMatch: Number(row.is_match) === 1 }));
  }

  /** @param isMatch the condition that the column `is_match` tells; null: all columns of the runs are read instead */
  #readRange(
    { name, conditions }: DrivingIndex,
    after: RunPosition | null,
    size: number,
    isMatch: (bind: Bind) => string | null,
  ): Promise<readonly SqlRow[]> {
    const { bind, values } = createStatement(this.dialect);
    const matchSql = isMatch(bind);
    const select =
      matchSql === null
        ? this.selectRuns()
        : `SELECT r.id, r.created_at, CASE WHEN ${matchSql} THEN 1 ELSE 0 END AS is_match FROM ${this.dialect.table("runs")} r`;
    const where = conditions.map((condition) => condition(bind));
    if (after !== null) where.push(this.dialect.isBefore(["r.created_at", "r.id"], after, bind));
    const whereSql = where.length === 0 ? "" : `WHERE ${where.join(" AND ")}`;
    return this.db.query(
      `${select} ${this.dialect.forceRunIndex(name)} ${whereSql} ORDER BY r.created_at DESC, r.id DESC LIMIT ${bind(size)}`,
      values,
    );
  }

  #drivingIndex(): DrivingIndex {
    const { workflow, startKey, heroType, heroId, parentId, status, createdAfter, createdBefore } = this.query;
    const times: Condition[] = [];
    if (createdAfter !== undefined) times.push((bind) => `r.created_at >= ${bind(createdAfter)}`);
    if (createdBefore !== undefined) times.push((bind) => `r.created_at < ${bind(createdBefore)}`);
    const index = (name: RunIndex, conditions: readonly Condition[], ...fields: string[]): DrivingIndex => ({
      name,
      conditions: [...conditions, ...times],
      serves: new Set([...fields, "createdAfter", "createdBefore"]),
    });
    const workflows = workflow === undefined ? this.#workflows : [workflow];
    if (startKey !== undefined && workflows.length > 0)
      return index(
        "start_key",
        [(bind) => `r.workflow IN (${workflows.map(bind).join(", ")})`, (bind) => `r.start_key = ${bind(startKey)}`],
        ...["workflow", "startKey"],
      );
    if (heroId !== undefined && heroType !== undefined)
      return index(
        "hero",
        [(bind) => `r.hero_id = ${bind(heroId)}`, (bind) => `r.hero_type = ${bind(heroType)}`],
        ...["heroId", "heroType"],
      );
    if (typeof parentId === "string") return index("parent", [(bind) => `r.parent_id = ${bind(parentId)}`], "parentId");
    // The status is written into the text: SQLite uses a partial index only for a value that it can see. Whether a worker
    // owns the run (then it is running, not paused) is still to be checked.
    if (unsuccessfulStatuses.has(status))
      return index("unsuccessful", [() => `r.unsuccessful = '${status}'`], ...(status === "paused" ? [] : ["status"]));
    if (workflow !== undefined)
      return index("newest_of_workflow", [(bind) => `r.workflow = ${bind(workflow)}`], "workflow");
    return index("newest", []);
  }
}

/**
 * Runs that have not ended, in the order of their ids, by the table of tasks, which has only those. What a task says of its
 * run decides whether the run is looked up.
 */
class OpenRuns extends RunWalk {
  /** The states of the tasks of all runs that may match, by run. */
  readonly #stateByRun = new Map<string, unknown>();

  protected async readChunk(after: RunPosition | null, size: number): Promise<readonly Match[]> {
    const tasks = await this.#readTasks(after, size);
    const candidates = tasks.filter((task) => this.#mayMatch(task));
    for (const { run_id: id, state } of candidates) this.#stateByRun.set(id as string, state);
    const matches = await this.#findMatches(candidates.map(({ run_id: id }) => id as string));
    // The time of creation is not known here, and not needed: the walk goes by id.
    return tasks.map(({ run_id: id }) => ({
      position: { createdAt: 0, id: id as string },
      isMatch: matches.has(id as string),
    }));
  }

  /** A route that is the name of a workflow is that of the run. */
  #mayMatch(task: SqlRow): boolean {
    const { status, workflow } = this.query;
    const route = task.workflow as string;
    const mayHaveStatus = status === undefined || (status === "running") === isOwned(task.state);
    return mayHaveStatus && (workflow === undefined || route === workflow || route.includes(routeSeparator));
  }

  /**
   * The conditions are in the list of columns, because a planner that saw them might begin with another index. The status is
   * there so that no index has all columns: while the table is almost empty, PostgreSQL would read all of such an index.
   */
  async #findMatches(ids: readonly string[]): Promise<ReadonlySet<string>> {
    const conditions = this.#conditions();
    if (ids.length === 0 || conditions.length === 0) return new Set(ids);
    const { bind, values } = createStatement(this.dialect);
    const isMatch = conditions.map((condition) => condition(bind)).join(" AND ");
    const columns = `r.id, r.status, CASE WHEN ${isMatch} THEN 1 ELSE 0 END AS is_match`;
    const select = `SELECT ${columns} FROM ${this.dialect.table("runs")} r`;
    const rows = await this.db.query(`${select} WHERE ${this.dialect.oneOf("r.id", ids, bind)}`, values);
    return new Set(rows.filter((row) => Number(row.is_match) === 1).map((row) => row.id as string));
  }

  /** The task has told whether the run is running. */
  #conditions(): Condition[] {
    return this.conditionsExcept(new Set(["active", ...(this.query.status === "running" ? ["status"] : [])]));
  }

  protected override hasStatus(status: string, bind: Bind): string {
    return `r.status = ${bind(status)}`;
  }

  /** Without conditions every task matches. */
  protected override firstChunk(matchCount: number): number {
    const { status } = this.query;
    return status === undefined && this.#conditions().length === 0 ? matchCount : super.firstChunk(matchCount);
  }

  /** The tasks have been read already. */
  protected override selectRuns(): string {
    return `SELECT ${runColumnsWith("NULL")}, r.started_by FROM ${this.dialect.table("runs")} r`;
  }

  /** A run that has ended meanwhile has no task any more. */
  protected override decodeRun(row: SqlRow): RunRecord {
    return decodeRun({ ...row, task_state: row.finished_at === null ? this.#stateByRun.get(row.id as string) : null });
  }

  #readTasks(after: RunPosition | null, size: number): Promise<readonly SqlRow[]> {
    const { bind, values } = createStatement(this.dialect);
    const where = after === null ? "" : `WHERE t.run_id < ${bind(after.id)}`;
    const from = `${this.dialect.table("tasks")} t`;
    return this.db.query(
      `SELECT t.run_id, t.state, t.workflow FROM ${from} ${where} ORDER BY t.run_id DESC LIMIT ${bind(size)}`,
      values,
    );
  }
}

/** Merges pages of the same order. A page that was not read to its end bounds how far the merged page may go. */
function mergePages(pages: readonly RunPage[], limit: number): RunPage {
  const ends = pages.flatMap(({ next }) => next ?? []).sort(newestFirst);
  const firstEnd = ends[0] ?? null;
  const runs = pages
    .flatMap((page) => page.runs)
    .filter((run) => firstEnd === null || newestFirst(run, firstEnd) <= 0)
    .sort(newestFirst);
  if (runs.length > limit) {
    const page = runs.slice(0, limit);
    return { runs: page, next: page.at(-1) as RunRecord, isCut: false };
  }
  return { runs, next: firstEnd, isCut: pages.some(({ isCut }) => isCut) };
}

const newestFirst = (a: RunPosition, b: RunPosition): number =>
  b.createdAt - a.createdAt || (a.id < b.id ? 1 : a.id > b.id ? -1 : 0);
