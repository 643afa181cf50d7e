/** A commit was refused because the run's log ends at another position than its worker assumes, or has another owner. */
export class LogConflict extends RangeError {
  /** The position at which the worker assumed that the log ends. */
  readonly after: number;

  constructor(runId: string, after: number) {
    super(`Run ${runId} was not written: its log does not end at event ${after}, or another worker owns it.`);
    this.after = after;
  }
}
