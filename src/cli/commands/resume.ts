import { jsonArgument } from "../arguments.js";
import { CliError } from "../cli-error.js";
import { command } from "../command.js";
import { tell } from "../run-command.js";

export const resume = command({
  name: "resume",
  about: "Let a paused run go on",
  args: ["<run>"],
  options: {
    at: { type: "string", value: "<step>", about: "Of a workflow class: go on from this step" },
    output: { type: "string", value: "<json>", about: "Count the step that it is stuck at as done, with this result" },
  },
  example: "pawl resume 019a8c3f --at send_reminder",

  run: async (call) => {
    const { at, output } = call.options;
    if (at !== undefined && output !== undefined) throw new CliError("Give --at or --output, not both.");
    const given = output === undefined ? {} : { output: jsonArgument("output", output) };
    return tell(call, (run) => (at === undefined ? run.resume(given) : run.resumeAt(at)), "it goes on");
  },
});
