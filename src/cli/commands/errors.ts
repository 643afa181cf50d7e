import { command } from "../command.js";
import { withPawl } from "../database.js";
import { table } from "../table.js";
import { relativeTime } from "../times.js";

export const errors = command({
  name: "errors",
  about: "List the errors of failed and paused runs, the latest first",
  args: [],
  options: {},
  example: "pawl errors",

  run: async (call) => {
    const { out } = call;
    const now = out.now();
    const report = await withPawl(call, (pawl) => pawl.errors());
    out.print(report, () => {
      if (report.errors.length === 0) return "No failed or paused runs with errors.";
      const rows = report.errors.map(({ fingerprint, workflow, status, step, name, message, count, lastRunAt }) => [
        fingerprint,
        workflow,
        step ?? "",
        status,
        String(count),
        relativeTime(lastRunAt, now),
        `${name}: ${message}`,
      ]);
      const lines = table(columns, rows, { columns: out.columns, paint: out.paint, cutWhole: out.isTerminal });
      const more = report.capped.map((status) =>
        out.paint("dim", `Only the newest 10,000 ${status} runs were counted.`),
      );
      return [...lines, ...more, out.paint("dim", "Their runs: pawl runs --fingerprint <id>")];
    });
  },
});

const columns = [
  { title: "id", whole: true },
  { title: "workflow" },
  { title: "step" },
  { title: "status" },
  { title: "runs", align: "right" },
  { title: "latest" },
  { title: "error", spareFrom: 12 },
] as const;
