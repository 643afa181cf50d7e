/** The schedules of all SQL stores: their rows, the ledger of occurrences, and the sets of the applications. */
import type { Pending, ScheduleStatus } from "../../core/schedule/schedule-data.js";
import type {
  OccurrencePosition,
  OccurrenceRecord,
  PendingCount,
  ScheduleApp,
  ScheduleBatch,
  ScheduleRecord,
  ScheduleResult,
  Schedules,
} from "../contract/schedules.js";
import { hintsOfStarts } from "../shared/hint-emitter.js";
import { hintsOfScheduleChanges } from "../shared/schedule-hints.js";
import { type Bind, createStatement, type Dialect, type SqlRow } from "./dialect.js";
import { nextScheduleSql } from "./next-schedule.js";
import { numberOrNull } from "./records.js";
import type { SchedulePort } from "./schedule-port.js";
import { ScheduleWriter } from "./schedule-writer.js";

const scheduleColumns =
  "s.name, s.app, s.set_key, s.hash, s.incarnation, s.revision, s.status, s.next_for, s.next_at, s.workflow, s.definition, s.state, s.created_at";

const occurrenceColumns = (dialect: Dialect) =>
  `${dialect.idAsText("o.id")} AS id, o.schedule, o.incarnation, o.scheduled_for, o.scheduled_until, o.occurrence_count, o.outcome, o.pending, o.at, o.detail`;

export class SqlSchedules implements Schedules {
  readonly #db: SchedulePort;
  readonly #dialect: Dialect;
  readonly #writer: ScheduleWriter;

  constructor(db: SchedulePort, dialect: Dialect) {
    this.#db = db;
    this.#dialect = dialect;
    this.#writer = new ScheduleWriter(dialect);
  }

