/**
 * The store refused a commit because the run's log does not end where the worker assumes, or because another worker
 * owns the run.
 */
export class LogConflict extends RangeError {
  /** The position at which the worker assumed that the log ends. */
  readonly after: number;

  constructor(runId: string, after: number) {
    super(`Run ${runId} was not written: its log does not end at event ${after}, or another worker owns it.`);
    this.after = after;
  }
}
