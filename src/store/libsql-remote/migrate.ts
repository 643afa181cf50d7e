/** Applies migrations on a libSQL server. Each migration is one batch, and so one transaction. */
import type { Migration, MigrationPort, MigrationSession } from "../sql/migrations.js";
import { createMigrationsTable } from "../sqlite/schema.js";
import type { RemoteDatabase } from "./database.js";
import { failedGuardIndex } from "./errors.js";
import { serverNow } from "./server-clock.js";
import { guardStatement, StatementPlan } from "./statement-plan.js";

const tableExists = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'pawl_migrations'";
const isNotApplied = "NOT EXISTS (SELECT 1 FROM pawl_migrations WHERE version = ?)";
const insertMigration = `INSERT INTO pawl_migrations (version, name, at) VALUES (?, ?, ${serverNow})`;

export function migrationPort(db: RemoteDatabase): MigrationPort {
  const appliedVersions = async () => {
    if ((await db.query(tableExists, [])).length === 0) return [];
    const rows = await db.query("SELECT version FROM pawl_migrations ORDER BY version", []);
    return rows.map((row) => Number(row.version));
  };
  const session: MigrationSession = { appliedVersions, apply: (migration) => applyMigration(db, migration) };
  // Each batch takes the write lock; the second process to get it finds the migration applied.
  return { appliedVersions, withLock: (work) => work(session) };
}

async function applyMigration(db: RemoteDatabase, { version, name, statements }: Migration): Promise<void> {
  const plan = new StatementPlan<"already applied">();
  plan.add(createMigrationsTable);
  plan.addGuard("already applied", guardStatement(isNotApplied), version);
  for (const statement of statements) plan.add(statement);
  plan.add(insertMigration, version, name);
  try {
    await db.write(plan.statements);
  } catch (error) {
    const failedIndex = failedGuardIndex((error as Error).cause);
    if (failedIndex === null || plan.refusalAt(failedIndex) === null) throw error;
  }
}
