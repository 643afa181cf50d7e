import { command } from "../command.js";
import { tell } from "../run-command.js";

export const skip = command({
  name: "skip",
  about: "Pass over the step that a run is stuck at",
  args: ["<run>"],
  options: {},
  example: "pawl skip 019a8c3f",

  run: (call) => tell(call, (run) => run.skip(), "the step is passed over as soon as possible"),
});
