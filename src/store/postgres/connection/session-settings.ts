/** How the sessions of the server are set up, and why. */
import type { PgClient } from "./driver.js";

/**
 * A plan is made once and kept, and at that time a queue's tables are often empty; what the planner likes then (to begin
 * with all of a table, since there is nothing in it) is ruinous later. So nothing is left to it: planned once, tables are
 * only ever searched by index, each by a condition of its own, and what was found is joined by hashing. plans.test.ts
 * holds every statement to this. jit would be triggered by the costs of what is switched off.
 */
export const sessionSettings = [
  "plan_cache_mode = force_generic_plan",
  "enable_seqscan = off",
  "enable_bitmapscan = off",
  "enable_nestloop = off",
  "enable_mergejoin = off",
  "jit = off",
  // Statements wait for the row they need and look again; under REPEATABLE READ they would fail.
  "default_transaction_isolation = 'read committed'",
  "statement_timeout = 0",
  "lock_timeout = 0",
];

/** For transactions that run user code, which must not be slowed by our settings. */
export const transactionSettings = ["statement_timeout = 0", "idle_in_transaction_session_timeout = '60s'"];

export const isSessionOf = ({ processID }: PgClient): string => `pg_backend_pid() = ${processID ?? 0}`;

/** The settings, made if the condition holds: one statement without effect otherwise. */
export function setConfigIf(settings: readonly string[], condition: string): string {
  const calls = settings.map((setting) => {
    const [name, value] = setting.split(" = ") as [string, string];
    return `set_config('${name}', '${value.replaceAll("'", "")}', false)`;
  });
  return `SELECT ${calls.join(", ")} WHERE ${condition}`;
}
