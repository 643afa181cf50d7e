/** Walks through a range of runs and collects those that match a query, a chunk at a time. */
import type { RunPage, RunPosition, RunQuery } from "../contract/questions.js";
import type { RunRecord } from "../contract/store.js";
import { type Bind, createStatement, type Dialect, type Queryable, type SqlRow } from "./dialect.js";
import { decodeRun, runColumns, taskState, taskStateSubquery } from "./records.js";

/** A condition of a statement; it binds its values when the statement is built. */
export type Condition = (bind: Bind) => string;

export interface Match {
  readonly position: RunPosition;
  readonly isMatch: boolean;
}

/** The conditions of half of the runs are often fulfilled, and reading a few runs more costs less than a second statement. */
const firstChunkPerRun = 2;
const chunkGrowth = 4;

/** No worker owns a run that has ended. */
export const endedStatuses: ReadonlySet<string> = new Set(["completed", "failed", "canceled"]);
export const unsuccessfulStatuses: ReadonlySet<string | undefined> = new Set(["paused", "failed", "canceled"]);

/** Walks through a range of runs and collects the matches. */
export abstract class RunWalk {
  protected readonly db: Queryable;
  protected readonly dialect: Dialect;
  protected readonly query: RunQuery;

  constructor(db: Queryable, dialect: Dialect, query: RunQuery) {
    this.db = db;
    this.dialect = dialect;
    this.query = query;
  }

  /** The next runs after the position, and for each whether it matches. */
  protected abstract readChunk(after: RunPosition | null, size: number): Promise<readonly Match[]>;

  async page(): Promise<RunPage> {
    const { limit, maxExamined } = this.query;
    const matches: RunPosition[] = [];
    let position = this.query.after ?? null;
    let chunkSize = this.firstChunk(limit + 1);
    for (let examined = 0; examined < maxExamined; chunkSize *= chunkGrowth) {
      const size = Math.min(chunkSize, maxExamined - examined);
      const chunk = await this.readChunk(position, size);
      for (const { position: found, isMatch } of chunk) if (isMatch) matches.push(found);
      if (matches.length > limit) return this.#pageOf(matches.slice(0, limit), matches[limit - 1] ?? null, false);
      if (chunk.length < size) return this.#pageOf(matches, null, false);
      position = (chunk.at(-1) as Match).position;
      examined += size;
    }
    return this.#pageOf(matches, position, true);
  }

