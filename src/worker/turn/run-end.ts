/** The last commit of a run: it writes the outcome, cancels open children and sends the result to the parent. */

import type { Failure } from "../../core/encoding/error-record.js";
import { cancelChildren } from "../../core/run/cancel-children.js";
import { expiredCode, skippedCode, supersededCode } from "../../core/run/cancel-reason.js";
import { startQueuedRuns } from "../../core/run/decide-queued-starts.js";
import type { NewEvent } from "../../core/run/event.js";
import { findFailedStep } from "../../core/run/failed-step.js";
import { finishRun } from "../../core/run/finish.js";
import { limitCycleCode, limitFullCode } from "../../core/run/full-limit.js";
import type { Message } from "../../core/run/message.js";
import type { RunState } from "../../core/run/state.js";
import type { TerminalStatus } from "../../store/contract/store.js";
import { createAttemptReport } from "./attempt-report.js";
import { mayHaveParkedSteps } from "./parked-steps.js";
import type { WholeTurn } from "./ports.js";
import { pauseRunOnError } from "./user-code.js";

export interface RunEnd {
  readonly status: TerminalStatus;
  /** Events that are committed together with the end: those that end the step that ended the run, if any. */
  readonly events: readonly NewEvent[];
  /** The encoded output; null if the run did not complete. */
  readonly output: string | null;
  readonly error: Failure | null;
}

export function endRun(turn: WholeTurn, runEnd: RunEnd): Promise<void> | void {
  if (!turn.phase.on({ type: "finishing started" })) return;
  if (!turn.writer.hasPendingStarts) return writeEnd(turn, runEnd);
  return endAfterPendingWrites(turn, runEnd);
}

async function endAfterPendingWrites(turn: WholeTurn, runEnd: RunEnd): Promise<void> {
  // A child whose start were written with the end would not be canceled with it, so there must be none left at that moment.
  do {
    await turn.writer.flushPendingStarts();
    if (await yieldsToCancelOrPause(turn, runEnd)) return;
  } while (!turn.isOver && turn.writer.hasPendingStarts);
  writeEnd(turn, runEnd);
}

function writeEnd(turn: WholeTurn, runEnd: RunEnd): void {
  const { status, events, output, error } = runEnd;
  const { run, state, pendingWrites } = turn;
  const pendingMessageCount = pendingWrites.messages.length;
  const attempt = createAttemptReport(turn, status === "failed" ? error : null);
  const failedStep = status === "failed" && error !== null ? findFailedStep(error, events, state) : null;
  const outcome = { status, output, error, failedStep };
  const { next, messages } = finishRun(
    run,
    outcome,
    state.startedAt ?? (wasNeverBegun(turn, error) ? null : turn.claimedAt),
    messagesOfEnd(run.id, state),
    attempt,
  );
  for (const message of messages) pendingWrites.messages.push(message);
  turn.setEndRefusedHandler((unwritten) => {
    pendingWrites.putBack({
      ...unwritten,
      events: unwritten.events.slice(0, unwritten.events.length - events.length),
      messages: unwritten.messages.slice(0, pendingMessageCount),
    });
    pauseRunOnError(turn, () => readInboxAndEnd(turn, runEnd));
  });
  turn.writer.post(events, mayHaveParkedSteps(turn) ? { ...next, releasesSlots: true } : next, noop);
}

/** Cancels the children that are open, and lets the runs begin that wait for the end of this one. */
const messagesOfEnd = (runId: string, state: RunState): readonly Message[] =>
  state.queuedStarts === null
    ? cancelChildren(runId, state)
    : [...cancelChildren(runId, state), ...startQueuedRuns(state)];

/** Whether the run ends because it has not begun in time, or because a limit was full: then it has no time of its start. */
const wasNeverBegun = ({ state }: WholeTurn, error: Failure | null): boolean => {
  const code = state.cancelRequest?.code ?? error?.code;
  return typeof code === "string" && codesOfUnbegunRuns.has(code);
};

const codesOfUnbegunRuns: ReadonlySet<string> = new Set([
  expiredCode,
  skippedCode,
  supersededCode,
  limitFullCode,
  limitCycleCode,
]);

/** Processes the messages that arrived before the end was written, and ends the run unless they cancel or pause it. */
async function readInboxAndEnd(turn: WholeTurn, runEnd: RunEnd): Promise<void> {
  await turn.inboxProcessor.checkNow();
  if (turn.isOver || (await yieldsToCancelOrPause(turn, runEnd))) return;
  turn.phase.on({ type: "turn end refused" });
  return endRun(turn, runEnd);
}

/**
 * Returns true if the run must not end now. A cancel that has been recorded prevents the run from completing. A pause
 * prevents every end, except an end that a step caused, because that step cannot be repeated.
 */
async function yieldsToCancelOrPause(turn: WholeTurn, { status, events }: RunEnd): Promise<boolean> {
  const { state, phase } = turn;
  const endsByStep = events.length > 0;
  const isCanceled = state.cancelRequest !== null && status === "completed";
  if (!isCanceled && (state.paused === null || endsByStep)) return false;
  phase.on({ type: "turn end refused" });
  if (endsByStep) await turn.submit(events);
  turn.scheduleIdleCheck();
  return true;
}

const noop = (): void => {};
