/** What a turn does after events of its run have been committed and folded into the state. */
import type { NewEvent } from "../../core/run/event.js";
import { scopeSeparator } from "../../core/run/step-key.js";
import { releaseChildren } from "../children/children.js";
import type { InboxProcessor } from "./inbox-processor.js";
import type { WholeTurn } from "./ports.js";
import type { HostedTurn } from "./turn-host.js";

type WrittenTurn = WholeTurn & HostedTurn & { readonly inboxProcessor: Pick<InboxProcessor, "process"> };

export function afterWrite(turn: WrittenTurn, events: readonly NewEvent[], at: number): void {
  const { host, phase, state } = turn;
  turn.results.deliver();
  let mayMatchSignal = false;
  for (const { type, node } of events) {
    if (host.onStepEnded !== null && (type === "step.completed" || type === "step.skipped")) {
      if (!(node as string).includes(scopeSeparator)) host.onStepEnded(turn);
    }
    if (type === "map.settled" || type === "map.spawned") releaseChildren(turn);
    // The code may already have acted on a result that this command makes obsolete, so the code is called again.
    else if ((type === "run.resumed" || type === "node.reopened") && phase.hasCalledCode) phase.mustRestartCode = true;
    else if (type === "wait.started" || type === "wait.withdrawn" || type === "run.paused") mayMatchSignal = true;
  }
  if (mayMatchSignal && state.pendingSignals.length > 0) void turn.inboxProcessor.process([], at);
  if (turn.isDraining) turn.drain();
  else if (!turn.pendingWrites.isEmpty) turn.scheduleIdleCheck();
}
