/** Calls the function of a step: the watchdog, listeners and the search for nested calls know meanwhile whose code runs. */
import { callWithInterceptors, hasCallListeners } from "../../telemetry/call-interception.js";
import { mustBeTracked, noteReturned } from "../replay/nested-calls.js";
import type { ExecutePort, RunPort, WritePort } from "../turn/ports.js";
import type { Attempt, Body } from "./attempt.js";

type BodyTurn = RunPort & WritePort & Pick<ExecutePort, "flowControl">;

/** Calls user code; until it returns, the watchdog knows whose it is. */
export function callInFrame<Result>({ host, runId }: RunPort, key: string, call: () => Result): Result {
  const { watchdog } = host;
  if (watchdog === null) return call();
  watchdog.enter(runId, key);
  try {
    return call();
  } finally {
    watchdog.leave();
  }
}

export function callBody(turn: BodyTurn, attempt: Attempt, body: Body): unknown {
  if (hasCallListeners()) return callWithListeners(turn, attempt, body);
  const { watchdog } = turn.host;
  if (watchdog === null) return enterBody(turn, attempt, body);
  // As `inFrame`, without a function for each step.
  watchdog.enter(turn.runId, attempt.key);
  try {
    return enterBody(turn, attempt, body);
  } finally {
    watchdog.leave();
  }
}

function enterBody({ definition, host, flowControl }: BodyTurn, attempt: Attempt, body: Body): unknown {
  // Bodies of declared steps may wait for something durable; nothing has to be found in them.
  if (definition.declared !== null) return flowControl.callBody(attempt, body);
  const isTracked = host.virtualClock !== null || mustBeTracked(definition, body);
  const value = flowControl.callBody(attempt, body, isTracked);
  if (!isTracked) noteReturned(definition, value);
  return value;
}

function callWithListeners(turn: BodyTurn, attempt: Attempt, body: Body): unknown {
  const call = () => callInFrame(turn, attempt.key, () => enterBody(turn, attempt, body));
  // A listener may call it later, when the run is not ours any more.
  return callWithInterceptors(turn.run, attempt, () => (turn.isOver ? new Promise(() => {}) : call()));
}
