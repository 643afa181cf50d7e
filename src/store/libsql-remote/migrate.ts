/** How migrations are applied on a libSQL server: each is one batch, that is, one transaction. */
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
  const session: MigrationSession = { appliedVersions, apply: (migration) => apply(db, migration) };
  // The lock is that of each batch; the process that gets it second finds the migration done.
  return { appliedVersions, withLock: (work) => work(session) };
}

async function apply(db: RemoteDatabase, { version, name, statements }: Migration): Promise<void> {
  const plan = new StatementPlan<"applied already">();
  plan.add(createMigrationsTable);
  plan.addGuard("applied already", guardStatement(isNotApplied), version);
  for (const statement of statements) plan.add(statement);
  plan.add(insertMigration, version, name);
  try {
    await db.write(plan.statements);
  } catch (error) {
    const failedIndex = failedGuardIndex((error as Error).cause);
    if (failedIndex === null || plan.refusalAt(failedIndex) === null) throw error;
  }
}
