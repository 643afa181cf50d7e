/**
 * Migrations on PostgreSQL. DDL is transactional, so a migration is applied completely or not at all; an advisory lock
 * lets one process migrate at a time.
 */
import type { SqlRow } from "../sql/dialect.js";
import type { MigrationPort, MigrationSession } from "../sql/migrations.js";
import { realNow } from "./clock.js";
import type { Database } from "./connection/database.js";
import { createMigrationsTable } from "./schema.js";
import { quoteName, type Tables } from "./tables.js";

export function createMigrationPort(db: Database, tables: Tables): MigrationPort {
  const versionsIn = (rows: readonly SqlRow[]) => rows.map((row) => Number(row.version));
  const selectVersions = { text: `SELECT version FROM ${tables.migrations}` };
  const readAppliedVersions = async (
    execute: (query: { text: string; values?: unknown[] }) => Promise<readonly SqlRow[]>,
  ) => {
    const [row] = await execute({
      text: "SELECT to_regclass($1) IS NOT NULL AS is_present",
      values: [tables.migrations],
    });
    return row?.is_present === true ? versionsIn(await execute(selectVersions)) : [];
  };
  const session: MigrationSession = {
    appliedVersions: () => readAppliedVersions((query) => db.read(query)),
    apply: (migration) =>
      db.transaction(async (execute) => {
        await execute({
          text: "SELECT pg_advisory_xact_lock($1, hashtext($2))",
          values: [advisoryLockClass, tables.schema],
        });
        // CREATE SCHEMA IF NOT EXISTS would need the right to create schemas even if the schema exists.
        const [schema] = await execute({
          text: "SELECT to_regnamespace($1) AS oid",
          values: [quoteName(tables.schema)],
        });
        if (schema?.oid === null) await execute({ text: `CREATE SCHEMA ${quoteName(tables.schema)}` });
        await execute({ text: createMigrationsTable(tables) });
        // Another process may have applied the migration while this one waited for the lock.
        if ((await readAppliedVersions(execute)).includes(migration.version)) return;
        for (const statement of migration.statements) await execute({ text: statement });
        await execute({
          text: `INSERT INTO ${tables.migrations} (version, name, at) VALUES ($1, $2, ${realNow})`,
          values: [migration.version, migration.name],
        });
      }),
  };
  return { appliedVersions: session.appliedVersions, withLock: (work) => work(session) };
}

/** "pawl" as a number: one half of the advisory lock's key. The other half is the schema. */
const advisoryLockClass = 0x7061776c;
