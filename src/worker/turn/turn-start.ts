/** The start of a turn: messages and due times are processed first, then the code is called if there is work for it. */
import { cancelData, expiredCode, expiredReason } from "../../core/run/cancel-reason.js";
import { newEvent } from "../../core/run/event.js";
import { isRefusal } from "../../core/run/full-limit.js";
import { decodeMessage } from "../../core/run/message.js";
import type { Command } from "../../core/run/stored-schema.js";
import { publishStatus } from "../../telemetry/publish.js";
import { releaseChildren } from "../children/children.js";
import { countWorkerDeaths, passesCrashLoopCheck } from "./crash-loop.js";
import { advanceWhenIdle } from "./idle.js";
import type { InboxProcessor } from "./inbox-processor.js";
import type { WholeTurn } from "./ports.js";
import type { TurnSnapshot } from "./turn-host.js";
import { pauseRunOnError } from "./user-code.js";

type NewTurn = WholeTurn & {
  readonly inboxProcessor: Pick<InboxProcessor, "process" | "holdWhile">;
  /** Whether the `run.started` event is among the pending writes. */
  willRecordStart: boolean;
};

type Overdue = Extract<Command, { type: "startOverdue" }>;

export function startTurn(turn: NewTurn, snapshot: TurnSnapshot): void {
  const { state, host } = turn;
  publishStatus(host.log, turn.run, "running", snapshot.claimedAt);
  const deaths = countWorkerDeaths(turn, snapshot);
  if (deaths >= host.maxDeliveries && state.paused === null)
    return pauseRunOnError(turn, () => startUnlessCrashLooping(turn, snapshot, deaths));
  if (state.startedAt === null && state.paused !== null)
    return pauseRunOnError(turn, () => startIfResumed(turn, snapshot));
  const overdue = state.startedAt === null && deaths === 0 ? findOverdue(snapshot) : null;
  if (overdue !== null) return pauseRunOnError(turn, () => cancelOverdue(turn, snapshot, overdue));
  if (state.startedAt === null && hasNoPlace(snapshot)) return pauseRunOnError(turn, () => resumeRun(turn, snapshot));
  recordTurnStart(turn, snapshot);
  continueRun(turn, snapshot);
}

async function startUnlessCrashLooping(turn: NewTurn, snapshot: TurnSnapshot, deaths: number): Promise<void> {
  // A message that arrives meanwhile must wait: it would lead to a call of the code.
  const passes = await turn.inboxProcessor.holdWhile(async () => {
    if (!(await passesCrashLoopCheck(turn, snapshot, deaths))) return false;
    // The start of the turn is committed first, so that the next owner counts only worker deaths after this point.
    recordTurnStart(turn, snapshot);
    return turn.submit([]);
  });
  if (passes) continueRun(turn, snapshot);
}

/**
 * Starts a run that was paused before it started and is now due. If no message in its inbox resumes it, it is parked
 * again.
 */
async function startIfResumed(turn: NewTurn, snapshot: TurnSnapshot): Promise<void> {
  await turn.inboxProcessor.process(snapshot.inbox, snapshot.claimedAt);
  if (turn.isOver) return;
  if (turn.state.paused !== null) return turn.park();
  recordTurnStart(turn, snapshot);
  advanceWhenIdle(turn);
}

/**
 * The message that the start deadline of the run has passed. It was sent while no worker owned the run, so no code of the run
 * was executed before it.
 */
function findOverdue({ inbox, deliveries }: TurnSnapshot): Overdue | null {
  if (deliveries > 1) return null;
  const row = inbox.find(({ kind }) => kind === "startOverdue");
  const command = row === undefined ? null : decodeMessage(row);
  return command?.type === "startOverdue" ? command : null;
}

/**
 * Whether a limit was full for this run. The messages say so, and end the run: its start is not recorded. A run that was
 * canceled for another one before it began is such a run, too.
 */
function hasNoPlace({ inbox, deliveries }: TurnSnapshot): boolean {
  return inbox.some((row) => {
    const command = row.kind === "limitFull" ? decodeMessage(row) : null;
    return command?.type === "limitFull" && (isRefusal(command) || deliveries === 1);
  });
}

/** Cancels the run before any of its code is executed. Its other messages are recorded, and their senders hear of the end. */
async function cancelOverdue(turn: NewTurn, snapshot: TurnSnapshot, { startBy }: Overdue): Promise<void> {
  await turn.inboxProcessor.process(snapshot.inbox, snapshot.claimedAt);
  if (turn.isOver) return;
  const data = cancelData(expiredReason(startBy), expiredCode);
  if (turn.state.cancelRequest === null && !(await turn.submit([newEvent("run.cancel_requested", {}, data)]))) return;
  advanceWhenIdle(turn);
}

function continueRun(turn: NewTurn, snapshot: TurnSnapshot): void {
  if (turn.state.seq === 0 && snapshot.inbox.length === 0) return turn.handler.call();
  pauseRunOnError(turn, () => resumeRun(turn, snapshot));
}

/** Continues a run that has a log or messages. */
async function resumeRun(turn: NewTurn, { inbox, claimedAt }: TurnSnapshot): Promise<void> {
  await turn.inboxProcessor.process(inbox, claimedAt);
  if (turn.isOver) return;
  // The last owner may have died after a child had ended and before it released the next child of the map.
  releaseChildren(turn);
  advanceWhenIdle(turn);
}

function recordTurnStart(turn: NewTurn, snapshot: TurnSnapshot): void {
  const { state, pendingWrites, deliveries } = turn;
  if (state.startedAt === null) recordRunStart(turn, snapshot.claimedAt);
  if (deliveries > 1) pendingWrites.events.push(newEvent("run.recovered", {}, { deliveries }));
}

function recordRunStart(turn: NewTurn, startedAt: number): void {
  turn.willRecordStart = true;
  const { timeoutMs, declared } = turn.definition;
  const steps = declared === null ? {} : { steps: declared.kind, shape: declared.signature };
  if (timeoutMs === null)
    return void turn.pendingWrites.events.push(newEvent("run.started", {}, { startedAt, ...steps }));
  turn.pendingWrites.addWaitEvent(newEvent("run.started", {}, { startedAt, timeoutMs, ...steps }), { inMs: timeoutMs });
}
