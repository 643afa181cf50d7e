/** Finds the command, runs it, and turns an error into one sentence and exit code 1. */
import { readFileSync } from "node:fs";
import { inspect } from "node:util";
import { AlreadyReportedError, CliError, sentenceOf } from "./cli-error.js";
import type { Call } from "./command.js";
import { parseCommandLine } from "./command-line.js";
import { groups } from "./commands.js";
import { helpFor, overview } from "./help-text.js";
import { Output, type TextStream } from "./output.js";
import { printable } from "./table.js";

export interface ProgramIo extends Pick<Call, "env"> {
  readonly stdout: TextStream;
  readonly stderr: TextStream;
}

/** @returns the exit code */
export async function runProgram(argv: readonly string[], { stdout, stderr, env }: ProgramIo): Promise<number> {
  try {
    const { command, args, options, globals } = parseCommandLine(argv, groups);
    const out = new Output({
      stdout,
      stderr,
      json: globals.json === true,
      debug: globals.debug === true,
      noColor: env.NO_COLOR,
    });
    if (globals.version === true) out.line(version());
    else if (command === null) for (const line of overview(groups, out)) out.line(line);
    else if (globals.help === true) for (const line of helpFor(command, out)) out.line(line);
    else await command.run({ args, options, globals, out, env, groups });
    return 0;
  } catch (error) {
    if (error instanceof AlreadyReportedError) return error.exitCode;
    stderr.write(`${argv.includes("--debug") ? inspect(error) : errorSentence(error)}\n`);
    return 1;
  }
}

function errorSentence(error: unknown): string {
  const sentence = printable(sentenceOf(error));
  // A message of one word, such as a driver's error code, needs an introduction to be understood.
  return error instanceof CliError || sentence.includes(" ") ? sentence : `Something went wrong: ${sentence}`;
}

function version(): string {
  const file = new URL("../../package.json", import.meta.url);
  return (JSON.parse(readFileSync(file, "utf8")) as { readonly version: string }).version;
}
