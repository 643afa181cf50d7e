/**
 * Numbered migrations, for every SQL store. The runner decides what is to be done and in which order; the store's port
 * knows how to lock, what is applied, and how to apply one so that being killed in the middle does no harm.
 */
import { isTransient } from "../../concurrency/retry-until-reachable.js";
import { MigrationError } from "../../core/errors/errors.js";

export interface Migration {
  /** 1, 2, 3…; never changed once released. */
  readonly version: number;
  readonly name: string;
  readonly statements: readonly string[];
}

export interface MigrationPort {
  /** The versions in `pawl_migrations`; none when that table does not exist yet. */
  appliedVersions(): Promise<readonly number[]>;
  /**
   * Calls `work` while no other process is in here. What is applied may have changed while waiting for the lock, so
   * `session.applied` is asked again inside.
   */
  withLock(work: (session: MigrationSession) => Promise<void>): Promise<void>;
}

export interface MigrationSession {
  appliedVersions(): Promise<readonly number[]>;
  /**
   * Runs the statements and records the version, in one transaction where DDL is transactional. Elsewhere the record
   * comes last and every statement can be run a second time, so that a migration cut short is simply run again.
   */
  apply(migration: Migration): Promise<void>;
}

export async function migrate(port: MigrationPort, migrations: readonly Migration[]): Promise<void> {
  // The common case, at every start of every process: nothing to do, and no lock for it.
  if ((await pendingMigrations(port, migrations)).length === 0) return;
  await port.withLock(async (session) => {
    const versions = await session.appliedVersions();
    checkNotNewer(
      versions,
      migrations.map((migration) => migration.version),
    );
    const applied = new Set(versions);
    for (const migration of migrations) {
      if (applied.has(migration.version)) continue;
      await session.apply(migration).catch((error: unknown) => {
        // A lost connection says so itself, and may be worth another try.
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

/** @throws MigrationError when a newer Pawl has been here: this one does not know what its tables mean */
export async function pendingMigrations(
  port: Pick<MigrationPort, "appliedVersions">,
  migrations: readonly Migration[],
): Promise<readonly number[]> {
  const applied = await port.appliedVersions();
  const knownVersions = migrations.map((migration) => migration.version);
  checkNotNewer(applied, knownVersions);
  const appliedVersions = new Set(applied);
  return knownVersions.filter((version) => !appliedVersions.has(version));
}

function checkNotNewer(applied: readonly number[], knownVersions: readonly number[]): void {
  const [appliedVersion, supportedVersion] = [Math.max(0, ...applied), Math.max(0, ...knownVersions)];
  if (appliedVersion <= supportedVersion) return;
  throw new MigrationError(
    `The tables have version ${appliedVersion}, and this Pawl knows them up to version ${supportedVersion}: a newer Pawl has migrated this ` +
      "database. Update Pawl here, or use another database or schema.",
  );
}
