import type { RunInfo } from "../../client/inspect/run-info.js";
import { jsonArgument } from "../arguments.js";
import { command } from "../command.js";
import { withRun } from "../run-lookup.js";
import { printable } from "../table.js";

export const signal = command({
  name: "signal",
  about: "Send a signal to a run",
  args: ["<run>", "<name>", "[json]"],
  options: { key: { type: "string", value: "<key>", about: "Idempotency key: the same key is delivered once" } },
  example: `pawl signal f09ab42c approved '{"by": "finance"}' --key webhook-9`,

  run: (call) => {
    const { args, options, out } = call;
    const [, name, json] = args as [string, string, string | undefined];
    const payload = jsonArgument("payload", json);
    return withRun(call, async (run) => {
      const before = await run.get();
      await run.signal(name, payload, options.key === undefined ? {} : { key: options.key });
      out.print(await run.get(), () => `Sent "${name}" to run ${run.id}.`);
      const otherNames = otherAwaitedSignals(before, name);
      if (otherNames.length > 0)
        out.note(
          printable(`The run waits for ${quoteNames(otherNames)}; "${name}" is kept until the run asks for it.`),
        );
    });
  },
});

/** Returns the signals that the run waited for before the signal `name` was sent, or none if `name` is among them. */
function otherAwaitedSignals({ status, waitingFor }: RunInfo, name: string): string[] {
  if (status !== "waiting") return [];
  const names = new Set(waitingFor.flatMap((wait) => (wait.kind === "signal" ? wait.names : [])));
  return names.has(name) ? [] : [...names];
}

const quoteNames = (names: readonly string[]) => names.map((name) => `"${name}"`).join(", ");
