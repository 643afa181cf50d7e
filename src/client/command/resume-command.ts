/** What `resume()` can be told. */
import { encode } from "../../core/encoding/encode.js";
import { InvalidInputError } from "../../core/errors/errors.js";
import { checkOptions } from "../../core/naming/check-options.js";
import type { Command } from "../../core/run/stored-schema.js";

export interface ResumeOptions {
  /** The result of the step that the run is stuck at, which then counts as done. */
  readonly output?: unknown;
  /**
   * Names of calls that differ between the code and the log of the run, and are meant to: those that only the code has
   * are made, those that only the log has are left behind.
   */
  readonly accept?: readonly string[];
  /** Names in the log, and the names that the same calls have in the code now. */
  readonly renamed?: Readonly<Record<string, string>>;
}

const resumeOptions = new Set<string>(["output", "accept", "renamed"] satisfies (keyof ResumeOptions)[]);

export function resumeCommand(options: ResumeOptions): Extract<Command, { type: "resume" }> {
  checkOptions("resume()", options, resumeOptions);
  const { accept, renamed } = options;
  const output = "output" in options ? encode(options.output, { label: "the output given to resume()" }) : null;
  if (accept !== undefined && !(Array.isArray(accept) && accept.every(isName)))
    throw new InvalidInputError("resume({ accept }) takes a list of names of steps.");
  if (renamed !== undefined && !(isObject(renamed) && Object.entries(renamed).flat().every(isName)))
    throw new InvalidInputError('resume({ renamed }) takes an object such as { "old name": "new name" }.');
  return {
    type: "resume",
    output,
    ...(accept === undefined ? {} : { accept }),
    ...(renamed === undefined ? {} : { renamed }),
  };
}

const isName = (value: unknown) => typeof value === "string" && value !== "";
const isObject = (value: unknown) => typeof value === "object" && value !== null && !Array.isArray(value);
