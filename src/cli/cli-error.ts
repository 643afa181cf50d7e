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

/**
 * Returns any error as one sentence. Some errors of drivers have no message (a refused connection is an
 * AggregateError).
 */
export function sentenceOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const [first] = error instanceof AggregateError ? (error.errors as unknown[]) : [];
  if (error.message === "") return first === undefined ? error.name : sentenceOf(first);
  return error.message.trim().split("\n")[0] as string;
}
