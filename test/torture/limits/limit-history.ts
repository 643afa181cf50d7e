/**
 * The history of the tables of limits. Triggers of the test write it in the transactions of the library, with the clock of
 * the database and a number from a sequence; what is rolled back is in neither. The library knows nothing of it.
 *
 * The numbers are in the order of the statements. For rows of one run that is the order of their transactions, because these lock
 * the run's task. A release can have a lower number than an admission that has not seen it, so on PostgreSQL each taken slot has
 * the number of slots of its lane that its own transaction sees, too. (SQLite has one writer at a time; InnoDB shows an
 * admission nothing that is not committed.)
 */
import type { RawSql, Row } from "../../support/raw-sql.js";

export type HistoryKind =
  | "slot_taken"
  | "slot_changed"
  | "slot_freed"
  | "task_added"
  | "task_changed"
  | "task_removed"
  | "class_added"
  | "class_removed"
  | "limit_set"
  | "limit_seen"
  | "worker_set";

export interface HistoryEntry {
  readonly seq: number;
  /** The clock of the database when the statement was executed. */
  readonly at: number;
  readonly what: HistoryKind;
  /** The id of the run, the class or the worker, or the name of the limit. */
  readonly id: string;
  readonly lane: string | null;
  readonly owner: string | null;
  readonly epoch: number | null;
  /** Of a task: 0 parked, 1 ready, 2 owned. Of a worker: 1 while it lives. */
  readonly state: number | null;
  readonly route: string | null;
  readonly oldRoute: string | null;
  /** Of a slot: the instant that the library has written. Of a worker: its process. */
  readonly value: number | null;
  /** Of a slot of a step: its attempt. */
  readonly node: string | null;
  /** Of a slot: 1 while the step only waits for it. */
  readonly waits: number | null;
  readonly units: number | null;
  /** Of a slot: how many of the lane its transaction sees in use. Null where no transaction runs beside another's. */
  readonly inUse: number | null;
  /** Of a class: its lanes, as JSON. Of a limit: what the code says, as JSON. */
  readonly detail: string | null;
  /** Of a limit: what is in force in place of the code, as JSON. */
  readonly override: string | null;
}

type Table = "slots" | "tasks" | "classes" | "limits" | "workers";

interface Engine {
  readonly table: string;
  readonly now: string;
  readonly inUse: string | null;
  /** Statements for a trigger that executes `insert`, only for rows for which `condition` holds. */
  trigger(
    name: string,
    event: "INSERT" | "UPDATE" | "DELETE",
    table: string,
    insert: string,
    condition?: string,
  ): string[];
  differs(column: string): string;
}

const columns =
  "at, what, id, lane, owner, epoch, state, route, old_route, value, node, waits, units, in_use, detail, override";

const engines: Record<"sqlite" | "postgres" | "mysql", Engine> = {
  sqlite: {
    table: `CREATE TABLE limit_history (seq INTEGER PRIMARY KEY AUTOINCREMENT, at INTEGER NOT NULL, what TEXT NOT NULL, id TEXT NOT NULL,
      lane TEXT, owner TEXT, epoch INTEGER, state INTEGER, route TEXT, old_route TEXT, value INTEGER,
      node TEXT, waits INTEGER, units INTEGER, in_use INTEGER, detail TEXT, override TEXT)`,
    now: "CAST(unixepoch('subsec') * 1000 AS INTEGER)",
    inUse: null,
    trigger: (name, event, table, insert, condition = "1 = 1") => [
      `CREATE TRIGGER ${name} AFTER ${event} ON ${table} WHEN ${condition} BEGIN ${insert}; END`,
    ],
    differs: (column) => `OLD.${column} IS NOT NEW.${column}`,
  },
  postgres: {
    table: `CREATE TABLE limit_history (seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, at bigint NOT NULL, what text NOT NULL, id text NOT NULL,
      lane text, owner text, epoch bigint, state int, route text, old_route text, value bigint,
      node text, waits int, units bigint, in_use int, detail text, override text)`,
    now: "floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint",
    inUse: "(SELECT count(*) FROM pawl_slots s WHERE s.lane = NEW.lane AND s.waits = 0)",
    trigger: (name, event, table, insert, condition) => [
      `CREATE FUNCTION ${name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN ${insert}; RETURN NULL; END $$`,
      `CREATE TRIGGER ${name} AFTER ${event} ON ${table} FOR EACH ROW ${condition === undefined ? "" : `WHEN (${condition})`} EXECUTE FUNCTION ${name}()`,
    ],
    differs: (column) => `OLD.${column} IS DISTINCT FROM NEW.${column}`,
  },
  mysql: {
    table: `CREATE TABLE limit_history (seq BIGINT AUTO_INCREMENT PRIMARY KEY, at BIGINT NOT NULL, what VARBINARY(20) NOT NULL, id VARBINARY(255) NOT NULL,
      lane VARBINARY(255), owner VARBINARY(255), epoch BIGINT, state INT, route VARBINARY(255), old_route VARBINARY(255), value BIGINT,
      node VARBINARY(255), waits INT, units BIGINT, in_use INT, detail LONGTEXT, override LONGTEXT)`,
    now: "FLOOR(UNIX_TIMESTAMP(SYSDATE(3)) * 1000)",
    // A trigger that reads would lock what it reads.
    inUse: null,
    trigger: (name, event, table, insert, condition = "1 = 1") => [
      `CREATE TRIGGER ${name} AFTER ${event} ON ${table} FOR EACH ROW BEGIN IF ${condition} THEN ${insert}; END IF; END`,
    ],
    differs: (column) => `NOT (OLD.${column} <=> NEW.${column})`,
  },
};

