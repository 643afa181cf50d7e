/** Calls the function of a step, so that the watchdog, tracing and the nested-call check know which step's code runs. */
import { FencedError } from "../../core/errors/errors.js";
import { callWithInterceptors, hasCallListeners } from "../../telemetry/call-interception.js";
import { mustBeTracked, noteReturned } from "../replay/nested-calls.js";
import type { ExecutePort, RunPort, WritePort } from "../turn/ports.js";
import type { Attempt, Body } from "./attempt.js";

type BodyTurn = RunPort & WritePort & Pick<ExecutePort, "flowControl">;

/**
 * What comes before the code of a step (a hook, a read of the database, the wait for a connection) may take longer than the
 * lease. Another owner may have executed the step since, so the code must not begin any more.
 */
export function assertTurnGoesOn({ isOver, host }: Pick<BodyTurn, "isOver" | "host">): void {
  const { workerId, epoch } = host.committer.fence;
  if (isOver) throw new FencedError(workerId, epoch);
}

/** Calls user code inside a watchdog frame, so that the watchdog can name the run if the call blocks the event loop. */
export function callInFrame<Result>(turn: RunPort & WritePort, key: string, call: () => Result): Result {
  assertTurnGoesOn(turn);
  const { host, runId } = turn;
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
  // This repeats the code of `callInFrame`, because calling that function would allocate a closure for each step.
  watchdog.enter(turn.runId, attempt.key);
  try {
    return enterBody(turn, attempt, body);
  } finally {
    watchdog.leave();
  }
}

function enterBody({ definition, host, flowControl }: BodyTurn, attempt: Attempt, body: Body): unknown {
  // Bodies of declared steps may make durable calls, so their nested calls need not be detected.
  if (definition.declared !== null) return flowControl.callBody(attempt, body);
  const isTracked = host.virtualClock !== null || mustBeTracked(definition, body);
  const value = flowControl.callBody(attempt, body, isTracked);
  if (!isTracked) noteReturned(definition, value);
  return value;
}

function callWithListeners(turn: BodyTurn, attempt: Attempt, body: Body): unknown {
  const call = () => callInFrame(turn, attempt.key, () => enterBody(turn, attempt, body));
  // An interceptor may call the body when this turn is already over. The body must not run then, so its promise stays
  // open.
  return callWithInterceptors(turn.run, attempt, () => (turn.isOver ? new Promise(() => {}) : call()));
}
