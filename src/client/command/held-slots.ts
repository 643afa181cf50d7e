/**
 * The slots that a parked run holds until it ends, because a limit is held `while: "open"`. A worker knows the slots of the runs
 * that it executes. A client that ends a run must give them back, or they would be lost to their lanes until a worker tidies up.
 */
import { hasParkedSteps, openLanesIn } from "../../core/run/parking-note.js";
import type { NextTaskState } from "../../core/run/transition.js";
import type { Logger } from "../../define/context.js";
import type { RunRecord, Store, TaskRecord } from "../../store/contract/store.js";
import { warnOfRetry } from "../../telemetry/warn-of-retry.js";

export interface SlotRelease {
  readonly next: NextTaskState;
  /** Must be called when the commit is durable: runs may wait for the slots. Never throws, because workers look for them, too. */
  announce(): Promise<void>;
}

interface EndingRun {
  readonly run: Pick<RunRecord, "id" | "waiting">;
  readonly task: Pick<TaskRecord, "deliveries">;
  readonly next: NextTaskState;
}

/** Makes a transition that ends a run give back its slots. The run has no owner, so it cannot get others meanwhile. */
export async function withSlotRelease(
  { store, log }: { readonly store: Store; readonly log: Logger },
  { run, task, next }: EndingRun,
): Promise<SlotRelease> {
  const lanes = next.kind === "finish" ? await heldLanes(store, run, task) : [];
  if (next.kind !== "finish" || (lanes.length === 0 && !hasParkedSteps(run.waiting)))
    return { next, announce: async () => {} };
  const announce = async () => {
    if (lanes.length === 0) return;
    try {
      await store.limits.wake(lanes.map((lane) => ({ lane, count: 1 })));
    } catch (error) {
      warnOfRetry(log, "Free slots of limits could not be announced; workers find them within seconds.", error);
    }
  };
  return { next: { ...next, releasesSlots: true }, announce };
}

/** The note of a parked run names them. A run whose worker died has none, so the store is asked for that one. */
async function heldLanes(store: Store, run: EndingRun["run"], task: EndingRun["task"]): Promise<readonly string[]> {
  if (run.waiting !== null) return openLanesIn(run.waiting);
  if (task.deliveries === 0) return [];
  return (await store.limits.slots({ runIds: [run.id] }, Number.MAX_SAFE_INTEGER)).map(({ lane }) => lane);
}
