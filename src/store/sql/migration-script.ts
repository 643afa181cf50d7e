/** Migrations as plain SQL, for teams whose own tool or database administrator applies them. */
import type { Migration } from "./migrations.js";

export interface MigrationScript extends Pick<Migration, "version" | "name"> {
  /** The statements in order, without semicolons. The last statement records that the migration is applied. */
  readonly statements: readonly string[];
}

/** The SQL of a script, apart from the statements of the migration, that differs between databases. */
export interface ScriptDialect {
  /** Every script begins with these statements, which create the table of applied migrations if it does not exist. */
  readonly createMigrationsTable: readonly string[];
  readonly migrationsTable: string;
  /** An expression for the database's clock in epoch milliseconds. */
  readonly now: string;
}

export function createMigrationScripts(migrations: readonly Migration[], dialect: ScriptDialect): MigrationScript[] {
  return migrations.map(({ version, name, statements }) => ({
    version,
    name,
    statements: [
      ...dialect.createMigrationsTable,
      ...statements,
      `INSERT INTO ${dialect.migrationsTable} (version, name, at) VALUES (${version}, '${name.replaceAll("'", "''")}', ${dialect.now})`,
    ],
  }));
}
