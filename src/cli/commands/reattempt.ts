import { command } from "../command.js";
import { sendCommand } from "../run-command.js";

export const reattempt = command({
  name: "reattempt",
  about: "Try a node of a run again, now; it must not have completed",
  args: ["<run>", "<node>"],
  options: {},
  example: "pawl reattempt f09ab42c aggregate",

  run: (call) =>
    sendCommand(call, (run) => run.reattempt(call.args[1] as string), "the node is tried again as soon as possible"),
});
