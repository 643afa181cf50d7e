/** How migrations are applied where DDL commits by itself: under a named lock, the record last. */
import { StoreError } from "../../core/errors/errors.js";
import type { Migration, MigrationPort, MigrationSession } from "../sql/migrations.js";
import { serverNow } from "./clock.js";
import type { Database } from "./database.js";
import { createMigrationsTable } from "./schema.js";
import type { Session } from "./session.js";
import { sql } from "./sql.js";

/** Locks are the server's, so the database's name is in it; hashed, because a lock's name has 64 characters at most. */
const lockName = "CONCAT('pawl:', SUBSTRING(SHA2(DATABASE(), 256), 1, 40))";
const lockTimeoutSeconds = 60;

export function migrationPort(db: Database): MigrationPort {
  return {
    appliedVersions: () => appliedVersions({ run: (statements) => db.read(statements) }),
    // The connection is closed afterwards, and that also frees the lock, as does the end of a process that is killed.
    withLock: (work) =>
      db.withDedicatedConnection(async (session) => {
        const [result] = await session.run([sql(`SELECT GET_LOCK(${lockName}, ${lockTimeoutSeconds}) AS locked`)]);
        if (Number(result?.rows[0]?.locked) !== 1) {
          throw new StoreError(`Another process has been migrating this database for ${lockTimeoutSeconds} s.`, {
            transient: true,
          });
        }
        await work(toMigrationSession(session));
      }),
  };
}

const toMigrationSession = (session: Session): MigrationSession => ({
  appliedVersions: () => appliedVersions(session),
  apply: (migration) => apply(session, migration),
});

async function appliedVersions(session: Session): Promise<number[]> {
  const [tableLookup] = await session.run([
    sql("SELECT 1 FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name = 'pawl_migrations'"),
  ]);
  if (tableLookup?.rows.length === 0) return [];
  const [result] = await session.run([sql("SELECT version FROM pawl_migrations ORDER BY version")]);
  return result?.rows.map((row) => Number(row.version)) ?? [];
}

async function apply(session: Session, { version, name, statements }: Migration): Promise<void> {
  for (const statement of [createMigrationsTable, ...statements]) await session.run([sql(statement)]);
  const record = `INSERT INTO pawl_migrations (version, name, at) VALUES (?, ?, ${serverNow})`;
  await session.run([sql(record, [version, name])]);
}