  async #pageOf(matches: readonly RunPosition[], next: RunPosition | null, isCut: boolean): Promise<RunPage> {
    if (matches.length === 0) return { runs: [], next, isCut };
    const ids = matches.map(({ id }) => id);
    const { bind, values } = createStatement(this.dialect);
    const rows = await this.db.query(`${this.selectRuns()} WHERE ${this.dialect.oneOf("r.id", ids, bind)}`, values);
    const runsById = new Map(rows.map((row) => [row.id as string, this.decodeRun(row)]));
    // A run may have been deleted since the walk.
    const runs = ids.flatMap((id) => runsById.get(id) ?? []);
    return { runs, next: next === null ? null : (runsById.get(next.id) ?? next), isCut };
  }

  /** How many runs are read first to find this many matches. */
  protected firstChunk(matchCount: number): number {
    return firstChunkPerRun * matchCount;
  }

  protected decodeRun(row: SqlRow): RunRecord {
    return decodeRun(row);
  }

  protected selectRuns(): string {
    return `SELECT ${runColumns(this.dialect.table("tasks"))} FROM ${this.dialect.table("runs")} r`;
  }

  /** The conditions of all fields of the query but those that the index serves. */
  protected conditionsExcept(served: ReadonlySet<string>): Condition[] {
    return Object.entries(this.#conditionsByField()).flatMap(([field, condition]) =>
      condition === null || served.has(field) ? [] : [condition],
    );
  }

  #conditionsByField(): Record<string, Condition | null> {
    const { query } = this;
    const equal = (column: string, value: string | undefined): Condition | null =>
      value === undefined ? null : (bind) => `${column} = ${bind(value)}`;
    const { status, active, parentId, tag, createdAfter, createdBefore } = query;
    // A condition is computed only if those before it are fulfilled, so those that read another row come last.
    return {
      workflow: equal("r.workflow", query.workflow),
      fingerprint: equal("r.fingerprint", query.fingerprint),
      createdAfter: createdAfter === undefined ? null : (bind) => `r.created_at >= ${bind(createdAfter)}`,
      createdBefore: createdBefore === undefined ? null : (bind) => `r.created_at < ${bind(createdBefore)}`,
      heroType: equal("r.hero_type", query.heroType),
      heroId: equal("r.hero_id", query.heroId),
      startKey: equal("r.start_key", query.startKey),
      version: equal("r.version", query.version),
      minDurationMs: this.#durationCondition(">=", query.minDurationMs),
      maxDurationMs: this.#durationCondition("<=", query.maxDurationMs),
      parentId: parentId === null ? () => "r.parent_id IS NULL" : equal("r.parent_id", parentId),
      active: active === undefined ? null : () => `r.finished_at IS ${active ? "" : "NOT "}NULL`,
      tag: tag === undefined ? null : (bind) => hasTag(this.dialect, tag, bind),
      step: query.step === undefined ? null : (bind) => this.#isAtStep(query.step as string, bind),
      errorText: query.errorText === undefined ? null : (bind) => this.#hasErrorText(query.errorText as string, bind),
      status: status === undefined ? null : (bind) => this.hasStatus(status, bind),
    };
  }

  protected hasStatus(status: string, bind: Bind): string {
    const isOwnedSql = `coalesce(${taskStateSubquery(this.dialect.table("tasks"))}, ${taskState.parked}) = ${taskState.owned}`;
    if (status === "running") return isOwnedSql;
    // Indexes have this column, and not `status`.
    const column = unsuccessfulStatuses.has(status) ? "r.unsuccessful" : "r.status";
    const isStored = `${column} = ${bind(status)}`;
    return endedStatuses.has(status) ? isStored : `(${isStored} AND NOT ${isOwnedSql})`;
  }

  /** In JSON text the quotes inside a string are escaped, so these texts match only where the fields are. */
  #isAtStep(step: string, bind: Bind): string {
    const name = JSON.stringify(step);
    return anyOf([
      this.dialect.contains("r.error", bind(`"step":${name}`)),
      this.dialect.contains("r.waiting", bind(`"step":${name}`)),
      this.dialect.contains("r.waiting", bind(`"step":{"name":${name}`)),
    ]);
  }

  #hasErrorText(text: string, bind: Bind): string {
    const escapedText = JSON.stringify(text).slice(1, -1);
    const isIn = (status: string, column: string) =>
      `(r.status = '${status}' AND ${this.dialect.contains(column, bind(escapedText))})`;
    return anyOf([isIn("failed", "r.error"), isIn("paused", "r.waiting")]);
  }

  #durationCondition(operator: "<=" | ">=", durationMs: number | undefined): Condition | null {
    if (durationMs === undefined) return null;
    return (bind) =>
      `coalesce(r.finished_at, ${this.dialect.now(bind)}) - r.started_at ${operator} ${bind(durationMs)}`;
  }

  protected toPosition(row: SqlRow): RunPosition {
    return { createdAt: Number(row.created_at), id: row.id as string };
  }
}

/** A condition on a column that is NULL counts as not fulfilled. */
const anyOf = (conditions: readonly string[]) => `(${conditions.map((one) => `coalesce(${one}, false)`).join(" OR ")})`;

/**
 * In JSON text a quote inside a string is always escaped, so `["x"` and `,"x"` match only where the element "x"
 * begins. (`"x"` alone would also match at the end of the tag `a"x`.)
 */
export function hasTag(dialect: Dialect, tag: string, bind: Bind): string {
  const quotedTag = JSON.stringify(tag);
  const isFirst = dialect.contains("r.tags", bind(`[${quotedTag}`));
  const isLater = dialect.contains("r.tags", bind(`,${quotedTag}`));
  return `(${isFirst} OR ${isLater})`;
}
