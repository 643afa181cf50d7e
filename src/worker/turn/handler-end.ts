/** What happens to a run when its handler returns, throws or raises flow control. */
import { encode } from "../../core/encoding/encode.js";
import { reviveFailure, toFailure } from "../../core/encoding/error-record.js";
import { PauseError } from "../../core/errors/errors.js";
import { toSafeThrown } from "../../core/errors/safe-thrown.js";
import { nextDelayMs } from "../../core/naming/retry-policy.js";
import { cancelChildren } from "../../core/run/cancel-children.js";
import { cancelFailure } from "../../core/run/cancel-reason.js";
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
import { checkOutputs, outputOfBatch } from "./batch.js";
import type { WholeTurn } from "./ports.js";
import { endRun } from "./run-end.js";
import { warnOfInvalidOptions } from "./user-code.js";

export function handlerReturned(turn: WholeTurn, output: unknown): Promise<void> | void {
  if (turn.isOver) return;
  const swallowedInterrupt = turn.flowControl.take();
  if (swallowedInterrupt !== null) return applyFlowControl(turn, swallowedInterrupt);
  if (turn.phase.ignoresHandlerResult) return turn.scheduleIdleCheck();
  if (!pauseIfCallsAreMissing(turn)) return completeRun(turn, output);
}

/**
 * If the handler ended without making every call in the log, its code has changed, so the run is paused, not
 * compensated.
 */
function pauseIfCallsAreMissing(turn: WholeTurn, thrown?: unknown): boolean {
  const leftOver = turn.handler.gate?.leftOver ?? [];
  if (leftOver.length === 0) return false;
  turn.pauseMismatched([], leftOver, thrown);
  return true;
}

export async function handlerThrew(turn: WholeTurn, thrown: unknown): Promise<void> {
  if (turn.isOver) return;
  const error = toSafeThrown(thrown);
  const swallowedInterrupt = turn.flowControl.take();
  if (error instanceof FlowControlInterrupt || swallowedInterrupt !== null)
    return applyFlowControl(
      turn,
      error instanceof FlowControlInterrupt ? error : (swallowedInterrupt as FlowControlInterrupt),
    );
  if (turn.isDraining) return turn.scheduleIdleCheck();
  warnOfInvalidOptions(turn, error, "its code");
  if (isTransientError(error) && (await postponeRun(turn, error))) return;
  if (pauseIfCallsAreMissing(turn, error)) return;
  if (error instanceof PauseError) return recordPause(turn, pausedBy(error, {}, turn.host.recheckPausedMs));
  await failRun(turn, error);
}

/** Returns null if the retry policy itself throws; the original error then fails the run, as it would fail a step. */
function retryDelayAfter(turn: WholeTurn, error: unknown): number | null {
  try {
    return nextDelayMs(
      turn.definition.retry,
      turn.state.consecutiveTransientFailures + 1,
      turn.host.runtime.random(),
      error,
    );
  } catch (retryPolicyError) {
    turn.log.error(
      `Run ${turn.runId}: the retry policy of its workflow threw, so the run is not retried.`,
      retryPolicyError,
    );
    return null;
  }
}

/**
 * Applies flow control that the handler raised, or that a step raised for the whole run. `stepEndEvents` record the end of
 * that step. They are committed together with the end of the run, so that the handler never continues after the step.
 */
export async function applyFlowControl(
  turn: WholeTurn,
  { action }: FlowControlInterrupt,
  stepEndEvents: readonly NewEvent[] = [],
): Promise<void> {
  // Only flow control of the handler is checked: a step could start only after the code had made every call in the log.
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
      const pausedEvent = newEvent("run.paused", { node: action.key }, { reason, continuesWhenResumed: true });
      if (turn.handler.gate?.isReplaying)
        return turn.handler.gate.startWhenLive(action.key, false, () => void recordPause(turn, pausedEvent));
      return recordPause(turn, pausedEvent);
    }
    case "reattempt":
      return reattemptRun(turn, action.waitMs, action.rewind);
    case "suspend":
      return reattemptRun(turn, action.waitMs, false);
  }
}

/**
 * Runs the handler again after a `TransientError`, which does not count as a failure. The delay grows each time, and after
 * too many transient errors in a row the run is paused. Returns false if the retry policy threw.
 */
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

/** Pauses the run. Steps that are still running may finish; then the run is parked. */
async function recordPause(turn: WholeTurn, pausedEvent: NewEvent): Promise<void> {
  await turn.submit([pausedEvent]);
}

