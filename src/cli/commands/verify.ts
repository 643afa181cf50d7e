import { CliError } from "../cli-error.js";
import { command } from "../command.js";
import { withPawl } from "../database.js";
import { formatCount } from "../format-count.js";
import { findRunId } from "../run-lookup.js";
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
      const id = text === undefined ? undefined : await findRunId(pawl, text);
      // verify() finds no difference in a run that does not exist; status() throws.
      if (id !== undefined) await pawl.run(id).status();
      const verification = await pawl.verify(id);
      const { runs, events, differences, found: differenceCount, unchecked } = verification;
      const checkedText = `${formatCount(runs, "run")}, ${formatCount(events, "event")}`;
      out.print(verification, () => {
        if (differences.length === 0)
          return [`${checkedText}: the tables match the logs.`, ...uncheckedLines(unchecked)];
        const rows = differences.map(({ kind, text }) => [kind, text]);
        const lines = table(columns, rows, { columns: out.columns, paint: out.paint, cutWhole: false });
        const more = differenceCount - differences.length;
        return more === 0 ? lines : [...lines, `… and ${more.toLocaleString("en")} more.`];
      });
      if (differenceCount > 0) throw new CliError(`${checkedText}: ${formatCount(differenceCount, "difference")}.`);
    }),
});

/** Steps stay unchecked, for example, if their run was executed before its workflow's graph was recorded. */
const uncheckedLines = (unchecked: number) =>
  unchecked === 0
    ? []
    : [
        `${formatCount(unchecked, "step")} could not be checked against their predecessors: the graph of that time is not recorded.`,
      ];

const columns = [
  { title: "kind", whole: true },
  { title: "what is wrong", whole: true },
] as const;
