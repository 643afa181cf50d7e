/** Calls the function of a step: the watchdog, listeners and the search for nested calls know meanwhile whose code runs. */
import { callInside, callsAreHeard } from "../../telemetry/around.js";
import { mustBeFollowed, noteReturned } from "../replay/nested-calls.js";
import type { Executing, RunAtHand, RunWriting } from "../turn/ports.js";
import type { Attempt, Body } from "./attempt.js";

type BodyTurn = RunAtHand & RunWriting & Pick<Executing, "flowControl">;

/** Calls user code; until it returns, the watchdog knows whose it is. */
export function inFrame<Result>({ host, runId }: RunAtHand, key: string, call: () => Result): Result {
  const { watch } = host;
  if (watch === null) return call();
  watch.enter(runId, key);
  try {
    return call();
  } finally {
    watch.leave();
  }
}

export function callBody(turn: BodyTurn, execution: Attempt, body: Body): unknown {
  if (callsAreHeard()) return callHeard(turn, execution, body);
  const { watch } = turn.host;
  if (watch === null) return enterBody(turn, execution, body);
  // As `inFrame`, without a function for each step.
  watch.enter(turn.runId, execution.key);
  try {
    return enterBody(turn, execution, body);
  } finally {
    watch.leave();
  }
}

function enterBody({ definition, host, flowControl }: BodyTurn, execution: Attempt, body: Body): unknown {
  // Bodies of declared steps may wait for something durable; nothing has to be found in them.
  if (definition.declared !== null) return flowControl.callBody(execution, body);
  const isFollowed = host.virtualClock !== null || mustBeFollowed(definition, body);
  const value = flowControl.callBody(execution, body, isFollowed);
  if (!isFollowed) noteReturned(definition, value);
  return value;
}

function callHeard(turn: BodyTurn, execution: Attempt, body: Body): unknown {
  const call = () => inFrame(turn, execution.key, () => enterBody(turn, execution, body));
  // A listener may call it later, when the run is not ours any more.
  return callInside(turn.run, execution, () => (turn.over ? new Promise(() => {}) : call()));
}
