/** The migrations of PostgreSQL as plain SQL. */
import { createMigrationScripts, type MigrationScript } from "../sql/migration-script.js";
import { realNow } from "./clock.js";
import { createMigrationsTable, migrationsOf } from "./schema.js";
import { quoteName, tablesIn } from "./tables.js";

/** Scripts do not create this schema: every database has it, and the user may not have the right to create schemas. */
const defaultSchema = "public";

export function migrationScripts(schema: string = defaultSchema): MigrationScript[] {
  const tables = tablesIn(schema);
  const createSchema = schema === defaultSchema ? [] : [`CREATE SCHEMA IF NOT EXISTS ${quoteName(schema)}`];
  return createMigrationScripts(migrationsOf(tables), {
    createMigrationsTable: [...createSchema, createMigrationsTable(tables)],
    migrationsTable: tables.migrations,
    now: realNow,
  });
}
