import type { Distribution, WorkflowMetrics } from "../../client/operate/metrics.js";
import type { Pawl } from "../../connect.js";
import { timeArgument } from "../arguments.js";
import { command } from "../command.js";
import { count } from "../counting.js";
import { withPawl } from "../database.js";
import { table } from "../table.js";
import { lasting, relative } from "../times.js";

export const metrics = command({
  name: "metrics",
  about: "Show how workflows are doing: success, durations, what waits",
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
    const found = await withPawl(call, async (pawl) => {
      const names = name === undefined ? await workflowsOf(pawl) : [name];
      return Promise.all(names.map((one) => pawl.metrics(one, window)));
    });
    if (name !== undefined) {
      const [only] = found as [WorkflowMetrics];
      return out.print(only, () => details(only, out.now()));
    }
    out.print(found, () => {
      if (found.length === 0) return "No workflows: no worker has ever been here.";
      return table(columns, found.map(row), { columns: out.columns, paint: out.paint, cutWhole: out.isTerminal });
    });
  },
});

async function workflowsOf(pawl: Pawl): Promise<string[]> {
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
    milliseconds(durations.p50),
    milliseconds(durations.p95),
    queue.depth.toLocaleString("en"),
    milliseconds(queue.oldestAgeMs),
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
      [`${count(total, "run")} since ${relative(since, now)}${truncated ? ", the newest" : ""}`, ...statuses].join(
        ", ",
      ),
    ],
    ["success", percent(successRate) || "nothing has ended"],
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

function queueLine({ name, depth, oldestAgeMs, executing, paused }: WorkflowMetrics["queue"], now: number): string {
  const oldest = oldestAgeMs === null ? "" : `, the oldest for ${lasting(oldestAgeMs)}`;
  const why =
    paused === null ? "" : `; paused ${relative(paused.at, now)}${paused.reason === null ? "" : `: ${paused.reason}`}`;
  return `${name}: ${depth} due${oldest}, ${executing} running${why}`;
}

const percent = (share: number | null) => (share === null ? "" : `${Math.floor(share * 1_000) / 10}%`);
const milliseconds = (ms: number | null) => (ms === null ? "" : lasting(Math.round(ms)));

function distribution({ mean, p50, p95, p99 }: Distribution): string {
  if (mean === null) return "nothing to measure";
  return `mean ${milliseconds(mean)}, p50 ${milliseconds(p50)}, p95 ${milliseconds(p95)}, p99 ${milliseconds(p99)}`;
}
