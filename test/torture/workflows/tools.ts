/** What the workflows of a campaign share. */
import { setTimeout as sleep } from "node:timers/promises";
import type { LedgerWriter } from "../ledger.js";
import type { StoreName } from "../stores.js";

export interface Bench {
  readonly ledger: LedgerWriter;
  readonly store: StoreName;
}

interface KeyedTools {
  readonly idempotencyKey: string;
}

/** A body that takes up to `ms` milliseconds and notes its start and end in the ledger. */
export function work({ ledger }: Bench, run: string, step: string, { idempotencyKey }: KeyedTools, ms = 20) {
  return ledger.effect({ run, step, key: idempotencyKey }, async () => {
    await sleep(Math.random() * ms);
  });
}

/** The same, but it throws before its end. */
export async function failingWork(bench: Bench, run: string, step: string, tools: KeyedTools, error: Error) {
  await bench.ledger.effect({ run, step, key: tools.idempotencyKey }, async () => {
    await sleep(Math.random() * 20);
    throw error;
  });
}

export { sleep };
