/** Reads the progress of a run and its steps from their cursor rows. */
import { readProgress } from "../../core/run/progress.js";
import type { CursorRow } from "../../store/contract/store.js";

/** The progress of a run or a step, as `run.progress()` returns it. */
export interface ProgressInfo {
  /** The name of the step; "" for the run itself. */
  readonly node: string;
  /** How much of `total` is done. */
  readonly done: number;
  /** How much there is to do; null if the step did not report it. */
  readonly total: number | null;
  /** The message of the last report; null if it had none. */
  readonly message: string | null;
  /** The items per second in the latest execution of a resumable step; null if that is not known. */
  readonly rate: number | null;
  /** The milliseconds until all items are done at this rate; null without a rate or a total. */
  readonly etaMs: number | null;
  /** When the progress was last stored. */
  readonly at: Date;
}

export function progressOf(rows: readonly CursorRow[]): ProgressInfo[] {
  const sortedRows = [...rows].sort((a, b) => (a.node < b.node ? -1 : 1));
  return sortedRows.flatMap((row) => {
    if (row.progress === null) return [];
    const { done, total, message, items = 0, ms = 0 } = readProgress(row.progress);
    const rate = items > 0 && ms > 0 ? (items * 1_000) / ms : null;
    const etaMs = rate === null || total === null ? null : Math.round((Math.max(0, total - done) * 1_000) / rate);
    return [{ node: row.node, done, total, message, rate, etaMs, at: new Date(row.at) }];
  });
}
