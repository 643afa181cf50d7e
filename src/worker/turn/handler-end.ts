/** How the handler of a workflow ended, and what that means for the run. */
import { encode } from "../../core/encoding/encode.js";
import { type Failure, reviveFailure, toFailure } from "../../core/encoding/error-record.js";
import { PauseError } from "../../core/errors/errors.js";
import { toSafeThrown } from "../../core/errors/safe-thrown.js";
import { nextDelayMs } from "../../core/naming/retry-policy.js";
import { cancelChildren } from "../../core/run/cancel-children.js";
import { openCompensations } from "../../core/run/compensation.js";
import { type NewEvent, newEvent } from "../../core/run/event.js";
import { FlowControlInterrupt } from "../../core/run/flow-control.js";
import { onFailureStep } from "../../core/run/step-name.js";
import { isTransientError } from "../../define/retry-reaction.js";
import { type StandardSchemaV1, validate } from "../../define/standard-schema.js";
import { CallScope } from "../replay/call-scope.js";
import { createContext } from "../replay/context.js";
import { compensate } from "../step/compensation.js";
import { pausedBy } from "../step/pause-event.js";
import { describePostponedTooOften, isPostponedTooOften } from "../step/postponement.js";
import type { WholeTurn } from "./ports.js";
import { endRun } from "./run-end.js";
import { warnOfInvalidOptions } from "./user-code.js";

export function handlerReturned(turn: WholeTurn, output: unknown): Promise<void> | void {
  if (turn.isOver) return;
  const swallowed = turn.flowControl.take();
  if (swallowed !== null) return applyFlowControl(turn, swallowed);
  if (turn.phase.ignoresHandlerResult) return turn.scheduleIdleCheck();
  if (!pauseIfCallsAreMissing(turn)) return completeRun(turn, output);
}

/** Code that ends without having made the calls in its log is not the code of this run: nothing ends, nothing is undone. */
function pauseIfCallsAreMissing(turn: WholeTurn, thrown?: unknown): boolean {
  const leftOver = turn.handler.gate?.leftOver ?? [];
  if (leftOver.length === 0) return false;
  turn.pauseMismatched([], leftOver, thrown);
  return true;
}

export async function handlerThrew(turn: WholeTurn, thrown: unknown): Promise<void> {
  if (turn.isOver) return;
  const error = toSafeThrown(thrown);
  const swallowed = turn.flowControl.take();
  if (error instanceof FlowControlInterrupt || swallowed !== null)
    return applyFlowControl(turn, error instanceof FlowControlInterrupt ? error : (swallowed as FlowControlInterrupt));
  if (turn.isDraining) return turn.scheduleIdleCheck();
  warnOfInvalidOptions(turn, error, "its code");
  if (isTransientError(error) && (await postponeRun(turn, error))) return;
  if (pauseIfCallsAreMissing(turn, error)) return;
  if (error instanceof PauseError) return recordPause(turn, pausedBy(error, {}, turn.host.recheckPausedMs));
  await failRun(turn, error);
}

/** null: the backoff of the policy fails itself, so there is no telling when; what was thrown stands, as it would in a step. */
function retryDelayAfter(turn: WholeTurn, error: unknown): number | null {
  try {
    return nextDelayMs(
      turn.definition.retry,
      turn.state.consecutiveTransientFailures + 1,
      turn.host.runtime.random(),
      error,
    );
  } catch (retryPolicyError) {
    turn.log.error(`Run ${turn.runId}: what its workflow says about retrying failed itself.`, retryPolicyError);
    return null;
  }
}

/**
 * Flow control that was raised in the handler itself, or in a step but concerning the whole run. `ended` is the end of
 * that step: it is written together with the end of the run, or code would go on behind it.
 */
export async function applyFlowControl(
  turn: WholeTurn,
  { action }: FlowControlInterrupt,
  stepEndEvents: readonly NewEvent[] = [],
): Promise<void> {
  // What a step raised was asked for by a step that the log knows; what the handler raised may come from changed code.
  const endsRun = action.kind === "cancel" || action.kind === "finish" || action.kind === "skip";
  if (endsRun && stepEndEvents.length === 0 && !turn.phase.ignoresHandlerResult && pauseIfCallsAreMissing(turn)) return;
  switch (action.kind) {
    case "cancel":
      return cancelRun(turn, action.reason, stepEndEvents);
    case "finish":
      return completeRun(turn, action.output, stepEndEvents);
    case "skip":
      return completeRun(turn, undefined);
    case "pause": {
      const reason = action.reason ?? "Paused by the workflow.";
      const paused = newEvent("run.paused", { node: action.key }, { reason, continuesWhenResumed: true });
      if (turn.handler.gate?.isReplaying)
        return turn.handler.gate.startWhenLive(action.key, false, () => void recordPause(turn, paused));
      return recordPause(turn, paused);
    }
    case "reattempt":
      return reattemptRun(turn, action.waitMs, action.rewind);
    case "suspend":
      return reattemptRun(turn, action.waitMs, false);
  }
}

