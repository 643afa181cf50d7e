import { jsonArgument } from "../arguments.js";
import { command } from "../command.js";
import { withRun } from "../find-run.js";

export const signal = command({
  name: "signal",
  about: "Send a signal to a run",
  args: ["<run>", "<name>", "[json]"],
  options: { key: { type: "string", value: "<key>", about: "The same key is delivered once" } },
  example: `pawl signal 019a8c3f approved '{"by": "finance"}' --key webhook-9`,

  run: (call) => {
    const { args, options, out } = call;
    const [, name, json] = args as [string, string, string | undefined];
    const payload = jsonArgument("payload", json);
    return withRun(call, async (run) => {
      await run.signal(name, payload, options.key === undefined ? {} : { key: options.key });
      out.print(await run.get(), () => `Sent "${name}" to run ${run.id}.`);
    });
  },
});
