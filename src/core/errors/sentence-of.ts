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
