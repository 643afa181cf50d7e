import { command } from "../command.js";
import { tell } from "../run-command.js";

export const cancel = command({
  name: "cancel",
  about: "Cancel a run, and the runs that it started",
  args: ["<run>"],
  options: {
    reason: { type: "string", value: "<text>", about: "Why, for the history of the run" },
    force: { type: "boolean", about: "End it at once, whatever its code says, and undo nothing" },
  },
  example: 'pawl cancel 019a8c3f --reason "ordered twice"',

  run: (call) => {
    const { reason, force = false } = call.options;
    return tell(call, (run) => run.cancel(reason, { force }), "it ends when the step at hand is done");
  },
});
