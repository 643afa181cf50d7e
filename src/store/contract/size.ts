/** How much the tables of a store contain, for people who look after the database. */

/** Pawl's tables, without the prefix of their names. */
export const tableNames = [
  "runs",
  "tasks",
  "events",
  "inbox",
  "cursors",
  "workers",
  "workflows",
  "queues",
  "figures",
  "limits",
  "lanes",
  "classes",
  "slots",
  "gatherings",
  "gathered",
  "start_deadlines",
  "schedules",
  "occurrences",
  "schedule_apps",
  "migrations",
] as const;

export type TableName = (typeof tableNames)[number];

export interface TableSize {
  readonly name: TableName;
  readonly rows: number;
  /** Whether all rows were counted, the count stopped at its cap, or the number comes from the database's statistics. */
  readonly rowsAre: "exact" | "capped" | "estimated";
  /** The size of the table without its indexes; null if the database does not tell. */
  readonly bytes: number | null;
  readonly indexBytes: number | null;
}

/** A migration that has been applied. */
export interface AppliedMigration {
  readonly version: number;
  readonly name: string;
  /** When it was applied. */
  readonly at: number;
}

export interface DatabaseSize {
  /** The product, for display: "PostgreSQL". */
  readonly engine: string;
  /** The version of the product; null if it has none. */
  readonly version: string | null;
  /** The size of Pawl's tables and indexes, or of the file that contains them; null if the database does not tell. */
  readonly bytes: number | null;
  /** The part of the file that is free and will be used again; null if there is no such file. */
  readonly freeBytes: number | null;
  /** In the order of `tableNames`; tables that the store does not have are missing. */
  readonly tables: readonly TableSize[];
  /** Ordered by version. */
  readonly migrations: readonly AppliedMigration[];
}
