/** A commit was refused because the run's log does not end where its owner thinks, or the run is not its own. */
export class LogConflict extends RangeError {
  /** Where the owner thinks that the log ends. */
  readonly after: number;

  constructor(runId: string, after: number) {
    super(`Run ${runId} was not written: its log does not end at ${after}, or it has another owner.`);
    this.after = after;
  }
}
