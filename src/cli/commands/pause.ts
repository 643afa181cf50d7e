import { command } from "../command.js";
import { sendCommand } from "../run-command.js";

export const pause = command({
  name: "pause",
  about: "Pause a run: running steps finish, no new step starts",
  args: ["<run>"],
  options: { reason: { type: "string", value: "<text>", about: "The reason, shown with the run" } },
  example: 'pawl pause f09ab42c --reason "the bank is down"',

  run: (call) => sendCommand(call, (run) => run.pause(call.options.reason), "it pauses when the current step is done"),
});
