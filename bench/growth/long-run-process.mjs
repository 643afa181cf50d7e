// A process with a worker for long runs, that tells what they do. It is killed at some point.
//
//   node long-run-process.mjs <url> <steps, of the runs that it serves> <"hold" | "end">

import { connect, workflow } from "pawl";
import { listen, nowMs, tell } from "./child.mjs";
import { quiet } from "./quiet.mjs";

const [url, sizes, how] = process.argv.slice(2);
const lease = "1s";

/**
 * The run waits for a signal to continue; then there are two more steps, and a process may be killed in the last of
 * them.
 */
const longRun = (size) =>
  workflow(`growth_long_${size}`, async (ctx, { steps, waits }) => {
    let beganAt;
    for (let step = 1; step <= steps; step += 1) {
      await ctx.step(`step_${step}`, () => {
        beganAt ??= nowMs();
        return { ok: true, total: step };
      });
    }
    // Not during a replay.
    if (beganAt !== undefined) tell("recorded", { size, ms: nowMs() - beganAt });
    if (!waits) return steps;
    await ctx.waitForSignal("go");
    await ctx.step("told", () => tell("told", { size, at: nowMs() }));
    await ctx.step("last", () => {
      tell("last", { size, at: nowMs() });
      return how === "hold" ? new Promise(() => {}) : true;
    });
    return steps;
  });

const definitions = new Map(sizes.split(",").map((size) => [Number(size), longRun(size)]));
const pawl = await connect(url, { logger: quiet });
const worker = pawl.worker({ workflows: [...definitions.values()], lease });

listen({
  work: async () => {
    const calledAt = nowMs();
    await worker.start();
    tell("works", { at: calledAt });
  },
  warmUp: async () => {
    const [definition] = definitions.values();
    await (await pawl.start(definition, { steps: 1000, waits: false })).result();
    tell("warm");
  },
  start: async ({ size, waits }) => {
    const { id } = await pawl.start(definitions.get(size), { steps: size, waits });
    tell("started", { id });
  },
  signal: async ({ id }) => {
    tell("signals", { at: nowMs() });
    await pawl.run(id).signal("go");
  },
  stop: () => pawl.close(),
});
tell("connected");
