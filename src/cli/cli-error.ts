/** Something is wrong that the user can mend: one plain sentence, exit code 1, no stack. */
export class CliError extends Error {
  override readonly name = "CliError";
}

/** The process ends with this exit code, and says no more: another process has told why. */
export class AlreadyReportedError extends Error {
  readonly exitCode: number;

  constructor(exitCode: number) {
    super();
    this.exitCode = exitCode;
  }
}

/** Any error as one sentence. Drivers throw errors without a message (a refused connection is an AggregateError). */
export function sentenceOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const [first] = error instanceof AggregateError ? (error.errors as unknown[]) : [];
  if (error.message === "") return first === undefined ? error.name : sentenceOf(first);
  return error.message.trim().split("\n")[0] as string;
}
