import { CliError } from "../cli-error.js";
import { command } from "../command.js";
import { count } from "../counting.js";
import { withPawl } from "../database.js";
import { findRun } from "../find-run.js";
import { table } from "../table.js";

export const verify = command({
  name: "verify",
  about: "Fold the logs of all runs, or of one, and compare with the tables",
  args: ["[run]"],
  options: {},
  example: "pawl verify",

  run: (call) =>
    withPawl(call, async (pawl) => {
      const { out } = call;
      const [text] = call.args;
      const id = text === undefined ? undefined : await findRun(pawl, text);
      // A run that does not exist would differ in nothing.
      if (id !== undefined) await pawl.run(id).status();
      const found = await pawl.verify(id);
      const { runs, events, differences, found: many, unchecked } = found;
      const looked = `${count(runs, "run")}, ${count(events, "event")}`;
      out.print(found, () => {
        if (differences.length === 0) return [`${looked}: the tables say what the logs say.`, ...unknown(unchecked)];
        const rows = differences.map(({ kind, text }) => [kind, text]);
        const lines = table(columns, rows, { columns: out.columns, paint: out.paint, cutWhole: false });
        const more = many - differences.length;
        return more === 0 ? lines : [...lines, `… and ${more.toLocaleString("en")} more.`];
      });
      if (many > 0) throw new CliError(`${looked}: ${count(many, "difference")}.`);
    }),
});

/** Of runs that were executed before the steps of their workflow were written down, say. */
const unknown = (unchecked: number) =>
  unchecked === 0
    ? []
    : [
        `${count(unchecked, "step")} could not be checked against what came before: the graph of that time is not known.`,
      ];

const columns = [
  { title: "kind", whole: true },
  { title: "what is wrong", whole: true },
] as const;
