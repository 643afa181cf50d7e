/** What a command is: what parsing, help and completion have to know of it, and what it does. */
import type { Output } from "./output.js";

export interface OptionSpec {
  readonly type: "string" | "boolean";
  /** It may be given several times. */
  readonly multiple?: true;
  /** What stands for its value in help: "<duration>". */
  readonly value?: string;
  /** The only values that it takes; they are completed. */
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
    about: "The database; else PAWL_URL, else pawl.config, else sqlite:./pawl.db",
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
  /** All commands, for those that tell about them. */
  readonly groups: readonly CommandGroup[];
}

export interface Command<Specs extends OptionSpecs = OptionSpecs> {
  readonly name: string;
  /** In one line, without a full stop. */
  readonly about: string;
  /** "<run>" is needed, "[json]" is not; "<file…>" is one or more, "[file…]" any number. */
  readonly args: readonly string[];
  readonly options: Specs;
  readonly example: string;
  /** Its arguments are files: the shell completes them. */
  readonly takesFiles?: true;
  run(call: Call<Specs>): Promise<void>;
}

export interface CommandGroup {
  readonly title: string;
  readonly commands: readonly Command[];
}

/** Makes a command; its `run` gets its options by name and type. */
export function command<const Specs extends OptionSpecs>(spec: Command<Specs>): Command {
  return spec as unknown as Command;
}

export const commandsIn = (groups: readonly CommandGroup[]): readonly Command[] =>
  groups.flatMap(({ commands }) => commands);

export const usageOf = ({ name, args }: Command): string => ["pawl", name, ...args].join(" ");
