import type { RunHandle } from "../../client/run-handle.js";
import { openCompensations } from "../../core/run/compensation.js";
import { fold } from "../../core/run/fold.js";
import type { Store } from "../../store/contract/store.js";
import { command } from "../command.js";
import { settingsOf } from "../config.js";
import { count } from "../counting.js";
import { openDatabase } from "../database.js";
import { findRun } from "../find-run.js";

export const cancel = command({
  name: "cancel",
  about: "Cancel a run, and the runs that it started",
  args: ["<run>"],
  options: {
    reason: { type: "string", value: "<text>", about: "Why, for the history of the run" },
    force: { type: "boolean", about: "End it at once, whatever its code says, and undo nothing" },
  },
  example: 'pawl cancel f09ab42c --reason "ordered twice"',

  run: async (call) => {
    const { reason, force = false } = call.options;
    const { pawl, store } = await openDatabase(await settingsOf(call), call.out);
    try {
      const run = pawl.run(await findRun(pawl, call.args[0] as string));
      const before = await consequencesOf(run, store);
      await run.cancel(reason, { force });
      const info = await run.get();
      call.out.print(info, () => {
        const then = info.status === "canceled" ? ended(before, force) : planned(before, info.status);
        return `Run ${info.id} of ${info.workflow} is ${info.status}${then}.`;
      });
    } finally {
      await pawl.close();
    }
  },
});

interface Consequences {
  readonly wasCanceled: boolean;
  /** The steps that can be undone, the last one first. */
  readonly undo: readonly string[];
  /** Runs that it has started and that have not ended. */
  readonly children: number;
}

const mostCounted = 1_000;

/** A log that is damaged is no reason not to cancel the run. */
async function consequencesOf(run: RunHandle, store: Store): Promise<Consequences> {
  const wasCanceled = (await run.status()) === "canceled";
  const log = (await store.logs([run.id])).get(run.id) ?? [];
  const children = await store.runs({ parentId: run.id, active: true, limit: mostCounted });
  let undo: readonly string[] = [];
  try {
    undo = openCompensations(fold(log));
  } catch {
    // The command that cancels it tells of it.
  }
  return { wasCanceled, undo, children: children.length };
}

function ended({ wasCanceled, undo, children }: Consequences, force: boolean): string {
  if (wasCanceled) return " already; nothing was changed";
  const parts = [
    ...(children > 0 ? [`${childrenOf(children)} ${children === 1 ? "is" : "are"} canceled, too`] : []),
    ...(force && undo.length > 0 ? [`${stepsOf(undo)} not undone, as it was canceled by force`] : []),
  ];
  return parts.length === 0 ? "" : `; ${parts.join("; ")}`;
}

function planned({ undo, children }: Consequences, status: string): string {
  const when =
    status === "running" ? "it is canceled when the step at hand is done" : "it is canceled when a worker takes it up";
  const then = [
    ...(undo.length > 0 ? [`${stepsOf(undo)} undone first`] : []),
    ...(children > 0 ? [`${childrenOf(children)} ${children === 1 ? "is" : "are"} canceled, too`] : []),
  ];
  return `; ${[when, ...then].join("; ")}`;
}

const stepsOf = (steps: readonly string[]) =>
  `${count(steps.length, "step")} (${shown(steps)}) ${steps.length === 1 ? "is" : "are"}`;

const shown = (steps: readonly string[]) =>
  steps.length <= 5 ? steps.join(", ") : `${steps.slice(0, 5).join(", ")}, …`;

const childrenOf = (children: number) =>
  children === mostCounted
    ? `more than ${mostCounted - 1} runs that it started`
    : `${count(children, "run")} that it started`;
