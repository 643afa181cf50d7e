export { sentenceOf } from "../core/errors/sentence-of.js";

/** An error that the user can correct. It is printed as one sentence without a stack, and the exit code is 1. */
export class CliError extends Error {
  override readonly name = "CliError";
}

/** Ends the process with this exit code and prints nothing, because another process has printed the error. */
export class AlreadyReportedError extends Error {
  readonly exitCode: number;

  constructor(exitCode: number) {
    super();
    this.exitCode = exitCode;
  }
}
