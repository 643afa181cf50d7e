/** A start whose key is taken: it is the run that has the key, or a mistake. */
import { isDeepStrictEqual } from "node:util";
import { decode } from "../../core/encoding/decode.js";
import { AlreadyActiveError, InvalidInputError } from "../../core/errors/errors.js";
import { type FrozenDag, isSamePlan } from "../../core/graph/frozen-dag.js";
import { frozenVersion } from "../../core/naming/route.js";
import type { NewRun, Refusal } from "../../store/contract/store.js";

/** @returns the id of the run that the same start has made before */
export function existingRun(run: NewRun, refusal: Refusal): string {
  const { existing: first } = refusal;
  if (refusal.reason === "heroKey") {
    throw new AlreadyActiveError({
      workflow: run.workflow,
      hero: { type: run.heroType as string, id: run.heroId as string },
      runId: first.id,
    });
  }
  if (first.input === run.input || isSameInput(first, run)) return first.id;
  throw new InvalidInputError(
    `Workflow "${run.workflow}" was started with the idempotency key "${run.startKey}" before, as run ${first.id}, but with another input. Use another key for another start.`,
    { runId: first.id },
  );
}

function isSameInput(first: Pick<NewRun, "input" | "version">, run: NewRun): boolean {
  const [one, other] = [decode(first.input), decode(run.input)];
  if (first.version === frozenVersion && run.version === frozenVersion)
    return isSamePlan(one as FrozenDag, other as FrozenDag, isDeepStrictEqual);
  return isDeepStrictEqual(one, other);
}
