import { describeCapabilities, healthOf, type WorkerHealth } from "../../client/operate/workers.js";
import { systemRuntime } from "../../runtime/system.js";
import type { WorkerRecord } from "../../store/contract/store.js";
import { command } from "../command.js";
import { readSettings } from "../config.js";
import { checkExists, createLogger, openBareStore } from "../database.js";
import { colourOf } from "../paint.js";
import { table } from "../table.js";
import { durationText, relativeTime } from "../times.js";

export const workers = command({
  name: "workers",
  about: "List the workers: what they serve, and their last heartbeat",
  args: [],
  options: { all: { type: "boolean", about: "Also stopped workers" } },
  example: "pawl workers --json",

  run: async (call) => {
    const { out, options } = call;
    const settings = await readSettings(call);
    checkExists(settings.url);
    const store = await openBareStore(settings, createLogger(out).debug);
    try {
      const [records, now] = await Promise.all([store.workers(), store.now()]);
      const workerViews = records
        .map((worker) => toWorkerView(worker, now))
        .filter(({ state }) => options.all === true || state !== "stopped");
      out.print(workerViews, () => {
        if (workerViews.length === 0)
          return records.length === 0 ? "No workers." : "No live workers; --all shows the stopped ones.";
        return table(
          columns,
          workerViews.map((worker) => row(worker, now)),
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

type WorkerView = WorkerHealth & { readonly state: "live" | "expired" | "stopped" };

/** The row of a killed worker says live until another worker notices that its lease has expired. */
function toWorkerView(worker: WorkerRecord, now: number): WorkerView {
  const health = healthOf(worker, now, systemRuntime);
  return { ...health, state: !worker.live ? "stopped" : health.live ? "live" : "expired" };
}

const columns = [
  { title: "name" },
  { title: "state", whole: true },
  { title: "host" },
  { title: "pid", align: "right", whole: true },
  { title: "runs", align: "right", whole: true },
  { title: "last heartbeat", whole: true },
  { title: "lag", align: "right", whole: true },
  { title: "serves" },
] as const;

function row(worker: WorkerView, now: number) {
  const { name, state, host, port, pid, executing, heartbeatAt, loopLagMs } = worker;
  return [
    name,
    { text: state, colour: colourOf(state) },
    port === null ? host : `${host}:${port}`,
    String(pid),
    String(executing),
    relativeTime(heartbeatAt, now),
    loopLagMs === null ? "" : durationText(loopLagMs),
    describeCapabilities(worker),
  ];
}
