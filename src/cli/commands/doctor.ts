import { type Check, examine } from "../checks.js";
import { CliError } from "../cli-error.js";
import { command } from "../command.js";
import { settingsOf } from "../config.js";
import { colourOf, type Paint } from "../paint.js";
import { printable } from "../table.js";

export const doctor = command({
  name: "doctor",
  about: "Look whether everything is in order",
  args: [],
  options: {},
  example: "pawl doctor --url postgres://localhost/app",

  run: async (call) => {
    const { out } = call;
    const checks = await examine(await settingsOf(call));
    out.print({ checks }, () => checks.map((check) => line(check, out.paint)));
    const problems = checks.filter(({ verdict }) => verdict === "problem");
    if (problems.length > 0) throw new CliError(`Not in order: ${problems.map(({ name }) => name).join(", ")}.`);
  },
});

const line = ({ name, verdict, text }: Check, paint: Paint) =>
  `${paint(colourOf(verdict), verdict.padEnd(7))}  ${name.padEnd(10)}  ${printable(text)}`;
