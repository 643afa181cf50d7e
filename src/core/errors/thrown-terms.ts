/**
 * What a thrown error says about when to go on. Such words often come from elsewhere, a `Retry-After` header for one, and
 * may be nonsense: then they count as not said, because user code must not be able to end its worker by throwing.
 */
import { type Duration, parseDuration } from "../naming/duration.js";
import { checkName } from "../naming/names.js";
import { PauseError, TransientError } from "./errors.js";

/** After how many milliseconds the error asks for another attempt; undefined when it does not say, or says nonsense. */
export function retryAfterOf(error: unknown): number | undefined {
  if (!(error instanceof TransientError)) return undefined;
  return said(error, "retryAfter", durationIn).value;
}

export interface PauseTerms {
  readonly resumeOn?: string;
  readonly recheckMs?: number;
}

/** What ends the pause beside a person. */
export function pauseTermsOf(error: PauseError): PauseTerms {
  const { value: resumeOn } = said(error, "resumeOn", signalIn);
  const { value: recheckMs } = said(error, "recheckAfter", durationIn);
  return {
    ...(resumeOn === undefined ? {} : { resumeOn }),
    ...(recheckMs === undefined ? {} : { recheckMs }),
  };
}

/** The nonsense in such an error, as sentences for a warning; null when there is none. */
export function nonsenseIn(error: unknown): string | null {
  const problems: string[] = [];
  if (error instanceof TransientError) problems.push(...problemOf(error, "retryAfter", durationIn, theDelay));
  if (error instanceof PauseError) {
    problems.push(...problemOf(error, "recheckAfter", durationIn, "The run is not rechecked by itself."));
    problems.push(...problemOf(error, "resumeOn", signalIn, "No signal resumes the run."));
  }
  return problems.length === 0 ? null : problems.join(" ");
}

const theDelay = "The delay of the retry policy is used instead.";

const durationIn = (value: unknown, name: string) => parseDuration(value as Duration, name);
const signalIn = (value: unknown) => checkName("signal", value);

type Read<Value> = (value: unknown, name: string) => Value;

/** The member may be a getter that throws, and so may those of its value. */
function said<Value>(
  error: object,
  name: string,
  read: Read<Value>,
): { readonly value?: Value; readonly problem?: string } {
  try {
    const value: unknown = Reflect.get(error, name);
    return value === undefined ? {} : { value: read(value, name) };
  } catch (problem) {
    return { problem: problem instanceof Error ? problem.message : `The ${name} cannot be read.` };
  }
}

function problemOf(error: object, name: string, read: Read<unknown>, consequence: string): string[] {
  const { problem } = said(error, name, read);
  return problem === undefined
    ? []
    : [`A thrown ${error.constructor.name} has a bad ${name}: ${problem} ${consequence}`];
}
