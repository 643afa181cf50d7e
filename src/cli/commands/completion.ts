import { CliError } from "../cli-error.js";
import { command } from "../command.js";
import { completions } from "../completions.js";

const shells = Object.keys(completions);

export const completion = command({
  name: "completion",
  about: "Print the completion script of a shell: bash, zsh or fish",
  args: ["<shell>"],
  options: {},
  example: 'eval "$(pawl completion bash)"',

  run: async ({ args, groups, out }) => {
    const [shell] = args as [string];
    const write = completions[shell];
    if (write === undefined)
      throw new CliError(`There is no completion for "${shell}"; there is for ${shells.join(", ")}.`);
    out.line(write(groups));
  },
});
