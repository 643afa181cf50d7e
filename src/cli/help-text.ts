/** Renders the output of `pawl help` from the table of commands. */
import { type Command, type CommandGroup, globalOptions, type OptionSpecs, usageOf } from "./command.js";
import type { Output } from "./output.js";
import { table } from "./table.js";

export function overview(groups: readonly CommandGroup[], out: Output): string[] {
  const { paint } = out;
  return [
    "Durable workflows on the database you have.",
    "",
    `${paint("bold", "Usage")}  pawl <command> [options]`,
    ...groups.flatMap(({ title, commands }) => [
      "",
      paint("bold", title),
      ...pairs(
        commands.map(({ name, args, about }) => [[name, ...args].join(" "), about]),
        out,
      ),
    ]),
    "",
    paint("bold", "Global options"),
    ...optionLines(globalOptions, out),
    "",
    "`pawl help <command>` shows more. Name a run by its id, or by the beginning or the end of its id (at least 6 characters; the last 8 are unique).",
  ];
}

export function helpFor(command: Command, out: Output): string[] {
  const { paint } = out;
  const own = Object.keys(command.options).length === 0 ? [] : optionLines(command.options, out);
  return [
    `${command.about}.`,
    "",
    `${paint("bold", "Usage")}  ${usageOf(command)}${own.length === 0 ? "" : " [options]"}`,
    ...(own.length === 0 ? [] : ["", paint("bold", "Options"), ...own]),
    "",
    paint("bold", "Global options"),
    ...optionLines(globalOptions, out),
    "",
    `${paint("bold", "Example")}  ${command.example}`,
  ];
}

function optionLines(options: OptionSpecs, out: Output): string[] {
  return pairs(
    Object.entries(options).map(([name, { value, about, choices }]) => [
      value === undefined ? `--${name}` : `--${name} ${value}`,
      choices === undefined ? about : `${about}: ${choices.join(", ")}`,
    ]),
    out,
  );
}

/** Help is never truncated: the terminal wraps long lines. */
function pairs(rows: readonly (readonly [string, string])[], { paint }: Output): string[] {
  const indented = rows.map(([left, right]) => [`  ${left}`, right]);
  return table([{ title: "" }, { title: "" }], indented, { columns: Number.POSITIVE_INFINITY, paint, cutWhole: false });
}
