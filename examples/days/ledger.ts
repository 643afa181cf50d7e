/**
 * A ledger to close, as a small fake: it closes days and archives batches, and a test can make one of the days not
 * balance.
 */
import { Effects } from "../effects.js";

class Ledger {
  readonly effects = new Effects<string>();
  /** Such as "2024-02-29". */
  wrongDay: string | null = null;

  async closeDay(day: Date): Promise<void> {
    const name = day.toISOString().slice(0, 10);
    if (name === this.wrongDay) throw new Error(`The entries of ${name} do not add up.`);
    this.effects.once(name, name);
  }

  async archiveBatch(batch: number): Promise<void> {
    this.effects.once(`batch ${batch}`, `batch ${batch}`);
  }
}

export const ledger = new Ledger();
