import type { Check } from "../../client/operate/check.js";
import { CliError } from "../cli-error.js";
import { command } from "../command.js";
import { readSettings } from "../config.js";
import { runChecks } from "../doctor-checks.js";
import { colourOf, type Paint } from "../paint.js";
import { printable } from "../table.js";

export const doctor = command({
  name: "doctor",
  about: "Check the settings, the database, the workers and the runs for problems",
  args: [],
  options: {},
  example: "pawl doctor --url postgres://localhost/app",

  run: async (call) => {
    const { out } = call;
    const checks = await runChecks(await readSettings(call));
    out.print({ checks }, () => checks.map((check) => line(check, out.paint)));
    const problems = checks.filter(({ verdict }) => verdict === "problem");
    if (problems.length > 0) throw new CliError(`Problems found: ${problems.map(({ name }) => name).join(", ")}.`);
  },
});

const line = ({ name, verdict, text }: Check, paint: Paint) =>
  `${paint(colourOf(verdict), verdict.padEnd(7))}  ${name.padEnd(10)}  ${printable(text)}`;
