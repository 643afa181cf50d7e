/** What `pawl help` says: all of it is in the table of commands. */
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
        commands.map((one) => [[one.name, ...one.args].join(" "), one.about]),
        out,
      ),
    ]),
    "",
    paint("bold", "For all"),
    ...optionLines(globalOptions, out),
    "",
    "`pawl help <command>` tells more. A run is named by its id, or by the end or the beginning of it (6 characters or more; the last 8 are its own).",
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
    paint("bold", "For all"),
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

/** Help is never cut: what does not fit, the terminal wraps. */
function pairs(rows: readonly (readonly [string, string])[], { paint }: Output): string[] {
  const indented = rows.map(([left, right]) => [`  ${left}`, right]);
  return table([{ title: "" }, { title: "" }], indented, { columns: Number.POSITIVE_INFINITY, paint, cutWhole: false });
}
