import { command } from "../command.js";
import { sendCommand } from "../run-command.js";

export const skip = command({
  name: "skip",
  about: "Skip the step that a run is stuck at",
  args: ["<run>"],
  options: {},
  example: "pawl skip f09ab42c",

  run: (call) => sendCommand(call, (run) => run.skip(), "the step is skipped as soon as possible"),
});
