import type { Distribution, WorkflowMetrics } from "../../client/operate/metrics.js";
import type { Pawl } from "../../connect.js";
import { timeArgument } from "../arguments.js";
import { command } from "../command.js";
import { withPawl } from "../database.js";
import { formatCount } from "../format-count.js";
import { table } from "../table.js";
import { durationText, relativeTime } from "../times.js";

export const metrics = command({
  name: "metrics",
  about: "Show metrics of the workflows: success, durations, backlog",
  args: ["[workflow]"],
  options: {
    since: { type: "string", value: "<time>", about: 'Of runs started since a date, or "2h" ago; default 1 day' },
  },
  example: "pawl metrics order --since 2h",

  run: async (call) => {
    const { args, options, out } = call;
    const since = timeArgument("since", options.since, out.now());
    const window = since === undefined ? {} : { since };
    const [name] = args;
    const workflowMetrics = await withPawl(call, async (pawl) => {
      const names = name === undefined ? await readWorkflowNames(pawl) : [name];
      return Promise.all(names.map((workflow) => pawl.metrics(workflow, window)));
    });
    if (name !== undefined) {
      const [only] = workflowMetrics as [WorkflowMetrics];
      return out.print(only, () => details(only, out.now()));
    }
    out.print(workflowMetrics, () => {
      if (workflowMetrics.length === 0) return "No workflows: no worker has ever used this database.";
      return table(columns, workflowMetrics.map(row), {
        columns: out.columns,
        paint: out.paint,
        cutWhole: out.isTerminal,
      });
    });
  },
});

async function readWorkflowNames(pawl: Pawl): Promise<string[]> {
  return [...new Set((await pawl.queues()).flatMap(({ workflows }) => workflows))].sort();
}

const columns = [
  { title: "workflow" },
  { title: "runs", align: "right", whole: true },
  { title: "failed", align: "right", whole: true },
  { title: "paused", align: "right", whole: true },
  { title: "success", align: "right", whole: true },
  { title: "p50", align: "right", whole: true },
  { title: "p95", align: "right", whole: true },
  { title: "due", align: "right", whole: true },
  { title: "oldest", align: "right", whole: true },
] as const;

function row({ workflow, runs, successRate, durations, queue }: WorkflowMetrics): string[] {
  return [
    workflow,
    runs.total.toLocaleString("en"),
    runs.failed.toLocaleString("en"),
    runs.paused.toLocaleString("en"),
    percent(successRate),
    formatMs(durations.p50),
    formatMs(durations.p95),
    `${queue.depth.toLocaleString("en")}${queue.depthCapped ? "+" : ""}`,
    formatMs(queue.oldestAgeMs),
  ];
}

function details(
  { workflow, since, truncated, runs, successRate, durations, waits, queue, workers }: WorkflowMetrics,
  now: number,
) {
  const { total, active: _, ...byStatus } = runs;
  const statuses = Object.entries(byStatus).flatMap(([status, number]) =>
    number === 0 ? [] : [`${number.toLocaleString("en")} ${status}`],
  );
  const live = workers.filter((worker) => worker.live);
  const facts: [string, string][] = [
    [
      "runs",
      [
        `${formatCount(total, "run")} since ${relativeTime(since, now)}${truncated ? ", the newest" : ""}`,
        ...statuses,
      ].join(", "),
    ],
    ["success", percent(successRate) || "no run has ended"],
    ["took", distribution(durations)],
    ["waited", distribution(waits)],
    ["queue", queueLine(queue, now)],
    [
      "workers",
      live.length === 0 ? "none is live" : live.map(({ name, executing }) => `${name} (${executing})`).join(", "),
    ],
  ];
  return [workflow, ...facts.map(([name, text]) => `  ${name.padEnd(8)}  ${text}`)];
}

function queueLine(queue: WorkflowMetrics["queue"], now: number): string {
  const { name, depth, depthCapped, oldestAgeMs, executing, paused } = queue;
  const oldest = oldestAgeMs === null ? "" : `, the oldest for ${durationText(oldestAgeMs)}`;
  const why =
    paused === null
      ? ""
      : `; paused ${relativeTime(paused.at, now)}${paused.reason === null ? "" : `: ${paused.reason}`}`;
  return `${name}: ${depth}${depthCapped ? " or more" : ""} due${oldest}, ${executing} running${why}`;
}

const percent = (share: number | null) => (share === null ? "" : `${Math.floor(share * 1_000) / 10}%`);
const formatMs = (ms: number | null) => (ms === null ? "" : durationText(Math.round(ms)));

function distribution({ mean, p50, p95, p99 }: Distribution): string {
  if (mean === null) return "nothing to measure";
  return `mean ${formatMs(mean)}, p50 ${formatMs(p50)}, p95 ${formatMs(p95)}, p99 ${formatMs(p99)}`;
}
