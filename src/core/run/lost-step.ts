/** Steps that have started and that nothing executes any more. */
import type { RunState, StepOp } from "./state.js";
import { scopeSeparator } from "./step-key.js";

/**
 * Whether a run without an owner has a step that started and will never end by itself. The log need not say that the run was
 * recovered: a commit that the server executes after its connection has failed may release the run while the body is running.
 *
 * A step that waits for its job is not lost, because the job must not run twice. Nor is a declared step, because the run may have
 * been parked while its body waited for something durable, such as a timer.
 */
export function isLostStep(state: RunState, key: string, op: StepOp): boolean {
  if (op.phase !== "started") return false;
  const isDeclared = state.stepStructure !== null && !key.includes(scopeSeparator);
  return op.isAbandoned || (op.job === null && !isDeclared);
}