/** "Come back later" is not a failure; but the wait grows as if it were one, and there is an end to it. False: it cannot be put off. */
async function postponeRun(turn: WholeTurn, error: unknown): Promise<boolean> {
  if (isPostponedTooOften(turn.state.consecutiveTransientFailures)) {
    const reason = describePostponedTooOften("The run", error);
    await recordPause(turn, newEvent("run.paused", {}, { reason, error: toFailure(error) }));
    return true;
  }
  const waitMs = retryDelayAfter(turn, error);
  if (waitMs === null) return false;
  await reattemptRun(turn, waitMs, false, true);
  return true;
}

/** The pause is recorded; what runs beside may finish, and then the run is parked. */
async function recordPause(turn: WholeTurn, paused: NewEvent): Promise<void> {
  await turn.submit([paused]);
}

async function reattemptRun(turn: WholeTurn, waitMs: number, rewind: boolean, isTransient = false): Promise<void> {
  // What the handler forgets is not waited for any more: also what it has only just asked for.
  if (rewind) {
    await turn.attempts.preventParkingDuring(() => turn.writer.flushPendingStarts());
    for (const message of cancelChildren(turn.runId, turn.state)) turn.pendingWrites.messages.push(message);
  }
  const transient = isTransient ? ({ transient: true } as const) : {};
  turn.pendingWrites.addWaitEvent(newEvent("run.reattempted", {}, { waitMs, rewind, ...transient }), { inMs: waitMs });
  return turn.park();
}

function completeRun(turn: WholeTurn, output: unknown, stepEndEvents: readonly NewEvent[] = []): Promise<void> | void {
  const { name, outputSchema } = turn.definition;
  if (outputSchema !== null) return completeWithSchema(turn, output, outputSchema, stepEndEvents);
  let text: string;
  try {
    text = encode(output, { label: `the output of workflow "${name}"` });
  } catch (error) {
    return failRun(turn, error, stepEndEvents);
  }
  return endRun(turn, { status: "completed", events: stepEndEvents, output: text, error: null });
}

async function completeWithSchema(
  turn: WholeTurn,
  output: unknown,
  schema: StandardSchemaV1,
  stepEndEvents: readonly NewEvent[],
): Promise<void> {
  const { name } = turn.definition;
  let text: string;
  try {
    const value = await turn.attempts.preventParkingDuring(() =>
      validate(schema, output, `output of workflow "${name}"`),
    );
    text = encode(value, { label: `the output of workflow "${name}"` });
  } catch (error) {
    return failRun(turn, error, stepEndEvents);
  }
  await endRun(turn, { status: "completed", events: stepEndEvents, output: text, error: null });
}

export async function failRun(turn: WholeTurn, error: unknown, stepEndEvents: readonly NewEvent[] = []): Promise<void> {
  turn.handler.thrown = { error };
  const failure = toFailure(error);
  if (openCompensations(turn.state).length > 0) {
    if (!turn.phase.on({ type: "undoing began" })) return;
    if (!(await compensate(turn, `the run failed: ${failure.message}`))) return;
    await callOnFailure(turn, error);
  } else if (!turn.isDraining || turn.state.timeoutFailure !== null) await callOnFailure(turn, error);
  if (turn.isOver) return;
  await endRun(turn, { status: "failed", events: stepEndEvents, output: null, error: failure });
}

/** A last, recorded step. Whatever it does, the run has failed. */
async function callOnFailure(turn: WholeTurn, error: unknown): Promise<void> {
  const { onFailure, name } = turn.definition;
  if (onFailure === null) return;
  turn.phase.on({ type: "last step began", step: onFailureStep });
  const cause = error instanceof Error ? error : reviveFailure(toFailure(error));
  const info = { runId: turn.runId, workflowName: name, input: turn.handler.input, error: cause };
  try {
    // No code can read what it returned, so nothing of that is recorded: it may be the result of a database driver.
    await createContext(new CallScope(turn)).step(onFailureStep, async () => {
      await onFailure(info);
    });
  } catch (onFailureError) {
    turn.log.error(`Run ${turn.runId}: onFailure itself failed.`, onFailureError);
  }
}

export function cancelRun(
  turn: WholeTurn,
  reason: string | null,
  stepEndEvents: readonly NewEvent[] = [],
): Promise<void> | void {
  if (openCompensations(turn.state).length > 0) return compensateAndCancel(turn, reason, stepEndEvents);
  return cancelWithoutCompensation(turn, reason, stepEndEvents);
}

/** Without undoing anything. */
export function cancelWithoutCompensation(
  turn: WholeTurn,
  reason: string | null,
  stepEndEvents: readonly NewEvent[] = [],
): Promise<void> | void {
  const error: Failure | null = reason === null ? null : { name: "RunCanceledError", message: reason };
  return endRun(turn, { status: "canceled", events: stepEndEvents, output: null, error });
}

/** That the run is canceled is in the log before anything is undone: the next owner goes on undoing. */
async function compensateAndCancel(
  turn: WholeTurn,
  reason: string | null,
  stepEndEvents: readonly NewEvent[],
): Promise<void> {
  if (turn.state.cancelRequest === null) {
    await turn.submit([...stepEndEvents, newEvent("run.cancel_requested", {}, reason === null ? {} : { reason })]);
    return;
  }
  if (!turn.phase.on({ type: "undoing began" })) return;
  if (await compensate(turn, `the run was canceled${reason === null ? "." : `: ${reason}`}`)) cancelRun(turn, reason);
}
