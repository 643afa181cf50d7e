import type { Pawl } from "../../connect.js";
import { didYouMean } from "../../core/naming/nearest-word.js";
import { durationArgument, integerArgument } from "../arguments.js";
import { CliError } from "../cli-error.js";
import { command } from "../command.js";
import { withPawl } from "../database.js";
import { formatCount } from "../format-count.js";

export const prune = command({
  name: "prune",
  about: "Delete runs that ended long ago, with the runs that they started",
  args: [],
  options: {
    "older-than": { type: "string", value: "<duration>", about: 'How long ago they must have ended: "30 days"' },
    workflow: { type: "string", value: "<name>", about: "Only runs of this workflow" },
    limit: { type: "string", value: "<n>", about: "Stop when so many runs are gone" },
    "dry-run": { type: "boolean", about: "Delete nothing, and tell how much would be deleted" },
  },
  example: "pawl prune --older-than 30d",

  run: async (call) => {
    const { options, out } = call;
    const olderThan = durationArgument("older-than", options["older-than"]);
    if (olderThan === undefined) throw new CliError("How old? Nothing is deleted without: pawl prune --older-than 30d");
    const limit = integerArgument("limit", options.limit);
    const { workflow, "dry-run": dryRun = false } = options;
    const pruned = await withPawl(call, async (pawl) => {
      if (workflow !== undefined) await checkWorkflowExists(pawl, workflow);
      return pawl.prune({
        olderThan,
        dryRun,
        ...(workflow === undefined ? {} : { workflow }),
        ...(limit === undefined ? {} : { limit }),
      });
    });
    const did = dryRun ? "Would delete" : "Deleted";
    out.print({ ...pruned, ...(dryRun ? { dryRun } : {}) }, () =>
      pruned.runs === 0 ? "Nothing to delete." : `${did} ${formatCount(pruned.runs, "run")}.`,
    );
  },
});

/** A slip of the pen would delete nothing, and look as if there were nothing to delete. */
async function checkWorkflowExists(pawl: Pawl, workflow: string): Promise<void> {
  const workflowNames = new Set((await pawl.queues()).flatMap(({ workflows }) => workflows));
  if (workflowNames.has(workflow)) return;
  // Graphs that are built at run time are known by their runs alone.
  const { runs } = await pawl.runs({ workflow, limit: 1 });
  if (runs.length > 0) return;
  const suggestion = didYouMean(workflow, [...workflowNames]);
  throw new CliError(`There is no workflow "${workflow}" here, and no run of it${suggestion || "."}`);
}
