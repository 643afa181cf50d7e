/** Handles a start that the store rejected as a duplicate: a repetition of the same start succeeds, any other start throws. */
import { isDeepStrictEqual } from "node:util";
import { decode } from "../../core/encoding/decode.js";
import { AlreadyActiveError, InvalidInputError } from "../../core/errors/errors.js";
import { type FrozenDag, isSamePlan } from "../../core/graph/frozen-dag.js";
import { frozenDagVersion } from "../../core/naming/route.js";
import type { NewRun, RefusedStart } from "../../store/contract/store.js";

/**
 * @param onConflict what the caller has asked for; undefined stands for the default
 * @returns the id of the run that an identical start created before
 * @throws AlreadyActiveError if the hero has an active run, InvalidInputError if the key was used with another input
 */
export function existingRunId(run: NewRun, refusal: RefusedStart, onConflict?: "attach" | "fail"): string {
  const { existing } = refusal;
  if (refusal.reason === "startKey" && onConflict === "fail")
    throw new AlreadyActiveError({
      workflow: run.workflow,
      hero: null,
      idempotencyKey: run.startKey as string,
      runId: existing.id,
    });
  if (refusal.reason === "heroKey" && onConflict === "attach") return existing.id;
  if (refusal.reason === "heroKey") {
    throw new AlreadyActiveError({
      workflow: run.workflow,
      hero: { type: run.heroType as string, id: run.heroId as string },
      runId: existing.id,
    });
  }
  if (existing.input === run.input || isSameInput(existing, run)) return existing.id;
  throw new InvalidInputError(
    `Workflow "${run.workflow}" was already started with the idempotency key "${run.startKey}" and another input, as run ${existing.id}; use another key for another start.`,
    { runId: existing.id },
  );
}

function isSameInput(existing: Pick<NewRun, "input" | "version">, run: NewRun): boolean {
  const [existingInput, newInput] = [decode(existing.input), decode(run.input)];
  if (existing.version === frozenDagVersion && run.version === frozenDagVersion)
    return isSamePlan(existingInput as FrozenDag, newInput as FrozenDag, isDeepStrictEqual);
  return isDeepStrictEqual(existingInput, newInput);
}
