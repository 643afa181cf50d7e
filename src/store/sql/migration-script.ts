/** Migrations as plain SQL, for teams that apply them with their own tool or by a database administrator. */
import type { Migration } from "./migrations.js";

export interface MigrationScript extends Pick<Migration, "version" | "name"> {
  /** In order, without semicolons. The last one records that the migration is applied. */
  readonly statements: readonly string[];
}

/** The SQL of a database around the statements of a migration. */
export interface ScriptDialect {
  /** Create the table of applied migrations if it does not exist; every script begins with these statements. */
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
