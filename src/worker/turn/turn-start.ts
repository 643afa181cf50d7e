/** How a turn begins: first what came and what became due while no worker had the run, then, if that is news for it, the code. */
import { newEvent } from "../../core/run/event.js";
import { publishStatus } from "../../telemetry/publish.js";
import { releaseChildren } from "../children/children.js";
import { countWorkerDeaths, passesCrashLoopCheck } from "./crash-loop.js";
import { advanceWhenIdle } from "./idle.js";
import type { InboxProcessor } from "./inbox-processor.js";
import type { WholeTurn } from "./ports.js";
import type { TurnSnapshot } from "./turn-host.js";
import { pauseRunOnError } from "./user-code.js";

type NewTurn = WholeTurn & {
  readonly inboxProcessor: Pick<InboxProcessor, "process">;
  /** Its start goes along with the next commit. */
  willRecordStart: boolean;
};

export function startTurn(turn: NewTurn, snapshot: TurnSnapshot): void {
  const { state, host } = turn;
  publishStatus(host.log, turn.run, "running", snapshot.claimedAt);
  const deaths = countWorkerDeaths(turn, snapshot);
  if (deaths >= host.maxDeliveries && state.paused === null)
    return pauseRunOnError(turn, () => startUnlessCrashLooping(turn, snapshot, deaths));
  if (state.startedAt === null && state.paused !== null)
    return pauseRunOnError(turn, () => startIfResumed(turn, snapshot));
  recordTurnStart(turn, snapshot);
  continueRun(turn, snapshot);
}

async function startUnlessCrashLooping(turn: NewTurn, snapshot: TurnSnapshot, deaths: number): Promise<void> {
  if (!(await passesCrashLoopCheck(turn, snapshot, deaths))) return;
  // Written before anything else: the next owner must know that this much counts already.
  recordTurnStart(turn, snapshot);
  if (await turn.submit([])) continueRun(turn, snapshot);
}

/** It was paused before it began, and now its time has come: unless a message resumes it, it begins when it is resumed. */
async function startIfResumed(turn: NewTurn, snapshot: TurnSnapshot): Promise<void> {
  await turn.inboxProcessor.process(snapshot.inbox, snapshot.claimedAt);
  if (turn.isOver) return;
  if (turn.state.paused !== null) return turn.park();
  recordTurnStart(turn, snapshot);
  advanceWhenIdle(turn);
}

function continueRun(turn: NewTurn, snapshot: TurnSnapshot): void {
  if (turn.state.seq === 0 && snapshot.inbox.length === 0) return turn.handler.call();
  pauseRunOnError(turn, () => resumeRun(turn, snapshot));
}

/** A run that has a past. */
async function resumeRun(turn: NewTurn, { inbox, claimedAt }: TurnSnapshot): Promise<void> {
  await turn.inboxProcessor.process(inbox, claimedAt);
  if (turn.isOver) return;
  // Its last owner may have died between a child's end and the release of the next.
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
