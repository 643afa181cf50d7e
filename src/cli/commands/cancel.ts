import type { RunHandle } from "../../client/run-handle.js";
import { openCompensations } from "../../core/run/compensation.js";
import { fold } from "../../core/run/fold.js";
import type { Store } from "../../store/contract/store.js";
import { command } from "../command.js";
import { readSettings } from "../config.js";
import { openDatabase } from "../database.js";
import { formatCount } from "../format-count.js";
import { findRunId } from "../run-lookup.js";

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
    const { pawl, store } = await openDatabase(await readSettings(call), call.out);
    try {
      const run = pawl.run(await findRunId(pawl, call.args[0] as string));
      const before = await readConsequences(run, store);
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
  /** The completed steps that have a compensation, the last one first. */
  readonly stepsToUndo: readonly string[];
  /** How many of the runs that the run has started have not ended. */
  readonly children: number;
}

const maxCountedChildren = 1_000;

/** Reads what canceling the run affects. A damaged log must not prevent the cancellation. */
async function readConsequences(run: RunHandle, store: Store): Promise<Consequences> {
  const wasCanceled = (await run.status()) === "canceled";
  const log = (await store.logs([run.id])).get(run.id) ?? [];
  const children = await store.runs({ parentId: run.id, active: true, limit: maxCountedChildren });
  let stepsToUndo: readonly string[] = [];
  try {
    stepsToUndo = openCompensations(fold(log));
  } catch {
    // Canceling the run reports the damaged log.
  }
  return { wasCanceled, stepsToUndo, children: children.length };
}

function ended({ wasCanceled, stepsToUndo, children }: Consequences, force: boolean): string {
  if (wasCanceled) return " already; nothing was changed";
  const parts = [
    ...(children > 0 ? [`${formatChildren(children)} ${children === 1 ? "is" : "are"} canceled, too`] : []),
    ...(force && stepsToUndo.length > 0 ? [`${formatSteps(stepsToUndo)} not undone, as it was canceled by force`] : []),
  ];
  return parts.length === 0 ? "" : `; ${parts.join("; ")}`;
}

function planned({ stepsToUndo, children }: Consequences, status: string): string {
  const when =
    status === "running" ? "it is canceled when the current step is done" : "it is canceled when a worker takes it";
  const then = [
    ...(stepsToUndo.length > 0 ? [`${formatSteps(stepsToUndo)} undone first`] : []),
    ...(children > 0 ? [`${formatChildren(children)} ${children === 1 ? "is" : "are"} canceled, too`] : []),
  ];
  return `; ${[when, ...then].join("; ")}`;
}

const formatSteps = (steps: readonly string[]) =>
  `${formatCount(steps.length, "step")} (${listSteps(steps)}) ${steps.length === 1 ? "is" : "are"}`;

const listSteps = (steps: readonly string[]) =>
  steps.length <= 5 ? steps.join(", ") : `${steps.slice(0, 5).join(", ")}, …`;

const formatChildren = (children: number) =>
  children === maxCountedChildren
    ? `more than ${maxCountedChildren - 1} runs that it started`
    : `${formatCount(children, "run")} that it started`;
