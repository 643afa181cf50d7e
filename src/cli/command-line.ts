/** Parses the command line into a command, its arguments and its options. Invalid input is refused with one sentence. */
import { parseArgs } from "node:util";
import { didYouMean } from "../core/naming/nearest-word.js";
import { CliError } from "./cli-error.js";
import {
  type Command,
  type CommandGroup,
  commandsIn,
  globalOptions,
  type OptionSpecs,
  type OptionValues,
  usageOf,
} from "./command.js";

export interface ParsedCommandLine {
  readonly command: Command | null;
  readonly args: readonly string[];
  readonly options: OptionValues<OptionSpecs>;
  readonly globals: OptionValues<typeof globalOptions>;
}

export function parseCommandLine(argv: readonly string[], groups: readonly CommandGroup[]): ParsedCommandLine {
  const commandIndex = findCommandIndex(argv);
  if (commandIndex === -1) return { command: null, args: [], options: {}, globals: readOptions(argv, {}, null).values };
  const command = findCommand(argv[commandIndex] as string, groups);
  const rest = argv.filter((_, index) => index !== commandIndex);
  const { values, args } = readOptions(rest, command.options, command);
  if (values.help !== true) checkArgs(command, args);
  return { command, args, options: values, globals: values };
}

export function findCommand(name: string, groups: readonly CommandGroup[]): Command {
  const commands = commandsIn(groups);
  const match = commands.find((command) => command.name === name);
  if (match !== undefined) return match;
  const suggestion = didYouMean(
    name,
    commands.map((command) => command.name),
  );
  throw new CliError(`There is no command "${name}"${suggestion || ". `pawl help` lists them."}`);
}

/** Returns the index of the first word that is neither an option nor the value of a global option. */
function findCommandIndex(argv: readonly string[]): number {
  const { tokens } = parseArgs({
    args: [...argv],
    options: typesOf(globalOptions),
    strict: false,
    allowPositionals: true,
    tokens: true,
  });
  return tokens.find(({ kind }) => kind === "positional")?.index ?? -1;
}

/** Returns the specs with only the fields that parseArgs knows, because it refuses any other. */
function typesOf(specs: OptionSpecs) {
  return Object.fromEntries(
    Object.entries(specs).map(([name, { type, multiple = false }]) => [name, { type, multiple }]),
  );
}

function readOptions(argv: readonly string[], commandOptions: OptionSpecs, command: Command | null) {
  const specs: OptionSpecs = { ...globalOptions, ...commandOptions };
  const short = { h: "help", v: "version" } as const;
  const args = argv.map((arg) => {
    const letter = /^-([hv])$/.exec(arg)?.[1] as keyof typeof short | undefined;
    return letter === undefined ? arg : `--${short[letter]}`;
  });
  const { values, positionals, tokens } = parseArgs({
    args,
    options: typesOf(specs),
    strict: false,
    allowPositionals: true,
    tokens: true,
  });
  for (const token of tokens) {
    if (token.kind !== "option") continue;
    const spec = specs[token.name];
    if (spec === undefined) throw unknownOptionError(token.rawName, specs, command);
    checkValue(token.name, spec, token.value, token.inlineValue === true);
  }
  return { values: values as OptionValues<OptionSpecs> & OptionValues<typeof globalOptions>, args: positionals };
}

function unknownOptionError(raw: string, specs: OptionSpecs, command: Command | null): CliError {
  const names = Object.keys(specs).map((name) => `--${name}`);
  const name = command === null ? "" : ` ${command.name}`;
  const suggestion = didYouMean(raw, names);
  return new CliError(`pawl${name} has no option "${raw}"${suggestion || `. \`pawl help${name}\` lists them.`}`);
}

function checkValue(name: string, spec: OptionSpecs[string], value: string | undefined, isInline: boolean): void {
  if (spec.type === "boolean") {
    if (value !== undefined) throw new CliError(`--${name} takes no value.`);
    return;
  }
  // In `--key --wait`, parseArgs treats `--wait` as the value of `--key`.
  if (value === undefined || (!isInline && value.startsWith("--")))
    throw new CliError(`--${name} needs a value: --${name} ${spec.value ?? "<value>"}`);
  if (spec.choices === undefined || spec.choices.includes(value)) return;
  const suggestion = didYouMean(value, spec.choices);
  throw new CliError(`--${name} is one of ${spec.choices.join(", ")}, not "${value}"${suggestion || "."}`);
}

function checkArgs(command: Command, args: readonly string[]): void {
  const needed = command.args.filter((arg) => arg.startsWith("<"));
  const usage = `Usage: ${usageOf(command)}`;
  const missing = needed[args.length];
  if (missing !== undefined) throw new CliError(`${missing.replace("…", "")} is missing. ${usage}`);
  if (args.length <= command.args.length || command.args.at(-1)?.includes("…")) return;
  throw new CliError(`"${args[command.args.length]}" is one argument too many. ${usage}`);
}
