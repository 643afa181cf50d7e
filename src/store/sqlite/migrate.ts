/** Applies migrations. In SQLite the statements that change the schema are part of a transaction like any others. */
import type { Runtime } from "../../runtime/runtime.js";
import type { Migration, MigrationPort, MigrationSession } from "../sql/migrations.js";
import type { Connection } from "./connection.js";
import { createMigrationsTable } from "./schema.js";

/** `write` runs its argument as a transaction that excludes all other writers, in this process and in others. */
export function migrationPort(
  read: <T>(work: (db: Connection) => T) => Promise<T>,
  write: <T>(work: (db: Connection) => T) => Promise<T>,
  runtime: Runtime,
): MigrationPort {
  const readApplied = () => read(readAppliedVersions);
  const session: MigrationSession = {
    appliedVersions: readApplied,
    apply: (migration) => write((db) => applyMigration(db, migration, runtime.now())),
  };
  // Each transaction takes the write lock; the second process to get it finds the migration applied.
  return { appliedVersions: readApplied, withLock: (work) => work(session) };
}

function readAppliedVersions(db: Connection): number[] {
  const exists = db.get("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'pawl_migrations'");
  if (exists === undefined) return [];
  return db.all("SELECT version FROM pawl_migrations ORDER BY version").map((row) => Number(row.version));
}

function applyMigration(db: Connection, { version, name, statements }: Migration, now: number): void {
  if (readAppliedVersions(db).includes(version)) return;
  db.database.exec(createMigrationsTable);
  for (const statement of statements) db.database.exec(statement);
  db.run("INSERT INTO pawl_migrations (version, name, at) VALUES (?, ?, ?)", version, name, now);
}
