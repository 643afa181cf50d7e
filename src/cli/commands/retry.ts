import { command } from "../command.js";
import { withRun } from "../run-lookup.js";

export const retry = command({
  name: "retry",
  about: "Start a new run that continues where a failed one stopped",
  args: ["<run>"],
  options: {},
  example: "pawl retry f09ab42c",

  run: (call) =>
    withRun(call, async (failed) => {
      const run = await failed.retry();
      const info = await run.get();
      call.out.print(info, () => `Run ${info.id} of ${info.workflow} continues where run ${failed.id} failed.`);
    }),
});
