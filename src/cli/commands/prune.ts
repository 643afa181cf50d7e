import { wholeNumber } from "../arguments.js";
import { CliError } from "../cli-error.js";
import { command } from "../command.js";
import { count } from "../counting.js";
import { withPawl } from "../database.js";

export const prune = command({
  name: "prune",
  about: "Delete runs that ended long ago, with the runs that they started",
  args: [],
  options: {
    "older-than": { type: "string", value: "<duration>", about: 'How long ago they must have ended: "30 days"' },
    workflow: { type: "string", value: "<name>", about: "Only runs of this workflow" },
    limit: { type: "string", value: "<n>", about: "Stop when so many runs are gone" },
  },
  example: "pawl prune --older-than 30d",

  run: async (call) => {
    const { options, out } = call;
    const olderThan = options["older-than"];
    if (olderThan === undefined) throw new CliError("How old? Nothing is deleted without: pawl prune --older-than 30d");
    const limit = wholeNumber("limit", options.limit);
    const pruned = await withPawl(call, (pawl) =>
      pawl.prune({
        olderThan,
        ...(options.workflow === undefined ? {} : { workflow: options.workflow }),
        ...(limit === undefined ? {} : { limit }),
      }),
    );
    out.print(pruned, () => (pruned.runs === 0 ? "Nothing to delete." : `Deleted ${count(pruned.runs, "run")}.`));
  },
});
