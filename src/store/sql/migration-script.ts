/** Migrations as plain SQL, for teams whose own tool or database administrator runs them. */
import type { Migration } from "./migrations.js";

export interface MigrationScript extends Pick<Migration, "version" | "name"> {
  /** In order, without semicolons; the last one records that the migration is applied. */
  readonly statements: readonly string[];
}

/** What a store does around the statements of a migration. */
export interface ScriptDialect {
  /** Made before the first migration, whether or not it is there: the table of those that are applied. */
  readonly createMigrationsTable: readonly string[];
  readonly migrationsTable: string;
  /** The database's clock, in epoch milliseconds. */
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
