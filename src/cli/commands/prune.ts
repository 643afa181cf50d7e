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
    limit: { type: "string", value: "<n>", about: "Stop when this many runs are deleted" },
    "dry-run": { type: "boolean", about: "Delete nothing, only show how much would be deleted" },
  },
  example: "pawl prune --older-than 30d",

  run: async (call) => {
    const { options, out } = call;
    const olderThan = durationArgument("older-than", options["older-than"]);
    if (olderThan === undefined)
      throw new CliError("--older-than is missing; say how old: pawl prune --older-than 30d");
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
    const verb = dryRun ? "Would delete" : "Deleted";
    out.print({ ...pruned, ...(dryRun ? { dryRun } : {}) }, () =>
      pruned.runs === 0 ? "Nothing to delete." : `${verb} ${formatCount(pruned.runs, "run")}.`,
    );
  },
});

/** Pruning a misspelled workflow would delete nothing, and look as if there were nothing to delete. */
async function checkWorkflowExists(pawl: Pawl, workflow: string): Promise<void> {
  const workflowNames = new Set((await pawl.queues()).flatMap(({ workflows }) => workflows));
  if (workflowNames.has(workflow)) return;
  // No worker registers a graph that is built at run time: only its runs show that it exists.
  const { runs } = await pawl.runs({ workflow, limit: 1 });
  if (runs.length > 0) return;
  const suggestion = didYouMean(workflow, [...workflowNames]);
  throw new CliError(`There is no workflow "${workflow}" in this database, and no run of it${suggestion || "."}`);
}
