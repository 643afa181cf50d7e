/** Checks of options. Unknown options are rejected, because a misspelt option would otherwise have no effect. */
import { InvalidInputError } from "../errors/errors.js";
import { didYouMean } from "./nearest-word.js";

/**
 * @param subject the beginning of the error's sentence, such as `prune()` or `Step "charge"`
 * @throws InvalidInputError that names the unknown option, the closest known option, and all known options
 */
export function checkOptions(
  subject: string,
  options: unknown,
  knownOptions: ReadonlySet<string>,
  noun = "option",
): void {
  if (typeof options !== "object" || options === null || Array.isArray(options))
    throw notAnObject(subject, options, noun);
  for (const option in options)
    if (!knownOptions.has(option)) throw unknownOption(subject, option, [...knownOptions], noun);
}

function unknownOption(
  subject: string,
  option: string,
  knownOptions: readonly string[],
  noun: string,
): InvalidInputError {
  const suggestion = didYouMean(option, knownOptions);
  const knownList =
    knownOptions.length === 1 ? `only ${noun} is ${knownOptions[0]}.` : `${noun}s are ${knownOptions.join(", ")}.`;
  return new InvalidInputError(
    `${subject} has no ${noun} "${option}"${suggestion === "" ? "; its " : `${suggestion} Its `}${knownList}`,
  );
}

function notAnObject(subject: string, value: unknown, noun: string): InvalidInputError {
  const valueType = value === null ? "null" : Array.isArray(value) ? "a list" : `a ${typeof value}`;
  return new InvalidInputError(
    `${subject} takes its ${noun}s as an object, not ${valueType === "a undefined" ? "undefined" : valueType}.`,
  );
}

/** @param subject the beginning of the error's sentence, such as `The concurrency of graph "order"` */
export function checkWholeNumber(subject: string, value: number): number {
  if (Number.isInteger(value) && value > 0) return value;
  throw new InvalidInputError(`${subject} is a whole number above 0, not ${String(value)}.`);
}
