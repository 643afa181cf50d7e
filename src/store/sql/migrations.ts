/**
 * Numbered migrations for every SQL store. The functions here decide which migrations to apply and in which order. The
 * port of a store takes the lock, reads the applied versions, and applies each migration in such a way that another
 * process can complete it after this one was killed.
 */
import { isTransient } from "../../concurrency/retry-until-reachable.js";
import { MigrationError } from "../../core/errors/errors.js";

export interface Migration {
  /** 1, 2, 3…; a released migration never changes. */
  readonly version: number;
  readonly name: string;
  readonly statements: readonly string[];
}

export interface MigrationPort {
  /** The versions in `pawl_migrations`; none if that table does not exist yet. */
  appliedVersions(): Promise<readonly number[]>;
  /**
   * Calls `work` while no other process migrates. Another process may have migrated during the wait for the lock, so
   * `work` reads `session.appliedVersions` again.
   */
  withLock(work: (session: MigrationSession) => Promise<void>): Promise<void>;
}

export interface MigrationSession {
  appliedVersions(): Promise<readonly number[]>;
  /**
   * Runs the statements and records the version, in one transaction where DDL is transactional. Elsewhere the version
   * is recorded last and every statement can be repeated, so that an interrupted migration is simply run again.
   */
  apply(migration: Migration): Promise<void>;
}

export async function migrate(port: MigrationPort, migrations: readonly Migration[]): Promise<void> {
  // Usually no migration is pending. Every process checks this when it starts, so the check takes no lock.
  if ((await pendingMigrations(port, migrations)).length === 0) return;
  await port.withLock(async (session) => {
    const versions = await session.appliedVersions();
    checkNotNewer(
      versions,
      migrations.map((migration) => migration.version),
    );
    const appliedVersions = new Set(versions);
    for (const migration of migrations) {
      if (appliedVersions.has(migration.version)) continue;
      await session.apply(migration).catch((error: unknown) => {
        // A connection error does not come from the migration and the caller may retry, so it is thrown unchanged.
        if (isTransient(error)) throw error;
        const reason = (error instanceof Error ? error.message : String(error)).replace(/[.]$/, "");
        throw new MigrationError(
          `Migration ${migration.version} (${migration.name}) failed: ${reason}. It can be run again.`,
          { cause: error },
        );
      });
    }
  });
}

/** @throws MigrationError when a newer Pawl has migrated the database: this version does not know its tables */
export async function pendingMigrations(
  port: Pick<MigrationPort, "appliedVersions">,
  migrations: readonly Migration[],
): Promise<readonly number[]> {
  const appliedVersionList = await port.appliedVersions();
  const knownVersions = migrations.map((migration) => migration.version);
  checkNotNewer(appliedVersionList, knownVersions);
  const appliedVersionSet = new Set(appliedVersionList);
  return knownVersions.filter((version) => !appliedVersionSet.has(version));
}

function checkNotNewer(appliedVersions: readonly number[], knownVersions: readonly number[]): void {
  const [latestAppliedVersion, latestKnownVersion] = [Math.max(0, ...appliedVersions), Math.max(0, ...knownVersions)];
  if (latestAppliedVersion <= latestKnownVersion) return;
  throw new MigrationError(
    `The tables have version ${latestAppliedVersion}, and this Pawl knows them up to version ${latestKnownVersion}: a newer Pawl has migrated this ` +
      "database. Update Pawl here, or use another database or schema.",
  );
}
