/** What a run is told when a limit was full for it, and what it makes of that. */
import type { Failure } from "../encoding/error-record.js";
import type { FullLaneVerdict } from "../limits/full-lane.js";
import { laneOf } from "../limits/lane.js";
import { skippedCode, supersededCode } from "./cancel-reason.js";
import { cancelRun } from "./decide-operator.js";
import type { Decision } from "./decision.js";
import { newEvent } from "./event.js";
import { encodeMessage, type Message } from "./message.js";
import type { Command } from "./stored-schema.js";

export type LimitFull = Extract<Command, { type: "limitFull" }>;

export function limitFullMessage({ runId, lane, effect, by }: FullLaneVerdict): Message {
  const { limit, key } = laneOf(lane);
  return encodeMessage(runId, { type: "limitFull", limit, key, effect, ...(by === undefined ? {} : { by }) });
}

/** A run that waits for a slot that can only become free when the run has ended; the chain says why. */
export function limitCycleMessage({ runId, lane, chain }: LimitRefusal): Message {
  return encodeMessage(runId, { type: "limitFull", ...laneOf(lane), effect: "cycle", chain });
}

export interface LimitRefusal {
  readonly runId: string;
  /** The lane that the run waits for. */
  readonly lane: string;
  /** Which run waits for which, for people. */
  readonly chain: readonly string[];
}

/** The code of a run that fails because its limit can never have a slot for it. */
export const limitCycleCode = "LIMIT_CYCLE";
/** The code of a run that fails because a limit with `onFull: "fail"` was full. */
export const limitFullCode = "LIMIT_FULL";

/** A run that was refused has not begun: its code is not executed, whatever else is in its inbox. */
export const isRefusal = ({ effect }: LimitFull): boolean => effect !== "supersede";

export function applyLimitFull(decision: Decision, command: LimitFull): void {
  const { limit, key, effect, by } = command;
  const ofKey = key === "" ? "" : ` for the key "${key}"`;
  const wasFull = `The limit "${limit}" was full${ofKey}`;
  if (effect === "supersede")
    return cancelRun(decision, { reason: `${wasFull}, and run ${by ?? "another"} takes its place` }, supersededCode);
  if (effect === "skip") return cancelRun(decision, { reason: wasFull }, skippedCode);
  if (decision.isCancelRequested) return;
  decision.isEnded = true;
  const error = effect === "cycle" ? cycleFailure(command) : fullFailure(command, wasFull);
  decision.events.push(newEvent("run.failed", {}, { error }));
}

const fullFailure = ({ limit, key }: LimitFull, wasFull: string): Failure => ({
  name: "LimitFullError",
  code: limitFullCode,
  message: `${wasFull}, so the run was not begun.`,
  data: { limit, key },
});

const cycleFailure = ({ limit, key, chain = [] }: LimitFull): Failure => ({
  name: "LimitCycleError",
  code: limitCycleCode,
  message: `Runs wait for each other: ${chain.join("; ")}. Give the child another key, let it have no limit with while: "open", or do not wait for it.`,
  data: { limit, key, chain },
});
