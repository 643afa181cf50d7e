/** The check that every function with options makes: a misspelt option would silently not take effect. */
import { InvalidInputError } from "../errors/errors.js";
import { didYouMean } from "./nearest.js";

/**
 * @param of what was given the options, as it begins a sentence: `prune()`, `Step "charge"`
 * @throws InvalidInputError that names the unknown option, the closest known one, and all that there are
 */
export function checkOptions(of: string, options: unknown, known: ReadonlySet<string>, noun = "option"): void {
  if (typeof options !== "object" || options === null || Array.isArray(options)) throw notAnObject(of, options, noun);
  for (const option in options) if (!known.has(option)) throw unknownOption(of, option, [...known], noun);
}

function unknownOption(of: string, option: string, known: readonly string[], noun: string): InvalidInputError {
  const meant = didYouMean(option, known);
  const all = known.length === 1 ? `only ${noun} is ${known[0]}.` : `${noun}s are ${known.join(", ")}.`;
  return new InvalidInputError(`${of} has no ${noun} "${option}"${meant === "" ? "; its " : `${meant} Its `}${all}`);
}

function notAnObject(of: string, given: unknown, noun: string): InvalidInputError {
  const what = given === null ? "null" : Array.isArray(given) ? "a list" : `a ${typeof given}`;
  return new InvalidInputError(
    `${of} takes its ${noun}s as an object, not ${what === "a undefined" ? "undefined" : what}.`,
  );
}

/** @param what is to be a number above 0, as it begins a sentence: `The concurrency of graph "order"` */
export function checkWholeNumber(what: string, value: number): number {
  if (Number.isInteger(value) && value > 0) return value;
  throw new InvalidInputError(`${what} is a whole number above 0, not ${String(value)}.`);
}
