/** Settles a call of user code with the result that the log has for it. */

import { decode } from "../../core/encoding/decode.js";
import { reviveFailure, toFailure } from "../../core/encoding/error-record.js";
import { RunCanceledError, RunFailedError } from "../../core/errors/errors.js";
import { dataOf } from "../../core/run/event.js";
import type { Op, Signal } from "../../core/run/state.js";
import type { AnySignal } from "../../define/context.js";
import { resolveMap } from "../children/children.js";
import type { PausePort, RunPort, WritePort } from "../turn/ports.js";
import type { Deferred } from "./result-delivery.js";

type AnsweringTurn = RunPort & WritePort & PausePort;

/** Returns a promise if the call is a map, because the results of its children have to be read from the store. */
export function resolveCall(turn: AnsweringTurn, key: string, call: Deferred): void | Promise<void> {
  const op = turn.state.ops.get(key) as Op;
  if (op.kind === "map") return resolveMap(turn, key, op, call);
  try {
    resolveFromOp(turn.runId, key, op, call);
  } catch (error) {
    // The recorded event cannot be decoded. The run is paused for an operator, so that the worker does not crash.
    const failure = toFailure(error);
    turn.pauseWithError(`The recorded result of "${key}" cannot be read: ${failure.message}`, failure);
  }
}

function resolveFromOp(runId: string, key: string, op: Op, call: Deferred): void {
  switch (op.kind) {
    case "step":
      if (op.phase === "completed") return call.resolve(dataOf(op, "step.completed").output);
      if (op.phase === "skipped") return call.resolve(undefined);
      return call.reject(reviveFailure(dataOf(op, "step.failed").error));
    case "wait":
      return call.resolve(op.phase === "completed" ? op.signals.map(readSignal) : null);
    case "child":
      if (op.phase === "completed") return call.resolve(dataOf(op, "child.completed").output);
      if (op.phase === "canceled") {
        const { reason, code } = dataOf(op, "child.canceled");
        return call.reject(new RunCanceledError(op.runId, reason, code));
      }
      return call.reject(new RunFailedError(op.runId, reviveFailure(dataOf(op, "child.failed").error)));
    case "branch":
      return call.resolve(op.choice);
    case "timer":
      return call.resolve(undefined);
    default:
      throw new RangeError(`Run ${runId}: "${key}" is a ${op.kind}, which has no result.`);
  }
}

function readSignal(signal: Signal): AnySignal {
  const { payload } = (signal.data === null ? {} : decode(signal.data)) as { payload?: unknown };
  return { name: signal.name, payload };
}
