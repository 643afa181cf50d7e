/** The last commit of a run: its row gets its end, its children are sent home, its parent is told. */

import type { Failure } from "../../core/encoding/error-record.js";
import { dismissChildren } from "../../core/run/cancel-children.js";
import type { NewEvent } from "../../core/run/event.js";
import { finishRun } from "../../core/run/finish.js";
import type { TerminalStatus } from "../../store/contract/store.js";
import { attemptReport } from "./attempt-report.js";
import type { WholeTurn } from "./ports.js";
import { pauseIfItFails } from "./user-code.js";

export interface Conclusion {
  readonly status: TerminalStatus;
  /** What is written before the end. */
  readonly events: readonly NewEvent[];
  /** Encoded. */
  readonly output: string | null;
  readonly error: Failure | null;
}

export function conclude(turn: WholeTurn, conclusion: Conclusion): Promise<void> | void {
  if (!turn.phase.on({ type: "finishing began" })) return;
  if (!turn.writer.unsettled && turn.pendingWrites.starts.length === 0) return writeEnd(turn, conclusion);
  return settleAndConclude(turn, conclusion);
}

async function settleAndConclude(turn: WholeTurn, conclusion: Conclusion): Promise<void> {
  await turn.writer.settleFirst();
  if (!(await givesWay(turn, conclusion))) writeEnd(turn, conclusion);
}

function writeEnd(turn: WholeTurn, conclusion: Conclusion): void {
  const { status, events, output, error } = conclusion;
  const { run, state, pendingWrites } = turn;
  const before = pendingWrites.mail.length;
  const attempt = attemptReport(turn, status === "failed" ? error : null);
  const end = { status, output, error };
  const { next, mail } = finishRun(run, end, state.startedAt ?? turn.takenAt, dismissChildren(run.id, state), attempt);
  for (const message of mail) pendingWrites.mail.push(message);
  turn.onUnended((unwritten) => {
    pendingWrites.putBack({
      ...unwritten,
      events: unwritten.events.slice(0, unwritten.events.length - events.length),
      mail: unwritten.mail.slice(0, before),
    });
    pauseIfItFails(turn, () => readAndConclude(turn, conclusion));
  });
  turn.writer.post(events, next, nothing);
}

/** Messages were acknowledged before the run could end. A signal is recorded, so that a retry finds it. */
async function readAndConclude(turn: WholeTurn, conclusion: Conclusion): Promise<void> {
  await turn.inboxProcessor.lookNow();
  if (turn.over || (await givesWay(turn, conclusion))) return;
  turn.phase.on({ type: "leaving refused" });
  return conclude(turn, conclusion);
}

/**
 * A run that was about to complete obeys a cancel that its log has by now, and so does one that was about to end a pause,
 * unless a step has ended the run: that step cannot be repeated. True: it does not end now.
 */
async function givesWay(turn: WholeTurn, { status, events }: Conclusion): Promise<boolean> {
  const { state, phase } = turn;
  const endsByStep = events.length > 0;
  const isCanceled = state.cancel !== null && status === "completed";
  if (!isCanceled && (state.paused === null || endsByStep)) return false;
  phase.on({ type: "leaving refused" });
  if (endsByStep) await turn.submit(events);
  turn.scheduleIdleCheck();
  return true;
}

const nothing = (): void => {};
