/** Starts that wait for the end of the run that has their key: they are recorded in its log, and begin with its last commit. */
import { cancelRun } from "./decide-operator.js";
import type { Decision } from "./decision.js";
import { newEvent } from "./event.js";
import { encodeMessage, type Message } from "./message.js";
import type { RunState } from "./state.js";
import type { Command } from "./stored-schema.js";
import { emptyList } from "./transition.js";

export function queueStart(decision: Decision, { run, cancel }: Extract<Command, { type: "queueStart" }>): void {
  const isQueued = decision.state.queuedStarts?.includes(run) === true;
  if (!isQueued) decision.events.push(newEvent("run.start_queued", {}, { run }));
  if (cancel === true) cancelRun(decision, { reason: `Run ${run} was started in its place` });
}

/** The messages that let the queued runs begin. They are part of the commit that ends the run. */
export const startQueuedRuns = ({ queuedStarts }: Pick<RunState, "queuedStarts">): readonly Message[] =>
  queuedStarts === null ? emptyList : queuedStarts.map((run) => encodeMessage(run, { type: "start" }));
