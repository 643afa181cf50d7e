import { healthOf, servedInWords, type WorkerHealth } from "../../client/operate/workers.js";
import { systemRuntime } from "../../runtime/system.js";
import type { WorkerRecord } from "../../store/contract/store.js";
import { command } from "../command.js";
import { settingsOf } from "../config.js";
import { checkExists, loggerFor, openBareStore } from "../database.js";
import { colourOf } from "../paint.js";
import { table } from "../table.js";
import { relative } from "../times.js";

export const workers = command({
  name: "workers",
  about: "List the workers: what they serve, and when they were last heard of",
  args: [],
  options: { all: { type: "boolean", about: "Also those that are gone" } },
  example: "pawl workers --json",

  run: async (call) => {
    const { out, options } = call;
    const settings = await settingsOf(call);
    checkExists(settings.url);
    const store = await openBareStore(settings, loggerFor(out).debug);
    try {
      const [found, now] = await Promise.all([store.workers(), store.now()]);
      const shown = found
        .map((worker) => shownAs(worker, now))
        .filter(({ state }) => options.all === true || state !== "gone");
      out.print(shown, () => {
        if (shown.length === 0)
          return found.length === 0 ? "No workers." : "No live workers; --all shows those that are gone.";
        return table(
          columns,
          shown.map((worker) => row(worker, now)),
          {
            columns: out.columns,
            paint: out.paint,
            cutWhole: out.isTerminal,
          },
        );
      });
    } finally {
      await store.close();
    }
  },
});

type Shown = WorkerHealth & { readonly state: "live" | "silent" | "gone" };

/** One that was killed is marked as live until another worker finds out. */
function shownAs(worker: WorkerRecord, now: number): Shown {
  const health = healthOf(worker, now, systemRuntime);
  return { ...health, state: !worker.live ? "gone" : health.live ? "live" : "silent" };
}

const columns = [
  { title: "name" },
  { title: "state", whole: true },
  { title: "host" },
  { title: "pid", align: "right", whole: true },
  { title: "runs", align: "right", whole: true },
  { title: "last heard of", whole: true },
  { title: "serves" },
] as const;

function row(worker: Shown, now: number) {
  const { name, state, host, port, pid, executing, beatAt } = worker;
  return [
    name,
    { text: state, colour: colourOf(state) },
    port === null ? host : `${host}:${port}`,
    String(pid),
    String(executing),
    relative(beatAt, now),
    servedInWords(worker),
  ];
}
