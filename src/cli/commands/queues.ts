import type { QueueInfo } from "../../client/operate/queues.js";
import { CliError } from "../cli-error.js";
import { command } from "../command.js";
import { withPawl } from "../database.js";
import { table } from "../table.js";
import { durationText, relativeTime } from "../times.js";

export const queues = command({
  name: "queues",
  about: "List the queues: what waits in them; pause and resume them",
  args: [],
  options: {
    pause: { type: "string", value: "<name>", about: "Take no more runs from this queue; running ones finish" },
    reason: { type: "string", value: "<text>", about: "With --pause: the reason, shown with the queue" },
    resume: { type: "string", value: "<name>", about: "Take runs from this queue again" },
  },
  example: 'pawl queues --pause mail --reason "the mail server is down"',

  run: async (call) => {
    const { out, options } = call;
    const { pause, resume, reason } = options;
    if (pause !== undefined && resume !== undefined) throw new CliError("Give --pause or --resume, not both.");
    if (reason !== undefined && pause === undefined) throw new CliError("--reason goes with --pause <queue>.");
    const queueInfos = await withPawl(call, async (pawl) => {
      if (pause !== undefined) await pawl.pauseQueue(pause, reason);
      if (resume !== undefined) await pawl.resumeQueue(resume);
      return pawl.queues();
    });
    out.print(queueInfos, () => {
      if (queueInfos.length === 0) return "No queues: no worker has ever used this database.";
      const rows = queueInfos.map((queue) => row(queue, out.now()));
      return table(columns, rows, { columns: out.columns, paint: out.paint, cutWhole: out.isTerminal });
    });
  },
});

const columns = [
  { title: "queue" },
  { title: "due", align: "right", whole: true },
  { title: "oldest", align: "right", whole: true },
  { title: "running", align: "right", whole: true },
  { title: "workers", align: "right", whole: true },
  { title: "workflows" },
  { title: "", spareFrom: 6 },
] as const;

function row({ name, depth, depthCapped, oldestAgeMs, executing, workers, workflows, paused }: QueueInfo, now: number) {
  const why = paused === null ? "" : ["paused", relativeTime(paused.at, now), paused.reason].filter(Boolean).join(" ");
  return [
    name,
    `${depth}${depthCapped ? "+" : ""}`,
    oldestAgeMs === null ? "" : durationText(oldestAgeMs),
    String(executing),
    String(workers.length),
    workflows.join(", "),
    { text: why, colour: "yellow" as const },
  ];
}
