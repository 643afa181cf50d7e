/** A start whose key is taken: it is the run that has the key, or a mistake. */
import { isDeepStrictEqual } from "node:util";
import { decode } from "../../core/encoding/decode.js";
import { AlreadyActiveError, InvalidInputError } from "../../core/errors/errors.js";
import { type FrozenDag, isSamePlan } from "../../core/graph/frozen-dag.js";
import { frozenDagVersion } from "../../core/naming/route.js";
import type { NewRun, RefusedStart } from "../../store/contract/store.js";

/** @returns the id of the run that the same start has made before */
export function existingRunId(run: NewRun, refusal: RefusedStart): string {
  const { existing } = refusal;
  if (refusal.reason === "heroKey") {
    throw new AlreadyActiveError({
      workflow: run.workflow,
      hero: { type: run.heroType as string, id: run.heroId as string },
      runId: existing.id,
    });
  }
  if (existing.input === run.input || isSameInput(existing, run)) return existing.id;
  throw new InvalidInputError(
    `Workflow "${run.workflow}" was started with the idempotency key "${run.startKey}" before, as run ${existing.id}, but with another input. Use another key for another start.`,
    { runId: existing.id },
  );
}

function isSameInput(existing: Pick<NewRun, "input" | "version">, run: NewRun): boolean {
  const [existingInput, newInput] = [decode(existing.input), decode(run.input)];
  if (existing.version === frozenDagVersion && run.version === frozenDagVersion)
    return isSamePlan(existingInput as FrozenDag, newInput as FrozenDag, isDeepStrictEqual);
  return isDeepStrictEqual(existingInput, newInput);
}
