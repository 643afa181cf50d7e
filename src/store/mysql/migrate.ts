/** Applies migrations under a named lock. DDL commits by itself, so a migration is recorded after its statements. */
import { StoreError } from "../../core/errors/errors.js";
import type { Migration, MigrationPort, MigrationSession } from "../sql/migrations.js";
import { serverNow } from "./clock.js";
import type { Database } from "./database.js";
import { createMigrationsTable } from "./schema.js";
import type { Session } from "./session.js";
import { sql } from "./sql.js";

/**
 * All databases of a server share its named locks, so the lock's name contains the name of the database, hashed to stay
 * within 64 characters.
 */
const lockName = "CONCAT('pawl:', SUBSTRING(SHA2(DATABASE(), 256), 1, 40))";
const lockTimeoutSeconds = 60;

export function migrationPort(db: Database): MigrationPort {
  return {
    appliedVersions: () => readAppliedVersions({ run: (statements) => db.read(statements) }),
    // Closing the connection frees the lock, and so does the end of a killed process.
    withLock: (work) =>
      db.withDedicatedConnection(async (session) => {
        const [result] = await session.run([sql(`SELECT GET_LOCK(${lockName}, ${lockTimeoutSeconds}) AS locked`)]);
        if (Number(result?.rows[0]?.locked) !== 1) {
          const message = `Another process has been migrating this database for ${lockTimeoutSeconds} s; try again when it has finished.`;
          throw new StoreError(message, { transient: true });
        }
        await work(toMigrationSession(session));
      }),
  };
}

const toMigrationSession = (session: Session): MigrationSession => ({
  appliedVersions: () => readAppliedVersions(session),
  apply: (migration) => applyMigration(session, migration),
});

async function readAppliedVersions(session: Session): Promise<number[]> {
  const [tableLookup] = await session.run([
    sql("SELECT 1 FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name = 'pawl_migrations'"),
  ]);
  if (tableLookup?.rows.length === 0) return [];
  const [result] = await session.run([sql("SELECT version FROM pawl_migrations ORDER BY version")]);
  return result?.rows.map((row) => Number(row.version)) ?? [];
}

async function applyMigration(session: Session, { version, name, statements }: Migration): Promise<void> {
  for (const statement of [createMigrationsTable, ...statements]) await session.run([sql(statement)]);
  const insertMigrationRow = `INSERT INTO pawl_migrations (version, name, at) VALUES (?, ?, ${serverNow})`;
  await session.run([sql(insertMigrationRow, [version, name])]);
}
