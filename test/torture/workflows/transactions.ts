/** Transactional steps that write to a table of the user, also late and concurrently with each other. */
import { type WorkflowContext, workflow } from "pawl";
import type { StoreName } from "../stores.js";
import { type Bench, sleep } from "./tools.js";

export type BookingMode = "plain" | "late" | "contended" | "caught";

interface Tx {
  query(sql: string, values: readonly unknown[]): Promise<unknown>;
}

/** The tables of the user. No key is unique, so that a row that is written twice is visible twice. */
export const userTables = [
  "CREATE TABLE torture_rows (run_id VARCHAR(64) NOT NULL, node VARCHAR(64) NOT NULL, token VARCHAR(64) NOT NULL)",
  "CREATE TABLE torture_counters (id INTEGER NOT NULL PRIMARY KEY, n INTEGER NOT NULL)",
  "INSERT INTO torture_counters (id, n) VALUES (1, 0), (2, 0)",
];

/** How long a transaction holds one counter before it locks the other: on SQLite the others can only wait. */
const overlapMs: Record<StoreName, number> = { sqlite: 5, postgres: 20, mysql: 60 };

const retry = { attempts: 8, initial: 50, factor: 2, max: 1_000 } as const;

export function transactionWorkflow(bench: Bench) {
  const sql = statementsOf(bench.store);

  const book = (ctx: WorkflowContext<any>, node: string, mode: BookingMode, flip: boolean) => {
    const body = async (tx: Tx, { attempt, idempotencyKey: key }: { attempt: number; idempotencyKey: string }) => {
      const token = bench.ledger.newToken();
      bench.ledger.write({ kind: "begin", run: ctx.runId, step: node, key, token, pid: process.pid, at: Date.now() });
      // The attempt that is too late writes through a handle whose transaction has ended; none of its writes may last.
      if (mode === "late" && attempt === 1) await sleep(500);
      if (mode === "contended" || mode === "caught") {
        for (const id of flip ? [2, 1] : [1, 2]) {
          const counted = tx.query(sql.count, [id]);
          // User code that catches a deadlock continues in a transaction that was rolled back.
          await (mode === "caught" ? counted.catch(unlessDeadlock) : counted);
          await sleep(Math.random() * overlapMs[bench.store]);
        }
      }
      await tx.query(sql.insert, [ctx.runId, node, token]);
      bench.ledger.write({ kind: "end", token, at: Date.now() });
      return token;
    };
    return ctx.transaction(node, body, mode === "late" ? { retry, timeout: 200 } : { retry, timeout: 15_000 });
  };

  return workflow("booker", async (ctx, { modes, flip }: { modes: readonly BookingMode[]; flip: boolean }) => {
    const seen: unknown[] = [];
    for (const [index, mode] of modes.entries()) seen.push(await book(ctx, `${mode}_${index}`, mode, flip));
    return { seen };
  });
}

function unlessDeadlock(error: { readonly code?: string }): void {
  if (error.code !== "ER_LOCK_DEADLOCK" && error.code !== "40P01") throw error;
}

const statementsOf = (store: StoreName) =>
  store === "postgres"
    ? {
        insert: "INSERT INTO torture_rows (run_id, node, token) VALUES ($1, $2, $3)",
        count: "UPDATE torture_counters SET n = n + 1 WHERE id = $1",
      }
    : {
        insert: "INSERT INTO torture_rows (run_id, node, token) VALUES (?, ?, ?)",
        count: "UPDATE torture_counters SET n = n + 1 WHERE id = ?",
      };
