/** What follows when events of a run have become durable, and its state knows them. */
import type { NewEvent } from "../../core/run/event.js";
import { scopeMark } from "../../core/run/step-key.js";
import { releaseChildren } from "../children/children.js";
import type { TurnAtHost } from "./host.js";
import type { InboxProcessor } from "./inbox-processor.js";
import type { WholeTurn } from "./ports.js";

type WrittenTurn = WholeTurn & TurnAtHost & { readonly inboxProcessor: Pick<InboxProcessor, "pump"> };

export function afterWrite(turn: WrittenTurn, events: readonly NewEvent[], at: number): void {
  const { host, phase, state } = turn;
  turn.results.deliver();
  let listens = false;
  for (const { type, node } of events) {
    if (host.stepEnded !== null && (type === "step.completed" || type === "step.skipped")) {
      if (!(node as string).includes(scopeMark)) host.stepEnded(turn);
    }
    if (type === "map.settled" || type === "map.spawned") releaseChildren(turn);
    // The code has had its answer already, so it begins again.
    else if ((type === "run.resumed" || type === "node.reopened") && phase.hasCalledCode) phase.startOver = true;
    else if (type === "wait.started" || type === "wait.withdrawn" || type === "run.paused") listens = true;
  }
  if (listens && state.signals.length > 0) void turn.inboxProcessor.pump([], at);
  if (turn.halted) turn.halt();
  else if (!turn.pendingWrites.empty) turn.scheduleIdleCheck();
}
