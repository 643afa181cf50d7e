import { command } from "../command.js";
import { findCommand } from "../command-line.js";
import { helpFor, overview } from "../help-text.js";

export const help = command({
  name: "help",
  about: "Show all commands, or how one of them is used",
  args: ["[command]"],
  options: {},
  example: "pawl help start",

  run: async ({ args, out, groups }) => {
    const [name] = args;
    for (const line of name === undefined ? overview(groups, out) : helpFor(findCommand(name, groups), out))
      out.line(line);
  },
});
