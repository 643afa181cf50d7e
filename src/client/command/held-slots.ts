/**
 * The slots that a parked run holds until it ends, because a limit is held `while: "open"`. A worker knows the slots of the runs
 * that it executes. A client that ends a run must read them, or they would be lost to their lanes until a worker tidies up.
 */
import type { NextTaskState } from "../../core/run/transition.js";
import type { Logger } from "../../define/context.js";
import type { FreedSlots } from "../../store/contract/limits.js";
import type { Store } from "../../store/contract/store.js";
import { warnOfRetry } from "../../telemetry/warn-of-retry.js";

export interface SlotRelease {
  readonly next: NextTaskState;
  /** Must be called when the commit is durable: runs may wait for the slots. */
  announce(): void;
}

/** Makes a transition that ends a run give back its slots. The run has no owner, so it cannot get others meanwhile. */
export async function withSlotRelease(
  { store, log }: { readonly store: Store; readonly log: Logger },
  runId: string,
  next: NextTaskState,
): Promise<SlotRelease> {
  const slots = next.kind === "finish" ? await store.limits.slots({ runIds: [runId] }, Number.MAX_SAFE_INTEGER) : [];
  if (next.kind !== "finish" || slots.length === 0) return { next, announce: () => {} };
  const freed = slots.map(({ lane }): FreedSlots => ({ lane, count: 1 }));
  return {
    next: { ...next, releasesSlots: true },
    announce: () =>
      void store.limits
        .wake(freed)
        .catch((error: unknown) => warnOfRetry(log, "Free slots of limits could not be announced.", error)),
  };
}
