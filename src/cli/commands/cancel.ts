import { command } from "../command.js";
import { tell } from "../run-command.js";

export const cancel = command({
  name: "cancel",
  about: "Cancel a run, and the runs that it started",
  args: ["<run>"],
  options: { reason: { type: "string", value: "<text>", about: "Why, for whoever looks at it" } },
  example: 'pawl cancel 019a8c3f --reason "ordered twice"',

  run: (call) => tell(call, (run) => run.cancel(call.options.reason), "it ends when the step at hand is done"),
});
