/** The migrations as plain SQL for SQLite and libSQL. */
import { type MigrationScript, scriptsOf } from "../sql/script.js";
import { migrations, migrationsTable } from "./schema.js";

export const migrationScripts = (): MigrationScript[] =>
  scriptsOf(migrations, {
    createMigrations: [migrationsTable],
    migrationsTable: "pawl_migrations",
    now: "CAST(strftime('%s', 'now') AS INTEGER) * 1000",
  });
