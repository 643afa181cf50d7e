/** Defines what a command is: the data that parsing, help and completion read, and the function that runs it. */
import type { Output } from "./output.js";

export interface OptionSpec {
  readonly type: "string" | "boolean";
  /** The option may be given several times. */
  readonly multiple?: true;
  /** The placeholder for the value in help, such as "<duration>". */
  readonly value?: string;
  /** The only values that the option accepts; shells complete them. */
  readonly choices?: readonly string[];
  readonly about: string;
}

export type OptionSpecs = Readonly<Record<string, OptionSpec>>;

type ValueOf<Spec extends OptionSpec> = Spec["type"] extends "boolean"
  ? boolean
  : Spec extends { readonly multiple: true }
    ? readonly string[]
    : string;

export type OptionValues<Specs extends OptionSpecs> = {
  readonly [Name in keyof Specs]?: ValueOf<Specs[Name]>;
};

/** Options that every command has. */
export const globalOptions = {
  url: {
    type: "string",
    value: "<url>",
    about: "The database; default: PAWL_URL, then pawl.config, then sqlite:./pawl.db",
  },
  schema: { type: "string", value: "<name>", about: "PostgreSQL: the schema that the tables are in" },
  json: { type: "boolean", about: "Print JSON, for programs" },
  debug: { type: "boolean", about: "Show where an error comes from" },
  help: { type: "boolean", about: "Show how a command is used" },
  version: { type: "boolean", about: "Show the version" },
} as const satisfies OptionSpecs;

/** One call of a command. */
export interface Call<Specs extends OptionSpecs = OptionSpecs> {
  readonly args: readonly string[];
  readonly options: OptionValues<Specs>;
  readonly globals: OptionValues<typeof globalOptions>;
  readonly out: Output;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** All commands, for `help` and `completion`. */
  readonly groups: readonly CommandGroup[];
}

export interface Command<Specs extends OptionSpecs = OptionSpecs> {
  readonly name: string;
  /** One line of help, without a full stop. */
  readonly about: string;
  /** "<run>" is required, "[json]" is optional; "<file…>" is one or more files, "[file…]" any number. */
  readonly args: readonly string[];
  readonly options: Specs;
  readonly example: string;
  /** The words that the first argument may be; shells complete them. */
  readonly actions?: readonly string[];
  /** The words of a command that prints what the second argument may be, one a line; shells run it to complete a name. */
  readonly printNames?: string;
  /** The arguments are files, so shells complete file names. */
  readonly takesFiles?: true;
  run(call: Call<Specs>): Promise<void>;
}

export interface CommandGroup {
  readonly title: string;
  readonly commands: readonly Command[];
}

/** Declares a command. The options that its `run` gets are typed by their specs. */
export function command<const Specs extends OptionSpecs>(spec: Command<Specs>): Command {
  return spec as unknown as Command;
}

export const commandsIn = (groups: readonly CommandGroup[]): readonly Command[] =>
  groups.flatMap(({ commands }) => commands);

export const usageOf = ({ name, args }: Command): string => ["pawl", name, ...args].join(" ");
