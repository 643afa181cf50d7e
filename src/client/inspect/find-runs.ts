/** Finds runs by their idempotency key or their hero, for callers that do not know the id. */
import { InvalidInputError, InvalidStateError, RunNotFoundError } from "../../core/errors/errors.js";
import { checkOptions } from "../../core/naming/check-options.js";
import { elementIdOf } from "../../core/naming/element-id.js";
import { checkName } from "../../core/naming/names.js";
import type { HeroRef } from "../../define/hero.js";
import { type AnyWorkflow, asDefinition, nameOf } from "../../define/resolve.js";
import type { RunRecord, Store } from "../../store/contract/store.js";

/** How `pawl.find` and `pawl.signal` find a run: by its idempotency key or by its hero. */
export type FindBy =
  | {
      /** The key that the run was started with. */
      readonly idempotencyKey: string;
    }
  | {
      /** The hero of the run. */
      readonly hero: HeroRef;
    };

const findOptions = new Set(["idempotencyKey", "hero"]);

/** Returns the id of a run, or of the start of a batch that has the key; null if there is none. */
export async function findRunId(store: Store, workflow: AnyWorkflow | string, by: FindBy): Promise<string | null> {
  const name = nameOf(workflow);
  const [run] = await findRuns(store, name, by, 1);
  if (run !== undefined) return run.id;
  const hasNoBatches = typeof workflow !== "string" && asDefinition(workflow).batch === null;
  if (hasNoBatches || !("idempotencyKey" in by)) return null;
  const item = await store.gatherings.itemOfKey(name, by.idempotencyKey);
  return item === null ? null : elementIdOf(item.runId, item.position);
}

/** Returns the active runs, newest first; if no run is active, the newest run that has ended. */
async function findRuns(store: Store, workflow: string, by: FindBy, limit: number): Promise<readonly RunRecord[]> {
  const filter = { workflow: checkName("workflow", workflow), ...filterOf(by) };
  if (filter.startKey !== undefined) return store.runs({ ...filter, limit: 1 });
  const activeRuns = await store.runs({ ...filter, active: true, limit });
  return activeRuns.length > 0 ? activeRuns : store.runs({ ...filter, limit: 1 });
}

/** @throws RunNotFoundError if no run matches, InvalidStateError if several matching runs are active */
export async function findSingleRun(store: Store, workflow: string, by: FindBy): Promise<RunRecord> {
  const [run, secondRun] = await findRuns(store, workflow, by, 2);
  if (run === undefined) throw new RunNotFoundError("", `A run of workflow "${workflow}" ${describeFindBy(by)}`);
  if (secondRun === undefined) return run;
  throw new InvalidStateError(
    `Several runs of workflow "${workflow}" ${describeFindBy(by)} are active, such as ${run.id} and ${secondRun.id}; choose one with run(id).`,
  );
}

function filterOf(by: FindBy): { readonly startKey?: string; readonly heroType?: string; readonly heroId?: string } {
  checkOptions("find()", by, findOptions);
  const { idempotencyKey, hero } = by as { readonly idempotencyKey?: string; readonly hero?: HeroRef };
  if ((idempotencyKey === undefined) === (hero === undefined))
    throw new InvalidInputError("A run is found by its `idempotencyKey` or by its `hero`; pass one of them.");
  if (hero === undefined) return { startKey: checkName("idempotency key", idempotencyKey) };
  return { heroType: checkName("hero type", hero?.type), heroId: checkName("hero id", hero?.id) };
}

const describeFindBy = (by: FindBy) =>
  "hero" in by ? `about ${by.hero.type} ${by.hero.id}` : `with the idempotency key "${by.idempotencyKey}"`;
