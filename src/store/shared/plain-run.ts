/** Recognizes the new runs for which a store writes only the columns that every run has. */
import type { NewRun } from "../contract/store.js";

/**
 * Whether the run has neither a hero nor keys, tags, a parent or an origin (a person or a schedule that has started it). Most
 * runs are like this. Leaving out the eleven columns that would all be NULL spares the process and the database about a
 * twentieth of the time that a one-step run takes.
 */
export const isPlainRun = (run: NewRun): boolean =>
  run.heroType === null &&
  run.heroId === null &&
  run.heroKey === null &&
  run.startKey === null &&
  run.tags.length === 0 &&
  run.parentId === null &&
  run.parentNode === null &&
  run.parentIndex === null &&
  run.parentAttempt === null &&
  run.startedBy === undefined &&
  run.schedule === undefined;
