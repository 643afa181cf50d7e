/** How far a run and its steps are, from the one row per step that is overwritten all the time. */
import { readProgress } from "../../core/run/progress.js";
import type { CursorRow } from "../../store/contract/store.js";

export interface ProgressInfo {
  /** The step; "" for the run itself. */
  readonly node: string;
  readonly done: number;
  readonly total: number | null;
  readonly message: string | null;
  /** Items a second in the latest execution of a resumable step; null when that is not known. */
  readonly rate: number | null;
  /** Milliseconds until it is through at this rate; null without a total. */
  readonly etaMs: number | null;
  readonly at: Date;
}

export function progressOf(rows: readonly CursorRow[]): ProgressInfo[] {
  const ordered = [...rows].sort((a, b) => (a.node < b.node ? -1 : 1));
  return ordered.flatMap((row) => {
    if (row.progress === null) return [];
    const { done, total, message, items = 0, ms = 0 } = readProgress(row.progress);
    const rate = items > 0 && ms > 0 ? (items * 1_000) / ms : null;
    const etaMs = rate === null || total === null ? null : Math.round((Math.max(0, total - done) * 1_000) / rate);
    return [{ node: row.node, done, total, message, rate, etaMs, at: new Date(row.at) }];
  });
}
