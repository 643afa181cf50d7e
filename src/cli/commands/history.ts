import type { HistoryEvent } from "../../client/inspect/history.js";
import { integerArgument } from "../arguments.js";
import { command } from "../command.js";
import { jsonOf } from "../json.js";
import { withRun } from "../run-lookup.js";
import { table } from "../table.js";
import { clock } from "../times.js";

export const history = command({
  name: "history",
  about: "Show the log of one run, event by event",
  args: ["<run>"],
  options: {
    after: { type: "string", value: "<n>", about: "Only events after this number" },
    limit: { type: "string", value: "<n>", about: "How many; default and maximum 1000" },
  },
  example: "pawl history f09ab42c --after 100",

  run: async (call) => {
    const { options, out } = call;
    const after = integerArgument("after", options.after) ?? 0;
    const limit = integerArgument("limit", options.limit) ?? 1_000;
    const events = await withRun(call, (run) => run.history({ after, limit }));
    out.print(events, () => {
      if (events.length === 0) return "No events.";
      const rows = events.map((event) => row(event, out.now()));
      return table(columns, rows, { columns: out.columns, paint: out.paint, cutWhole: out.isTerminal });
    });
  },
});

const columns = [
  { title: "#", align: "right" },
  { title: "at", whole: true },
  { title: "event", whole: true },
  { title: "of" },
  { title: "data", spareFrom: 10 },
] as const;

function row({ seq, at, type, node, attempt, outcome, data }: HistoryEvent, now: number): string[] {
  const subject = [node, attempt === null || attempt === 1 ? null : `#${attempt}`].filter((part) => part !== null);
  const { error, ...rest } = data as { readonly error?: { readonly message?: string } };
  const details = [
    outcome === "success" ? null : outcome,
    error?.message ?? null,
    Object.keys(rest).length === 0 ? null : jsonOf(rest),
  ];
  return [String(seq), clock(at, now), type, subject.join(" "), details.filter((part) => part !== null).join("  ")];
}
