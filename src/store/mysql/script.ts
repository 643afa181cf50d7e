/** The migrations as SQL scripts, for MySQL and MariaDB. */
import { createMigrationScripts, type MigrationScript } from "../sql/migration-script.js";
import { serverNow } from "./clock.js";
import { createMigrationsTable, migrations } from "./schema.js";

export const migrationScripts = (): MigrationScript[] =>
  createMigrationScripts(migrations, {
    createMigrationsTable: [createMigrationsTable],
    migrationsTable: "pawl_migrations",
    now: serverNow,
  });
