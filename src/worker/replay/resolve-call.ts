/** What a call of user code gets, from what the log says about it. */
import { decode } from "../../core/encoding/decode.js";
import { reviveFailure } from "../../core/encoding/error-record.js";
import { RunCanceledError, RunFailedError } from "../../core/errors/errors.js";
import { dataOf } from "../../core/run/event.js";
import type { Op, Signal } from "../../core/run/state.js";
import type { AnySignal } from "../../define/context.js";
import type { Deferred } from "./result-delivery.js";

export function settleCall(runId: string, key: string, op: Op, call: Deferred): void {
  switch (op.kind) {
    case "step":
      if (op.phase === "completed") return call.resolve(dataOf(op, "step.completed").output);
      if (op.phase === "skipped") return call.resolve(undefined);
      return call.reject(reviveFailure(dataOf(op, "step.failed").error));
    case "wait":
      return call.resolve(op.phase === "completed" ? op.signals.map(readSignal) : null);
    case "child":
      if (op.phase === "completed") return call.resolve(dataOf(op, "child.completed").output);
      if (op.phase === "canceled")
        return call.reject(new RunCanceledError(op.runId, dataOf(op, "child.canceled").reason));
      return call.reject(new RunFailedError(op.runId, reviveFailure(dataOf(op, "child.failed").error)));
    case "branch":
      return call.resolve(op.choice);
    case "timer":
      return call.resolve(undefined);
    default:
      throw new RangeError(`Run ${runId}: "${key}" is a ${op.kind}, which has no answer.`);
  }
}

function readSignal(signal: Signal): AnySignal {
  const { payload } = (signal.data === null ? {} : decode(signal.data)) as { payload?: unknown };
  return { name: signal.name, payload };
}