async function reattemptRun(turn: WholeTurn, waitMs: number, rewind: boolean, isTransient = false): Promise<void> {
  // A rewound handler starts over and awaits none of its children, so all children are canceled. Children whose start is
  // still pending are committed first, so that they can be canceled, too.
  if (rewind) {
    await turn.attempts.preventParkingDuring(() => turn.writer.flushPendingStarts());
    for (const message of cancelChildren(turn.runId, turn.state)) turn.pendingWrites.messages.push(message);
  }
  const transientData = isTransient ? ({ transient: true } as const) : {};
  turn.pendingWrites.addWaitEvent(newEvent("run.reattempted", {}, { waitMs, rewind, ...transientData }), {
    inMs: waitMs,
  });
  return turn.park();
}

function completeRun(turn: WholeTurn, output: unknown, stepEndEvents: readonly NewEvent[] = []): Promise<void> | void {
  const { name, outputSchema, batch } = turn.definition;
  if (batch !== null) return completeBatch(turn, output, stepEndEvents);
  if (outputSchema !== null) return completeWithSchema(turn, output, outputSchema, stepEndEvents);
  let text: string;
  try {
    text = encode(output, { label: `the output of workflow "${name}"` });
  } catch (error) {
    return failRun(turn, error, stepEndEvents);
  }
  return endRun(turn, { status: "completed", events: stepEndEvents, output: text, error: null });
}

/** Each start has an output of its own, so together they may be larger than one output. */
async function completeBatch(turn: WholeTurn, output: unknown, stepEndEvents: readonly NewEvent[]): Promise<void> {
  const { name, outputSchema } = turn.definition;
  const label = `output of workflow "${name}"`;
  let text: string;
  try {
    let outputs = checkOutputs(turn.definition, output, turn.storedInput.value);
    if (outputSchema !== null)
      outputs = await turn.attempts.preventParkingDuring(() =>
        Promise.all(outputs.map((value) => validate(outputSchema, value, label))),
      );
    for (const value of outputs) encode(value, { label: `the ${label}` });
    const whole = outputOfBatch(turn.definition, turn.run, outputs);
    text = encode(whole, { label: `the ${label}`, limitBytes: Number.POSITIVE_INFINITY });
  } catch (error) {
    return failRun(turn, error, stepEndEvents);
  }
  await endRun(turn, { status: "completed", events: stepEndEvents, output: text, error: null });
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
    if (!turn.phase.on({ type: "compensation started" })) return;
    if (!(await compensate(turn, `the run failed: ${failure.message}`))) return;
    await callOnFailure(turn, error);
  } else if (!turn.isDraining || turn.state.timeoutFailure !== null) await callOnFailure(turn, error);
  if (turn.isOver) return;
  await endRun(turn, { status: "failed", events: stepEndEvents, output: null, error: failure });
}

/** Calls onFailure as the last recorded step of the run. The run fails whether onFailure succeeds or throws. */
async function callOnFailure(turn: WholeTurn, error: unknown): Promise<void> {
  const { onFailure, name } = turn.definition;
  if (onFailure === null) return;
  turn.phase.on({ type: "last step started", step: onFailureStep });
  const cause = error instanceof Error ? error : reviveFailure(toFailure(error));
  const info = { runId: turn.runId, workflowName: name, input: turn.handler.input, error: cause };
  try {
    // The return value of onFailure is dropped: no code can read it, and a database driver's result may not be encodable.
    await createContext(new CallScope(turn)).step(onFailureStep, async () => {
      await onFailure(info);
    });
  } catch (onFailureError) {
    turn.log.error(`Run ${turn.runId}: onFailure threw; the run still fails with its own error.`, onFailureError);
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

export function cancelWithoutCompensation(
  turn: WholeTurn,
  reason: string | null,
  stepEndEvents: readonly NewEvent[] = [],
): Promise<void> | void {
  const error = cancelFailure(reason, turn.state.cancelRequest?.code);
  return endRun(turn, { status: "canceled", events: stepEndEvents, output: null, error });
}

/** The cancel is committed before compensation starts, so that the next owner continues compensating after a crash. */
async function compensateAndCancel(
  turn: WholeTurn,
  reason: string | null,
  stepEndEvents: readonly NewEvent[],
): Promise<void> {
  if (turn.state.cancelRequest === null) {
    await turn.submit([...stepEndEvents, newEvent("run.cancel_requested", {}, reason === null ? {} : { reason })]);
    return;
  }
  if (!turn.phase.on({ type: "compensation started" })) return;
  if (await compensate(turn, `the run was canceled${reason === null ? "." : `: ${reason}`}`)) cancelRun(turn, reason);
}
