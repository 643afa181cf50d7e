/** The migrations as SQL scripts, for SQLite and libSQL. */
import { createMigrationScripts, type MigrationScript } from "../sql/migration-script.js";
import { createMigrationsTable, migrations } from "./schema.js";

export const migrationScripts = (): MigrationScript[] =>
  createMigrationScripts(migrations, {
    createMigrationsTable: [createMigrationsTable],
    migrationsTable: "pawl_migrations",
    now: "CAST(strftime('%s', 'now') AS INTEGER) * 1000",
  });
