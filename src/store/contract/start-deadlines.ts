/**
 * The part of a store that knows by when runs must begin (`NewRun.startBy`). The row of such a run is written with the run.
 * A run that begins leaves its row as it is, so a claim costs nothing: a worker removes the row when its instant has come.
 */
export interface StartDeadline {
  readonly runId: string;
  readonly at: number;
}

export interface StartDeadlines {
  /** The earliest deadlines, ordered by instant, and the store's time; null if there are none. */
  earliest(limit: number): Promise<{ readonly now: number; readonly deadlines: readonly StartDeadline[] } | null>;
  /** The deadlines of these runs, in any order; runs without one are missing. */
  ofRuns(runIds: readonly string[]): Promise<readonly StartDeadline[]>;
  /** Removes these rows. A row whose instant has changed meanwhile stays. */
  remove(deadlines: readonly StartDeadline[]): Promise<void>;
}
