/** Migrations: DDL is transactional here, so each is all or nothing, and an advisory lock lets one process in at a time. */
import type { SqlRow } from "../sql/dialect.js";
import type { MigrationPort, MigrationSession } from "../sql/migrations.js";
import { realNow } from "./clock.js";
import type { Database } from "./connection/database.js";
import { createMigrations } from "./schema.js";
import { quoteName, type Tables } from "./tables.js";

export function migrationPort(db: Database, tables: Tables): MigrationPort {
  const versions = (rows: readonly SqlRow[]) => rows.map((row) => Number(row.version));
  const select = { text: `SELECT version FROM ${tables.migrations}` };
  const applied = async (run: (query: { text: string; values?: unknown[] }) => Promise<readonly SqlRow[]>) => {
    const [row] = await run({ text: "SELECT to_regclass($1) IS NOT NULL AS there", values: [tables.migrations] });
    return row?.there === true ? versions(await run(select)) : [];
  };
  const session: MigrationSession = {
    applied: () => applied((query) => db.read(query)),
    apply: (migration) =>
      db.transaction(async (run) => {
        await run({ text: "SELECT pg_advisory_xact_lock($1, hashtext($2))", values: [lockClass, tables.schema] });
        // Asked first: IF NOT EXISTS wants the right to create one even when it is there.
        const [schema] = await run({ text: "SELECT to_regnamespace($1) AS oid", values: [quoteName(tables.schema)] });
        if (schema?.oid === null) await run({ text: `CREATE SCHEMA ${quoteName(tables.schema)}` });
        await run({ text: createMigrations(tables) });
        // Another process may have been here while this one waited for the lock.
        if ((await applied(run)).includes(migration.version)) return;
        for (const statement of migration.statements) await run({ text: statement });
        await run({
          text: `INSERT INTO ${tables.migrations} (version, name, at) VALUES ($1, $2, ${realNow})`,
          values: [migration.version, migration.name],
        });
      }),
  };
  return { applied: session.applied, locked: (work) => work(session) };
}

/** "pawl", as a number: one half of the advisory lock's key, the other is the schema. */
const lockClass = 0x7061776c;
