import { InvalidInputError } from "./errors.js";

/** An option that nobody knows is a slip of the pen: what was meant by it would silently not happen. */
export function checkOptions(of: string, options: object, known: ReadonlySet<string>): void {
  for (const option in options)
    if (!known.has(option)) throw new InvalidInputError(`${of} has an option "${option}", which does not exist.`);
}
