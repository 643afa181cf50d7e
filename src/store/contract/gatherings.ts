/**
 * The part of a store that concerns starts which are gathered: debounced ones, and those of workflows with `batch`.
 *
 * - A row of `gatherings` leads the starts of one key to the run that gathers them. A transaction that gathers locks it, then
 *   the task of the run. So starts with one key come one after another, and none of them is added to a run that a worker
 *   has begun: whichever locks the task first decides.
 * - A run gathers until a worker has claimed it, or until an operator pauses or ends it.
 * - The inputs of a list are rows of `gathered` until the run begins. Then its own row gets all of them, and the rows remain
 *   as a record of the starts and their keys.
 */
import type { GatherCall, GatheredItem, GatherOutcome } from "../../core/gathering/plan-gathering.js";
import type { RefusedStart } from "./commit.js";
import type { RunRecord } from "./records.js";

export type { GatherCall, GatheredItem, GatherOutcome } from "../../core/gathering/plan-gathering.js";

export type GatherResult =
  | {
      readonly kind: "gathered";
      readonly at: number;
      /** In the order of the calls. */
      readonly outcomes: readonly GatherOutcome[];
      /** The runs that were created. */
      readonly createdIds: readonly string[];
    }
  /** Nothing was written: a run that was to be created was refused, or a run that is no part of a batch has a start key. */
  | { readonly kind: "refused"; readonly refused: readonly RefusedStart[] };

export interface Gatherings {
  /**
   * Adds each start to the run that gathers its like, or creates one.
   *
   * @param options.mayRepeat whether the calls may have been made before, without their answer having arrived
   */
  gather(calls: readonly GatherCall[], options: { readonly mayRepeat: boolean }): Promise<GatherResult>;
  /**
   * Called by the worker that has claimed these runs, before their code is called: they gather nothing from now on, and their
   * rows get their input. Returns the runs; those that have begun before are not changed.
   */
  begin(runIds: readonly string[]): Promise<ReadonlyMap<string, Pick<RunRecord, "input" | "schedule">>>;
  /** The items of a run, in order. */
  items(runId: string): Promise<readonly GatheredItem[]>;
  /** The element of a batch that was started with this key; null if none was. */
  itemOfKey(workflow: string, startKey: string): Promise<GatheredItem | null>;
}