  async due({ setKeys, limit }: { readonly setKeys: readonly string[]; readonly limit: number }) {
    if (setKeys.length === 0) return null;
    const rows = await this.#query((bind, table) => {
      // Each set is a search for the first entries of an index: with a condition for all sets, a backlog would be read and
      // sorted as a whole for each page of it.
      const dueOf = (setKey: string) => `SELECT * FROM (SELECT * FROM ${table("schedules")}
        WHERE set_key = ${bind(setKey)} AND next_at <= ${this.#dialect.now(bind)} ORDER BY next_at, name LIMIT ${bind(limit)}) due`;
      const now = this.#dialect.now(bind);
      return `SELECT ${scheduleColumns}, ${now} AS now FROM (${setKeys.map(dueOf).join(" UNION ALL ")}) s
        ORDER BY s.next_at, s.name LIMIT ${bind(limit)}`;
    });
    const [first] = rows;
    return first === undefined ? null : { now: Number(first.now), schedules: rows.map(decodeSchedule) };
  }

  async nextAt(setKeys: readonly string[]): Promise<number | null> {
    const [firstKey = "", secondKey = firstKey] = setKeys;
    const [row] = await this.#query(
      (bind, table) => `SELECT ${nextScheduleSql(table("schedules"), bind(firstKey), bind(secondKey))} AS next_at`,
    );
    return numberOrNull(row?.next_at);
  }

  async byName(names: readonly string[]): Promise<readonly ScheduleRecord[]> {
    if (names.length === 0) return [];
    const rows = await this.#query(
      (bind, table) =>
        `SELECT ${scheduleColumns} FROM ${table("schedules")} s WHERE s.name IN (${names.map(bind).join(", ")}) ORDER BY s.name`,
    );
    return rows.map(decodeSchedule);
  }

  async list({ after, limit, app }: { readonly after: string | null; readonly limit: number; readonly app?: string }) {
    const rows = await this.#query((bind, table) => {
      const conditions = [`s.name > ${bind(after ?? "")}`];
      if (app !== undefined) conditions.push(`s.app = ${bind(app)}`);
      return `SELECT ${scheduleColumns} FROM ${table("schedules")} s WHERE ${conditions.join(" AND ")} ORDER BY s.name LIMIT ${bind(limit)}`;
    });
    return rows.map(decodeSchedule);
  }

  async pending({
    names,
    kinds,
    limit,
  }: {
    readonly names: readonly string[];
    readonly kinds: readonly Pending[];
    readonly limit: number;
  }): Promise<readonly OccurrenceRecord[]> {
    if (names.length === 0 || kinds.length === 0) return [];
    const rows = await this.#query((bind, table) => {
      const ofSchedules = `o.schedule IN (${names.map(bind).join(", ")})`;
      const ofKinds = `o.pending IN (${kinds.map(bind).join(", ")})`;
      return `SELECT ${occurrenceColumns(this.#dialect)} FROM ${table("occurrences")} o
        WHERE ${ofSchedules} AND ${ofKinds} ORDER BY o.schedule, o.scheduled_for, o.id LIMIT ${bind(limit)}`;
    });
    return rows.map(decodeOccurrence);
  }

  async pendingCounts(names: readonly string[]): Promise<readonly PendingCount[]> {
    if (names.length === 0) return [];
    const rows = await this.#query((bind, table) => {
      const ofSchedules = `o.schedule IN (${names.map(bind).join(", ")})`;
      return `SELECT o.schedule, o.pending, count(*) AS pending_count FROM ${table("occurrences")} o
        WHERE ${ofSchedules} AND o.pending IS NOT NULL GROUP BY o.schedule, o.pending ORDER BY o.schedule, o.pending`;
    });
    return rows.map((row) => ({
      schedule: row.schedule as string,
      pending: row.pending as Pending,
      count: Number(row.pending_count),
    }));
  }

  async occurrences({
    schedule,
    before,
    limit,
  }: {
    readonly schedule: string;
    readonly before: OccurrencePosition | null;
    readonly limit: number;
  }): Promise<readonly OccurrenceRecord[]> {
    const rows = await this.#query((bind, table) => {
      const conditions = [`o.schedule = ${bind(schedule)}`];
      if (before !== null) {
        const position = { createdAt: before.scheduledFor, id: before.id };
        conditions.push(this.#dialect.isBefore(["o.scheduled_for", "o.id"], position, bind));
      }
      return `SELECT ${occurrenceColumns(this.#dialect)} FROM ${table("occurrences")} o
        WHERE ${conditions.join(" AND ")} ORDER BY o.scheduled_for DESC, o.id DESC LIMIT ${bind(limit)}`;
    });
    return rows.map(decodeOccurrence);
  }

  async occurrencesById(ids: readonly string[]): Promise<readonly OccurrenceRecord[]> {
    const validIds = ids.filter((id) => this.#dialect.isId(id));
    if (validIds.length === 0) return [];
    const rows = await this.#query(
      (bind, table) =>
        `SELECT ${occurrenceColumns(this.#dialect)} FROM ${table("occurrences")} o WHERE ${this.#dialect.oneOf("o.id", validIds, bind)}`,
    );
    return rows.map(decodeOccurrence);
  }

  async app(name: string): Promise<ScheduleApp | null> {
    const [row] = await this.#query(
      (bind, table) =>
        `SELECT a.app, a.set_key, a.revision, a.sets FROM ${table("schedule_apps")} a WHERE a.app = ${bind(name)}`,
    );
    return row === undefined ? null : decodeApp(row);
  }

  async setKeysInForce(): Promise<readonly string[]> {
    const rows = await this.#query((_bind, table) => `SELECT a.set_key FROM ${table("schedule_apps")} a`);
    return rows.map(({ set_key }) => String(set_key));
  }

  async apply(batch: ScheduleBatch): Promise<ScheduleResult> {
    const result = await this.#db.transaction((transaction) => this.#writer.write(transaction, batch));
    if (result.kind !== "applied") return result;
    const { names } = result;
    const applied = batch.changes.filter(({ name }) => names.has(name));
    const starts = applied.flatMap((change) => change.starts);
    this.#db.emitHints([...hintsOfStarts(starts), ...hintsOfScheduleChanges(applied, batch)]);
    return result;
  }

  async deleteOccurrences({ before, limit }: { readonly before: number; readonly limit: number }): Promise<number> {
    const rows = await this.#query(
      (bind, table) =>
        `SELECT o.id FROM ${table("occurrences")} o WHERE o.at < ${bind(before)} AND o.pending IS NULL ORDER BY o.at LIMIT ${bind(limit)}`,
    );
    const ids = rows.map((row) => row.id as string);
    if (ids.length === 0) return 0;
    await this.#query(
      (bind, table) =>
        `DELETE FROM ${table("occurrences")} WHERE ${this.#dialect.oneOf("id", ids, bind)} ${this.#dialect.deleteOrder("id")}`,
    );
    return ids.length;
  }

  #query(buildSql: (bind: Bind, table: Dialect["table"]) => string): Promise<readonly SqlRow[]> {
    const { bind, values } = createStatement(this.#dialect);
    return this.#db.query(
      buildSql(bind, (name) => this.#dialect.table(name)),
      values,
    );
  }
}

function decodeSchedule(row: SqlRow): ScheduleRecord {
  return {
    name: row.name as string,
    app: row.app as string | null,
    setKey: row.set_key as string,
    hash: row.hash as string,
    incarnation: row.incarnation as string,
    revision: Number(row.revision),
    status: row.status as ScheduleStatus,
    nextFor: numberOrNull(row.next_for),
    nextAt: numberOrNull(row.next_at),
    workflow: row.workflow as string,
    definition: row.definition as string,
    state: row.state as string,
    createdAt: Number(row.created_at),
  };
}

function decodeOccurrence(row: SqlRow): OccurrenceRecord {
  return {
    id: row.id as string,
    schedule: row.schedule as string,
    incarnation: row.incarnation as string,
    scheduledFor: Number(row.scheduled_for),
    scheduledUntil: Number(row.scheduled_until),
    count: Number(row.occurrence_count),
    outcome: row.outcome as OccurrenceRecord["outcome"],
    pending: row.pending as Pending | null,
    at: Number(row.at),
    detail: JSON.parse(row.detail as string) as OccurrenceRecord["detail"],
  };
}

const decodeApp = (row: SqlRow): ScheduleApp => ({
  app: row.app as string,
  setKey: row.set_key as string,
  revision: Number(row.revision),
  sets: row.sets as string,
});
