/** The sections of a commit that release slots of limits. They exist only in commits of runs that hold slots. */
import { type CommitWork, changeKind } from "../commit-work.js";
import { plainArray } from "./arrays.js";
import type { Section } from "./statement.js";
import { isOptimisticFinish } from "./task-sections.js";

function releasingIds({ taskChanges }: CommitWork): readonly unknown[] | null {
  const ids = taskChanges.filter(({ releasesSlots }) => releasesSlots).map(({ runId }) => runId);
  return ids.length === 0 ? null : [plainArray(ids)];
}

/** For `plainFinishesSection`, which makes the whole statement fail unless all runs end. */
export const plainSlotsSection: Section = {
  letter: "y",
  values: (work) => (isOptimisticFinish(work) ? releasingIds(work) : null),
  parts: ({ tables, bind }) => ({
    writes: [
      `released_slots AS (DELETE FROM ${tables.slots} s WHERE s.run_id = ANY (${bind()}::uuid[]) AND (SELECT gate.at FROM gate) IS NOT NULL)`,
    ],
  }),
};

/**
 * Runs that have messages stay with their owner, and keep their slots. Parking releases only the slots that a run holds while
 * a worker executes it; the others have no owner.
 */
export const slotsSection: Section = {
  letter: "j",
  values: (work) => (isOptimisticFinish(work) ? null : releasingIds(work)),
  parts: ({ tables, bind }) => {
    const changedIds = (condition: string) => `ARRAY(SELECT changed.id FROM changed_tasks changed WHERE ${condition})`;
    const isReleased = "changed.pending_messages = changed.drained_count";
    return {
      writes: [
        `released_slots AS (DELETE FROM ${tables.slots} s WHERE s.run_id = ANY (${bind()}::uuid[])
          AND (s.run_id = ANY (${changedIds(`changed.kind = ${changeKind.finish} AND ${isReleased}`)})
            OR s.owner IS NOT NULL AND s.run_id = ANY (${changedIds(`changed.kind = ${changeKind.park} AND ${isReleased}`)})))`,
      ],
    };
  },
};
