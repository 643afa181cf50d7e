/** How a turn begins: first what came and what became due while no worker had the run, then, if that is news for it, the code. */
import { event } from "../../core/run/event.js";
import { tellOfRun } from "../../telemetry/tell.js";
import { releaseChildren } from "../children/children.js";
import { deathsOf, survives } from "./crash-loop.js";
import type { Opening } from "./host.js";
import { advanceWhenIdle } from "./idle.js";
import type { InboxProcessor } from "./inbox-processor.js";
import type { WholeTurn } from "./ports.js";
import { pauseIfItFails } from "./user-code.js";

type NewTurn = WholeTurn & {
  readonly inboxProcessor: Pick<InboxProcessor, "pump">;
  /** Its start goes along with the next commit. */
  recordsStart: boolean;
};

export function beginTurn(turn: NewTurn, opening: Opening): void {
  const { state, host } = turn;
  tellOfRun(host.log, turn.run, "running", opening.at);
  const deaths = deathsOf(turn, opening);
  if (deaths >= host.maxDeliveries && state.paused === null)
    return pauseIfItFails(turn, () => beginIfItSurvives(turn, opening, deaths));
  if (state.startedAt === null && state.paused !== null)
    return pauseIfItFails(turn, () => beginIfResumed(turn, opening));
  recordBeginning(turn, opening);
  goOn(turn, opening);
}

async function beginIfItSurvives(turn: NewTurn, opening: Opening, deaths: number): Promise<void> {
  if (!(await survives(turn, opening, deaths))) return;
  // Written before anything else: the next owner must know that this much counts already.
  recordBeginning(turn, opening);
  if (await turn.submit([])) goOn(turn, opening);
}

/** It was paused before it began, and now its time has come: unless a message resumes it, it begins when it is resumed. */
async function beginIfResumed(turn: NewTurn, opening: Opening): Promise<void> {
  await turn.inboxProcessor.pump(opening.inbox, opening.at);
  if (turn.over) return;
  if (turn.state.paused !== null) return turn.park();
  recordBeginning(turn, opening);
  advanceWhenIdle(turn);
}

function goOn(turn: NewTurn, opening: Opening): void {
  if (turn.state.seq === 0 && opening.inbox.length === 0) return turn.handler.call();
  pauseIfItFails(turn, () => wake(turn, opening));
}

/** A run that has a past. */
async function wake(turn: NewTurn, { inbox, at }: Opening): Promise<void> {
  await turn.inboxProcessor.pump(inbox, at);
  if (turn.over) return;
  // Its last owner may have died between a child's end and the release of the next.
  releaseChildren(turn);
  advanceWhenIdle(turn);
}

function recordBeginning(turn: NewTurn, opening: Opening): void {
  const { state, pendingWrites, deliveries } = turn;
  if (state.startedAt === null) recordStart(turn, opening.at);
  if (deliveries > 1) pendingWrites.events.push(event("run.recovered", {}, { deliveries }));
}

function recordStart(turn: NewTurn, began: number): void {
  turn.recordsStart = true;
  const { timeoutMs, declared } = turn.definition;
  const steps = declared === null ? {} : { steps: declared.kind, shape: declared.signature };
  if (timeoutMs === null) return void turn.pendingWrites.events.push(event("run.started", {}, { began, ...steps }));
  turn.pendingWrites.open(event("run.started", {}, { began, timeoutMs, ...steps }), { inMs: timeoutMs });
}
