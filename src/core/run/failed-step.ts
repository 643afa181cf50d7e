/** Finds the step that made a run fail. */
import type { Failure } from "../encoding/error-record.js";
import { dataOf, type NewEvent } from "./event.js";
import type { RunState } from "./state.js";
import { onFailureStep } from "./step-name.js";

/**
 * Returns the step whose last attempt threw the error that the run failed with, or null if the workflow's code threw it
 * outside of a step.
 *
 * @param events the events that are written together with the end of the run
 * @param state the state before these events, if the caller has it
 */
export function findFailedStep(
  { name, message }: Failure,
  events: readonly NewEvent[],
  state: Pick<RunState, "ops"> | undefined,
): string | null {
  const isSameFailure = (failed: { readonly data: string | null }) => {
    const { error, retryMs } = dataOf(failed, "step.failed");
    return retryMs === undefined && error.name === name && error.message === message;
  };
  const failedEvent = events.findLast((event) => event.type === "step.failed" && isSameFailure(event));
  if (failedEvent !== undefined) return failedEvent.node;
  for (const [key, op] of state?.ops ?? [])
    if (op.kind === "step" && op.phase === "failed" && key !== onFailureStep && isSameFailure(op)) return key;
  return null;
}
