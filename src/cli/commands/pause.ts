import { command } from "../command.js";
import { sendCommand } from "../run-command.js";

export const pause = command({
  name: "pause",
  about: "Pause a run: what is running finishes, nothing new begins",
  args: ["<run>"],
  options: { reason: { type: "string", value: "<text>", about: "Why, for whoever looks at it" } },
  example: 'pawl pause f09ab42c --reason "the bank is down"',

  run: (call) => sendCommand(call, (run) => run.pause(call.options.reason), "it pauses when the step at hand is done"),
});
