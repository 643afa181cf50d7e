/** Writes a batch of changes to schedules inside a transaction that the store begins and ends. */
import type {
  OccurrenceRecord,
  ScheduleApp,
  ScheduleBatch,
  ScheduleChange,
  ScheduleRecord,
  ScheduleResult,
} from "../contract/schedules.js";
import { compareText } from "../shared/compare-text.js";
import { type Bind, createStatement, type Dialect, type SqlRow } from "./dialect.js";
import { splitRows } from "./insert-rows.js";
import type { ScheduleTransaction } from "./schedule-port.js";

type Written = { readonly shouldCommit: boolean; readonly result: ScheduleResult };

export class ScheduleWriter {
  readonly #dialect: Dialect;

  constructor(dialect: Dialect) {
    this.#dialect = dialect;
  }

  async write(db: ScheduleTransaction, { changes, app }: ScheduleBatch): Promise<Written> {
    if (app !== undefined && !(await this.#writeApp(db, app.row, app.expectedRevision)))
      return { shouldCommit: false, result: { kind: "app changed" } };
    const at = await this.#now(db);
    const current = await this.#lockUnchanged(db, changes);
    const created = await this.#create(db, changes);
    const applied = changes.filter(({ name }) => current.has(name) || created.has(name));
    await this.#update(
      db,
      applied.filter(({ expectedRevision }) => expectedRevision !== null),
    );
    await this.#writeOccurrences(
      db,
      applied.flatMap(({ occurrences }) => occurrences),
    );
    const starts = applied.flatMap((change) => change.starts);
    const refused = starts.length === 0 ? [] : await db.start(starts);
    if (refused.length > 0) return { shouldCommit: false, result: { kind: "refused", refused } };
    const names = new Set(applied.map(({ name }) => name));
    return { shouldCommit: true, result: { kind: "applied", at, names } };
  }

