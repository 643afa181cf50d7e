import { jsonArgument } from "../arguments.js";
import { CliError } from "../cli-error.js";
import { command } from "../command.js";
import { sendCommand } from "../run-command.js";

export const resume = command({
  name: "resume",
  about: "Resume a paused run",
  args: ["<run>"],
  options: {
    at: { type: "string", value: "<step>", about: "Of a workflow class: continue from this step" },
    output: { type: "string", value: "<json>", about: "Complete the step that it is stuck at, with this result" },
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
      throw new CliError("Give --at alone: --output, --accept and --renamed are for a run that continues where it is.");
    const resumeOptions = {
      ...(output === undefined ? {} : { output: jsonArgument("output", output) }),
      ...(accept === undefined ? {} : { accept: accept.split(",") }),
      ...(renamed === undefined ? {} : { renamed: Object.fromEntries(renamed.split(",").map(parseRename)) }),
    };
    return sendCommand(
      call,
      (run) => (at === undefined ? run.resume(resumeOptions) : run.resumeAt(at)),
      "it continues",
    );
  },
});

function parseRename(text: string): [oldName: string, newName: string] {
  const [oldName, newName, ...more] = text.split("=");
  if (!oldName || !newName || more.length > 0)
    throw new CliError(`--renamed takes old=new, with a comma between several, not "${text}".`);
  return [oldName, newName];
}
