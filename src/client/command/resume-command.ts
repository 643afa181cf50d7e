/** Turns the options of `run.resume()` into a command. */
import { encode } from "../../core/encoding/encode.js";
import { InvalidInputError } from "../../core/errors/errors.js";
import { checkOptions } from "../../core/naming/check-options.js";
import type { Command } from "../../core/run/stored-schema.js";
import { auditField, type CommandOptions, commandOptionNames } from "./command-options.js";

/** Options of `run.resume()`. */
export interface ResumeOptions extends CommandOptions {
  /** The result of the step that the run is paused at; the step then counts as completed. */
  readonly output?: unknown;
  /**
   * Names of calls that only the code or only the log contains. An accepted call that only the code contains is executed; an
   * accepted call that only the log contains is ignored.
   */
  readonly accept?: readonly string[];
  /** Renamed calls: the name in the log, and the name in the code now, such as `{ bill: "charge" }`. */
  readonly renamed?: Readonly<Record<string, string>>;
}

const resumeOptions = new Set<string>([
  "output",
  "accept",
  "renamed",
  ...commandOptionNames,
] satisfies (keyof ResumeOptions)[]);

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
    ...auditField(options),
  };
}

const isName = (value: unknown) => typeof value === "string" && value !== "";
const isObject = (value: unknown) => typeof value === "object" && value !== null && !Array.isArray(value);
