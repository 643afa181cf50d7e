/**
 * Reads the options of thrown errors that say when the run continues. Their values often come from outside, such as a
 * `Retry-After` header, and may be invalid. An invalid option is ignored, because a thrown error must not end the worker.
 */
import { type Duration, parseDuration } from "../naming/duration.js";
import { checkName } from "../naming/names.js";
import { PauseError, TransientError } from "./errors.js";

/** The error's `retryAfter` in milliseconds; undefined when the option is absent or invalid. */
export function retryAfterOf(error: unknown): number | undefined {
  if (!(error instanceof TransientError)) return undefined;
  return readOption(error, "retryAfter", readDuration).value;
}

export interface ThrownPauseOptions {
  /** The name of the signal that resumes the run. */
  readonly resumeOn?: string;
  /** After how many milliseconds the step runs again without a signal or an operator. */
  readonly recheckMs?: number;
}

/** The valid options of a PauseError, which say what ends the pause if no operator resumes the run. */
export function pauseOptionsOf(error: PauseError): ThrownPauseOptions {
  const { value: resumeOn } = readOption(error, "resumeOn", readSignalName);
  const { value: recheckMs } = readOption(error, "recheckAfter", readDuration);
  return {
    ...(resumeOn === undefined ? {} : { resumeOn }),
    ...(recheckMs === undefined ? {} : { recheckMs }),
  };
}

/** The invalid options of the error, as sentences for a warning; null when there are none. */
export function describeInvalidOptions(error: unknown): string | null {
  const problems: string[] = [];
  if (error instanceof TransientError)
    problems.push(...describeProblem(error, "retryAfter", readDuration, policyDelayUsed));
  if (error instanceof PauseError) {
    problems.push(...describeProblem(error, "recheckAfter", readDuration, "The run is not rechecked by itself."));
    problems.push(...describeProblem(error, "resumeOn", readSignalName, "No signal resumes the run."));
  }
  return problems.length === 0 ? null : problems.join(" ");
}

const policyDelayUsed = "The delay of the retry policy is used instead.";

const readDuration = (value: unknown, name: string) => parseDuration(value as Duration, name);
const readSignalName = (value: unknown) => checkName("signal", value);

type OptionReader<Value> = (value: unknown, name: string) => Value;

/**
 * Reads and checks one option. The `try` is needed because the option, or a member of its value, may be a getter that
 * throws.
 */
function readOption<Value>(
  error: object,
  name: string,
  read: OptionReader<Value>,
): { readonly value?: Value; readonly problem?: string } {
  try {
    const value: unknown = Reflect.get(error, name);
    return value === undefined ? {} : { value: read(value, name) };
  } catch (problem) {
    return { problem: problem instanceof Error ? problem.message : `The ${name} cannot be read.` };
  }
}

function describeProblem(error: object, name: string, read: OptionReader<unknown>, consequence: string): string[] {
  const { problem } = readOption(error, name, read);
  return problem === undefined
    ? []
    : [`A thrown ${error.constructor.name} has a bad ${name}: ${problem} ${consequence}`];
}
