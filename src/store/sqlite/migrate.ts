/** How migrations are applied in SQLite, where a table is made in a transaction like anything else. */
import type { Runtime } from "../../runtime/runtime.js";
import type { Migration, MigrationPort, MigrationSession } from "../sql/migrations.js";
import type { Connection } from "./connection.js";
import { createMigrationsTable } from "./schema.js";

/** `write` runs its argument as a transaction that excludes all other writers, of this and other processes. */
export function migrationPort(
  read: <T>(work: (db: Connection) => T) => Promise<T>,
  write: <T>(work: (db: Connection) => T) => Promise<T>,
  runtime: Runtime,
): MigrationPort {
  const applied = () => read(appliedVersions);
  const session: MigrationSession = {
    appliedVersions: applied,
    apply: (migration) => write((db) => apply(db, migration, runtime.now())),
  };
  // The lock is that of each transaction; whoever gets it second finds the migration done.
  return { appliedVersions: applied, withLock: (work) => work(session) };
}

function appliedVersions(db: Connection): number[] {
  const exists = db.get("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'pawl_migrations'");
  if (exists === undefined) return [];
  return db.all("SELECT version FROM pawl_migrations ORDER BY version").map((row) => Number(row.version));
}

function apply(db: Connection, { version, name, statements }: Migration, now: number): void {
  if (appliedVersions(db).includes(version)) return;
  db.database.exec(createMigrationsTable);
  for (const statement of statements) db.database.exec(statement);
  db.run("INSERT INTO pawl_migrations (version, name, at) VALUES (?, ?, ?)", version, name, now);
}
