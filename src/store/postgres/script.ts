/** The migrations as plain SQL for PostgreSQL. */
import { type MigrationScript, scriptsOf } from "../sql/script.js";
import { realNow } from "./clock.js";
import { createMigrations, migrationsOf } from "./schema.js";
import { quoteName, tablesIn } from "./tables.js";

/** Every database has it, and not everybody may create another. */
const usualSchema = "public";

export function migrationScripts(schema: string = usualSchema): MigrationScript[] {
  const tables = tablesIn(schema);
  const createSchema = schema === usualSchema ? [] : [`CREATE SCHEMA IF NOT EXISTS ${quoteName(schema)}`];
  return scriptsOf(migrationsOf(tables), {
    createMigrations: [...createSchema, createMigrations(tables)],
    migrationsTable: tables.migrations,
    now: realNow,
  });
}