  async #now(db: ScheduleTransaction): Promise<number> {
    const [row] = await this.#query(db, (bind) => `SELECT ${this.#dialect.now(bind)} AS now`);
    return Number(row?.now);
  }

  /** Locks the row of the application, or creates it. Returns false if it is not as the caller has read it. */
  async #writeApp(db: ScheduleTransaction, row: ScheduleApp, expectedRevision: number | null): Promise<boolean> {
    const insertNothing = `${this.#dialect.onDuplicateUpdate("app")} app = ${this.#dialect.insertedValue("app")}`;
    if (expectedRevision === null)
      await this.#query(
        db,
        (bind, table) =>
          `INSERT INTO ${table("schedule_apps")} (app, set_key, revision, sets) VALUES (${bind(row.app)}, ${bind(row.setKey)}, 0, ${bind("[]")}) ${insertNothing}`,
      );
    const [current] = await this.#query(
      db,
      (bind, table) =>
        `SELECT a.revision FROM ${table("schedule_apps")} a WHERE a.app = ${bind(row.app)} ${this.#dialect.forUpdate}`,
    );
    if (Number(current?.revision) !== (expectedRevision ?? 0)) return false;
    await this.#query(
      db,
      (bind, table) =>
        `UPDATE ${table("schedule_apps")} SET set_key = ${bind(row.setKey)}, revision = ${bind((expectedRevision ?? 0) + 1)}, sets = ${bind(row.sets)} WHERE app = ${bind(row.app)}`,
    );
    return true;
  }

  /** Locks the schedules that exist, in the order of their names, and returns those that have the expected revision. */
  async #lockUnchanged(db: ScheduleTransaction, changes: readonly ScheduleChange[]): Promise<ReadonlySet<string>> {
    const expected = new Map(
      changes.flatMap(({ name, expectedRevision }) => (expectedRevision === null ? [] : [[name, expectedRevision]])),
    );
    if (expected.size === 0) return new Set();
    const rows = await this.#query(
      db,
      (bind, table) =>
        `SELECT s.name, s.revision FROM ${table("schedules")} s WHERE s.name IN (${[...expected.keys()].map(bind).join(", ")}) ORDER BY s.name ${this.#dialect.forUpdate}`,
    );
    const unchanged = rows.filter((row) => Number(row.revision) === expected.get(row.name as string));
    return new Set(unchanged.map((row) => row.name as string));
  }

  /**
   * Creates the schedules that must not exist yet. Two transactions may insert the same name: the incarnation, which is
   * random, tells which of them has created the row.
   */
  async #create(db: ScheduleTransaction, changes: readonly ScheduleChange[]): Promise<ReadonlySet<string>> {
    const rows = changes.flatMap(({ expectedRevision, row }) =>
      expectedRevision === null && row !== null ? [row] : [],
    );
    if (rows.length === 0) return new Set();
    const insertNothing = `${this.#dialect.onDuplicateUpdate("name")} name = ${this.#dialect.insertedValue("name")}`;
    await this.#insertSchedules(db, rows, insertNothing);
    const stored = await this.#query(
      db,
      (bind, table) =>
        `SELECT s.name, s.incarnation FROM ${table("schedules")} s WHERE s.name IN (${rows.map(({ name }) => bind(name)).join(", ")})`,
    );
    const incarnations = new Map(stored.map((row) => [row.name, row.incarnation]));
    return new Set(rows.flatMap(({ name, incarnation }) => (incarnations.get(name) === incarnation ? [name] : [])));
  }

  async #update(db: ScheduleTransaction, changes: readonly ScheduleChange[]): Promise<void> {
    const deletedNames = changes.filter(({ row }) => row === null).map(({ name }) => name);
    if (deletedNames.length > 0)
      await this.#query(
        db,
        (bind, table) => `DELETE FROM ${table("schedules")} WHERE name IN (${deletedNames.map(bind).join(", ")})`,
      );
    const rows = changes.flatMap(({ row, expectedRevision }) =>
      row === null ? [] : [{ ...row, revision: (expectedRevision as number) + 1 }],
    );
    if (rows.length === 0) return;
    const updates = scheduleColumnNames
      .filter((column) => column !== "name" && column !== "created_at")
      .map((column) => `${column} = ${this.#dialect.insertedValue(column)}`);
    await this.#insertSchedules(db, rows, `${this.#dialect.onDuplicateUpdate("name")} ${updates.join(", ")}`);
  }

  async #insertSchedules(db: ScheduleTransaction, rows: readonly ScheduleRecord[], suffix: string): Promise<void> {
    const sorted = rows.toSorted((a, b) => compareText(a.name, b.name));
    await this.#insert(db, "schedules", scheduleColumnNames, sorted.map(scheduleValues), suffix);
  }

  async #writeOccurrences(db: ScheduleTransaction, occurrences: readonly OccurrenceRecord[]): Promise<void> {
    if (occurrences.length === 0) return;
    const updates = ["scheduled_until", "occurrence_count", "outcome", "pending", "at", "detail"].map(
      (column) => `${column} = ${this.#dialect.insertedValue(column)}`,
    );
    const suffix = `${this.#dialect.onDuplicateUpdate("id")} ${updates.join(", ")}`;
    const sorted = occurrences.toSorted((a, b) => (a.id < b.id ? -1 : 1));
    await this.#insert(db, "occurrences", occurrenceColumnNames, sorted.map(occurrenceValues), suffix);
  }

  async #insert(
    db: ScheduleTransaction,
    name: "schedules" | "occurrences",
    columns: readonly string[],
    rows: readonly (readonly unknown[])[],
    suffix: string,
  ): Promise<void> {
    for (const part of splitRows(rows)) {
      await this.#query(db, (bind, table) => {
        const tuples = part.map((values) => `(${values.map(bind).join(", ")})`);
        return `INSERT INTO ${table(name)} (${columns.join(", ")}) VALUES ${tuples.join(", ")} ${suffix}`;
      });
    }
  }

  #query(
    db: ScheduleTransaction,
    buildSql: (bind: Bind, table: Dialect["table"]) => string,
  ): Promise<readonly SqlRow[]> {
    const { bind, values } = createStatement(this.#dialect);
    return db.query(
      buildSql(bind, (name) => this.#dialect.table(name)),
      values,
    );
  }
}

const scheduleColumnNames = [
  "name",
  "app",
  "set_key",
  "hash",
  "incarnation",
  "revision",
  "status",
  "next_for",
  "next_at",
  "workflow",
  "definition",
  "state",
  "created_at",
];

const scheduleValues = (row: ScheduleRecord): readonly unknown[] => [
  row.name,
  row.app,
  row.setKey,
  row.hash,
  row.incarnation,
  row.revision,
  row.status,
  row.nextFor,
  row.nextAt,
  row.workflow,
  row.definition,
  row.state,
  row.createdAt,
];

const occurrenceColumnNames = [
  "id",
  "schedule",
  "incarnation",
  "scheduled_for",
  "scheduled_until",
  "occurrence_count",
  "outcome",
  "pending",
  "at",
  "detail",
];

const occurrenceValues = (row: OccurrenceRecord): readonly unknown[] => [
  row.id,
  row.schedule,
  row.incarnation,
  row.scheduledFor,
  row.scheduledUntil,
  row.count,
  row.outcome,
  row.pending,
  row.at,
  JSON.stringify(row.detail),
];
