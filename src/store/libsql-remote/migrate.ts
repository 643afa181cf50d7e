/** How migrations are applied on a libSQL server: each is one batch, that is, one transaction. */
import type { Migration, MigrationPort, MigrationSession } from "../sql/migrations.js";
import { migrationsTable } from "../sqlite/schema.js";
import type { RemoteDatabase } from "./database.js";
import { guardThatFailed } from "./errors.js";
import { guardOf, Plan } from "./plan.js";
import { serverNow } from "./server-clock.js";

const tableExists = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'pawl_migrations'";
const isNew = "NOT EXISTS (SELECT 1 FROM pawl_migrations WHERE version = ?)";
const record = `INSERT INTO pawl_migrations (version, name, at) VALUES (?, ?, ${serverNow})`;

export function migrationPort(db: RemoteDatabase): MigrationPort {
  const applied = async () => {
    if ((await db.query(tableExists, [])).length === 0) return [];
    const rows = await db.query("SELECT version FROM pawl_migrations ORDER BY version", []);
    return rows.map((row) => Number(row.version));
  };
  const session: MigrationSession = { applied, apply: (migration) => apply(db, migration) };
  // The lock is that of each batch; the process that gets it second finds the migration done.
  return { applied, locked: (work) => work(session) };
}

async function apply(db: RemoteDatabase, { version, name, statements }: Migration): Promise<void> {
  const plan = new Plan<"applied already">();
  plan.add(migrationsTable);
  plan.guard("applied already", guardOf(isNew), version);
  for (const statement of statements) plan.add(statement);
  plan.add(record, version, name);
  try {
    await db.write(plan.statements);
  } catch (error) {
    const failed = guardThatFailed((error as Error).cause);
    if (failed === null || plan.refusalAt(failed) === null) throw error;
  }
}
