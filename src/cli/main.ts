#!/usr/bin/env node
/** The command line: finds the command, runs it, and turns whatever goes wrong into one sentence and exit code 1. */
import { readFileSync } from "node:fs";
import { inspect } from "node:util";
import { CliError, sentenceOf } from "./cli-error.js";
import { groups } from "./commands.js";
import { helpFor, overview } from "./help-text.js";
import { Output } from "./output.js";
import { parse } from "./parse.js";
import { printable } from "./table.js";

const { stdout, stderr, argv, env } = process;

// Whoever reads may have seen enough (`pawl runs | head -1`). That is no reason for a worker to stop.
for (const stream of [stdout, stderr]) {
  stream.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code !== "EPIPE") throw error;
  });
}

const exitCode = await main(argv.slice(2));
// Modules of the user may have opened what nobody closes.
stdout.write("", () => process.exit(exitCode));

async function main(typed: readonly string[]): Promise<number> {
  try {
    const { command, args, options, globals } = parse(typed, groups);
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
    stderr.write(`${typed.includes("--debug") ? inspect(error) : inOneSentence(error)}\n`);
    return 1;
  }
}

function inOneSentence(error: unknown): string {
  const sentence = printable(sentenceOf(error));
  // What is neither ours nor said by the library may need its name to be understood.
  return error instanceof CliError || sentence.includes(" ") ? sentence : `Something went wrong: ${sentence}`;
}

function version(): string {
  const file = new URL("../../package.json", import.meta.url);
  return (JSON.parse(readFileSync(file, "utf8")) as { readonly version: string }).version;
}