const engineOf = (url: string): Engine =>
  engines[url.startsWith("postgres") ? "postgres" : url.startsWith("mysql") ? "mysql" : "sqlite"];

/** Creates the table and the triggers. The library's tables must exist. */
export async function recordLimitHistory(
  sql: RawSql,
  url: string,
  tables: readonly Table[] = ["slots", "tasks", "classes", "limits", "workers"],
): Promise<void> {
  const engine = engineOf(url);
  await sql.query(engine.table);
  for (const table of tables) for (const statement of triggersOf(engine, table)) await sql.query(statement);
}

function triggersOf(engine: Engine, table: Table): readonly string[] {
  const { now, differs, inUse } = engine;
  const insert = (what: HistoryKind, values: Partial<Record<string, string>>) =>
    `INSERT INTO limit_history (at, what, ${Object.keys(values).join(", ")}) VALUES (${now}, '${what}', ${Object.values(values).join(", ")})`;
  const onTable = (name: string, event: "INSERT" | "UPDATE" | "DELETE", text: string, condition?: string) =>
    engine.trigger(`history_${name}`, event, `pawl_${table}`, text, condition);
  const slot = (row: "OLD" | "NEW") => ({
    ...{ id: `${row}.run_id`, lane: `${row}.lane`, owner: `${row}.owner`, epoch: `${row}.epoch`, value: `${row}.at` },
    ...{ node: `${row}.node`, waits: `${row}.waits`, units: `${row}.units` },
    ...(row === "NEW" && inUse !== null ? { in_use: inUse } : {}),
  });
  const task = (row: "OLD" | "NEW") => ({
    ...{
      id: `${row}.run_id`,
      owner: `${row}.owner`,
      epoch: `${row}.epoch`,
      state: `${row}.state`,
      route: `${row}.workflow`,
    },
  });
  const worker = {
    id: "NEW.id",
    epoch: "NEW.epoch",
    value: "NEW.pid",
    state: engine.differs === engines.postgres.differs ? "NEW.live::int" : "NEW.live",
  };
  const limit = { id: "NEW.name", detail: "NEW.settings", override: "NEW.override" };
  switch (table) {
    case "slots":
      return [
        ...onTable("taken", "INSERT", insert("slot_taken", slot("NEW"))),
        // A parked step that is executed again takes up its row under the name of its new attempt.
        ...onTable("renamed", "UPDATE", insert("slot_freed", slot("OLD")), differs("node")),
        ...onTable("slot_changed", "UPDATE", insert("slot_changed", slot("NEW"))),
        ...onTable("freed", "DELETE", insert("slot_freed", slot("OLD"))),
      ];
    case "tasks":
      return [
        ...onTable("task_added", "INSERT", insert("task_added", task("NEW"))),
        ...onTable(
          "task_changed",
          "UPDATE",
          insert("task_changed", { ...task("NEW"), old_route: "OLD.workflow" }),
          ["owner", "epoch", "state", "workflow"].map(differs).join(" OR "),
        ),
        ...onTable("task_removed", "DELETE", insert("task_removed", task("OLD"))),
      ];
    case "classes":
      return [
        ...onTable("class_added", "INSERT", insert("class_added", { id: "NEW.id", detail: "NEW.lanes" })),
        ...onTable("class_removed", "DELETE", insert("class_removed", { id: "OLD.id" })),
      ];
    case "limits":
      return [
        ...onTable("limit_added", "INSERT", insert("limit_set", limit)),
        ...onTable(
          "limit_changed",
          "UPDATE",
          insert("limit_set", limit),
          `${differs("settings")} OR ${differs("override")}`,
        ),
      ];
    case "workers":
      return [
        ...onTable("worker_added", "INSERT", insert("worker_set", worker)),
        ...onTable(
          "worker_changed",
          "UPDATE",
          insert("worker_set", worker),
          `${differs("live")} OR ${differs("epoch")}`,
        ),
      ];
  }
}

/**
 * Notes the limits as they are committed now. An admission that reads the clock later has read these or newer ones: a change
 * that an admission cannot see yet is no violation.
 */
export async function noteLimits(sql: RawSql, url: string): Promise<void> {
  const { now } = engineOf(url);
  await sql.query(`INSERT INTO limit_history (at, what, id, detail, override)
    SELECT ${now}, 'limit_seen', name, settings, override FROM pawl_limits`);
}

export async function readHistory(sql: RawSql): Promise<HistoryEntry[]> {
  const rows = await sql.query(`SELECT seq, ${columns} FROM limit_history ORDER BY seq`);
  return rows.map((row) => ({
    seq: Number(row.seq),
    at: Number(row.at),
    what: String(row.what) as HistoryKind,
    id: String(row.id),
    lane: textOf(row.lane),
    owner: textOf(row.owner),
    epoch: numberOf(row.epoch),
    state: numberOf(row.state),
    route: textOf(row.route),
    oldRoute: textOf(row.old_route),
    value: numberOf(row.value),
    node: textOf(row.node),
    waits: numberOf(row.waits),
    units: numberOf(row.units),
    inUse: numberOf(row.in_use),
    detail: textOf(row.detail),
    override: textOf(row.override),
  }));
}

const numberOf = (value: Row[string] | undefined) => (value === null || value === undefined ? null : Number(value));
const textOf = (value: Row[string] | undefined) => (value === null || value === undefined ? null : String(value));
