/** Closes a ledger day by day, then archives it in numbered batches: one cursor is a date, the other a number. */
import { Workflow } from "pawl";
import { ledger } from "./ledger.js";

export interface Closing {
  readonly from: Date;
  /** The last day; defaults to today. */
  readonly until?: Date;
  readonly batches: number;
}

export class CloseLedger extends Workflow<unknown, Closing> {
  static {
    // A week at a time; then other runs get a turn.
    this.resumableStep("process_days", { maxIterations: 7 }, async (w, iter) => {
      const last = w.input.until ?? w.now();
      for (let day: Date = iter.cursor ?? w.input.from; day <= last; day = dayAfter(day)) {
        await ledger.closeDay(day);
        await iter.set(dayAfter(day));
      }
    });

    this.resumableStep("process_batches", async (w, iter) => {
      iter.total(w.input.batches);
      for (let batch: number = iter.cursor ?? 0; batch < w.input.batches; batch += 1) {
        await ledger.archiveBatch(batch);
        await iter.advance();
      }
    });
  }
}

function dayAfter(day: Date): Date {
  const next = new Date(day);
  next.setUTCDate(day.getUTCDate() + 1);
  return next;
}
