/** The settings of Pawl's sessions, and why they are needed. */
import type { PgClient } from "./driver.js";

/**
 * A process that stops inside a transaction of Pawl's own, which has no user code, would keep its row locks for as long as
 * it is stopped, and the commits of all other workers would wait for them.
 */
export const idleInTransactionTimeout = "idle_in_transaction_session_timeout = '20s'";

/**
 * A prepared statement is planned once, often while the queue's tables are empty. The best plan for an empty table (to
 * read all of it) is very slow when the table is full. These settings leave the planner no choice: each table is
 * searched by index, with a condition of its own, and the results are joined by hashing. plans.test.ts checks every
 * statement for this. jit is off because the high costs of disabled plan types would trigger it.
 */
export const sessionSettings = [
  "plan_cache_mode = force_generic_plan",
  "enable_seqscan = off",
  "enable_bitmapscan = off",
  "enable_nestloop = off",
  "enable_mergejoin = off",
  "jit = off",
  // A statement that waited for a row lock continues with the new version; under REPEATABLE READ it would fail.
  "default_transaction_isolation = 'read committed'",
  "statement_timeout = 0",
  "lock_timeout = 0",
  idleInTransactionTimeout,
];

/** Settings for transactions with user code, whose queries must not be slowed down by Pawl's planner settings. */
export const transactionSettings = ["statement_timeout = 0", "idle_in_transaction_session_timeout = '60s'"];

export const isSessionOf = ({ processID }: PgClient): string => `pg_backend_pid() = ${processID ?? 0}`;

/** A statement that changes the settings if the condition is true, and has no effect otherwise. */
export function setConfigIf(settings: readonly string[], condition: string): string {
  const calls = settings.map((setting) => {
    const [name, value] = setting.split(" = ") as [string, string];
    return `set_config('${name}', '${value.replaceAll("'", "")}', false)`;
  });
  return `SELECT ${calls.join(", ")} WHERE ${condition}`;
}
