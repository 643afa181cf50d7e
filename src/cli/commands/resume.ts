import { jsonArgument } from "../arguments.js";
import { CliError } from "../cli-error.js";
import { command } from "../command.js";
import { sendCommand } from "../run-command.js";

export const resume = command({
  name: "resume",
  about: "Let a paused run go on",
  args: ["<run>"],
  options: {
    at: { type: "string", value: "<step>", about: "Of a workflow class: go on from this step" },
    output: { type: "string", value: "<json>", about: "Count the step that it is stuck at as done, with this result" },
    accept: { type: "string", value: "<names>", about: "Of changed code: run, or leave behind, these steps (a,b)" },
    renamed: {
      type: "string",
      value: "<old=new>",
      about: "Of changed code: steps that have another name now (a=b,c=d)",
    },
  },
  example: "pawl resume f09ab42c --at send_reminder",

  run: async (call) => {
    const { at, output, accept, renamed } = call.options;
    if (at !== undefined && (output ?? accept ?? renamed) !== undefined)
      throw new CliError("Give --at alone: --output, --accept and --renamed are for a run that goes on where it is.");
    const resumeOptions = {
      ...(output === undefined ? {} : { output: jsonArgument("output", output) }),
      ...(accept === undefined ? {} : { accept: accept.split(",") }),
      ...(renamed === undefined ? {} : { renamed: Object.fromEntries(renamed.split(",").map(parseRename)) }),
    };
    return sendCommand(call, (run) => (at === undefined ? run.resume(resumeOptions) : run.resumeAt(at)), "it goes on");
  },
});

function parseRename(text: string): [older: string, name: string] {
  const [older, name, ...more] = text.split("=");
  if (!older || !name || more.length > 0)
    throw new CliError(`--renamed takes old=new, with a comma between several, not "${text}".`);
  return [older, name];
}
