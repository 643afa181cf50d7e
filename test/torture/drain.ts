/**
 * When the faults are over, paused runs are resumed, waiting runs get their signals, and everything must end within a
 * bound.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Pawl } from "pawl";
import type { RawSql, Row } from "../support/raw-sql.js";
import type { LedgerWriter } from "./ledger.js";

/** The longest time that a database keeps the locks of a dead session (60 s), and as much again for the work itself. */
const maxStallMs = 100_000;
/** The bound is extended for as long as runs still end, up to this limit. */
const limitMs = 240_000;

export interface Drained {
  readonly ms: number;
  readonly open: number;
  /** The library's explanation of why the runs have not ended, by run id. */
  readonly explanations: ReadonlyMap<string, string>;
}

export async function drain(pawl: Pawl, sql: RawSql, ledger: LedgerWriter, random: () => number): Promise<Drained> {
  const beganAt = Date.now();
  let [least, leastAt] = [Number.POSITIVE_INFINITY, beganAt];
  for (;;) {
    const open = await sql.query("SELECT id, status FROM pawl_runs WHERE finished_at IS NULL");
    if (open.length < least) [least, leastAt] = [open.length, Date.now()];
    const ms = Date.now() - beganAt;
    const isOver = open.length === 0 || ms > limitMs || Date.now() - leastAt > maxStallMs;
    if (isOver) return { ms, open: open.length, explanations: await explain(pawl, open) };
    for (const row of open) await nudge(pawl, row, ledger, random).catch(() => {});
    await sleep(500);
  }
}

async function nudge(pawl: Pawl, row: Row, ledger: LedgerWriter, random: () => number): Promise<void> {
  const run = pawl.run(String(row.id));
  if (row.status === "paused") {
    if (random() < 0.2) await run.skip().catch(() => run.resume());
    else await run.resume();
  } else if (row.status === "waiting") {
    const { waitingFor } = await run.get();
    for (const one of waitingFor)
      if (one.kind === "signal") await signal(pawl, String(row.id), one.names[0] as string, ledger);
  }
}

let signals = 0;

async function signal(pawl: Pawl, run: string, name: string, ledger: LedgerWriter): Promise<void> {
  signals += 1;
  const [id, key] = [`drain-${signals}`, `sig-drain-${signals}`];
  const intent = { id, command: "signal", workflow: null, run, signal: name, key, at: Date.now() } as const;
  ledger.write({ kind: "intent", ...intent });
  await pawl.run(run).signal(name, key, { key });
  ledger.write({ kind: "answer", id, answer: "acknowledged", run: null, error: null, at: Date.now() });
}

async function explain(pawl: Pawl, open: readonly Row[]): Promise<Map<string, string>> {
  const explanations = new Map<string, string>();
  for (const { id } of open.slice(0, 50)) {
    const text = await pawl
      .run(String(id))
      .explain()
      .then(
        (explanation) => JSON.stringify(explanation),
        (error) => String(error),
      );
    explanations.set(String(id), text);
  }
  return explanations;
}
