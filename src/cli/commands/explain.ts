import { command } from "../command.js";
import { withRun } from "../run-lookup.js";
import { printable } from "../table.js";
import { shortenTimestamps } from "../times.js";

export const explain = command({
  name: "explain",
  about: "Explain why a run is not moving",
  args: ["<run>"],
  options: {},
  example: "pawl explain f09ab42c",

  run: (call) =>
    withRun(call, async (run) => {
      const { out } = call;
      const explanation = await run.explain();
      out.print(explanation, () => shortenTimestamps(printable(explanation.text), out.now()));
    }),
});
