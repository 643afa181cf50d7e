/** The start deadlines of a SQL store. Their rows are written by the statements that create runs. */
import type { StartDeadline, StartDeadlines } from "../contract/store.js";
import { type Bind, createStatement, type Dialect, type Queryable, type SqlRow } from "./dialect.js";

/** The earliest of all deadlines, for heartbeats: the first entry of the table's index. */
export const nextStartDeadlineSql = (table: string): string => `(SELECT min(d.at) FROM ${table} d)`;

const rowsPerStatement = 500;

export class SqlStartDeadlines implements StartDeadlines {
  readonly #db: Queryable;
  readonly #dialect: Dialect;

  constructor(db: Queryable, dialect: Dialect) {
    this.#db = db;
    this.#dialect = dialect;
  }

  async earliest(limit: number) {
    const rows = await this.#query(
      (bind, table) =>
        `SELECT d.run_id, d.at, ${this.#dialect.now(bind)} AS now FROM ${table} d ORDER BY d.at LIMIT ${bind(limit)}`,
    );
    const [first] = rows;
    return first === undefined ? null : { now: Number(first.now), deadlines: rows.map(toDeadline) };
  }

  async ofRuns(runIds: readonly string[]): Promise<readonly StartDeadline[]> {
    const ids = runIds.filter((id) => this.#dialect.isId(id));
    if (ids.length === 0) return [];
    const rows = await this.#query(
      (bind, table) =>
        `SELECT d.run_id, d.at FROM ${table} d WHERE ${this.#dialect.oneOf("d.run_id", ids, bind)} ORDER BY d.run_id`,
    );
    return rows.map(toDeadline);
  }

  async remove(deadlines: readonly StartDeadline[]): Promise<void> {
    for (let from = 0; from < deadlines.length; from += rowsPerStatement) {
      const part = deadlines.slice(from, from + rowsPerStatement);
      const latest = Math.max(...part.map(({ at }) => at));
      await this.#query((bind, table) => {
        const ids = part.map(({ runId }) => runId);
        return `DELETE FROM ${table} WHERE ${this.#dialect.oneOf("run_id", ids, bind)} AND at <= ${bind(latest)} ${this.#dialect.deleteOrder("run_id")}`;
      });
    }
  }

  #query(buildSql: (bind: Bind, table: string) => string): Promise<readonly SqlRow[]> {
    const { bind, values } = createStatement(this.#dialect);
    return this.#db.query(buildSql(bind, this.#dialect.table("start_deadlines")), values);
  }
}

const toDeadline = (row: SqlRow): StartDeadline => ({ runId: row.run_id as string, at: Number(row.at) });
