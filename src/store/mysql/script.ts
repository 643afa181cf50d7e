/** The migrations as plain SQL for MySQL and MariaDB. */
import { type MigrationScript, scriptsOf } from "../sql/script.js";
import { serverNow } from "./clock.js";
import { createMigrations, migrations } from "./schema.js";

export const migrationScripts = (): MigrationScript[] =>
  scriptsOf(migrations, {
    createMigrations: [createMigrations],
    migrationsTable: "pawl_migrations",
    now: serverNow,
  });
