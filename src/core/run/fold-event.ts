/** Functions that the reducers of all events share. */
import type { StoredEvent } from "./event.js";
import type { RunState } from "./state.js";
import { scopeSeparator } from "./step-key.js";
import type { EventType } from "./stored-schema.js";

export type EventReducer = (state: RunState, event: StoredEvent) => void;
/** One reducer for each event type whose first part (before the dot) is `Kind`. */
export type EventReducers<Kind extends string> = Readonly<
  Record<Extract<EventType, `${Kind}.${string}`>, EventReducer>
>;

export const callKeyOf = (event: StoredEvent): string => event.node ?? "";

/** Records that the log has a result for the call, which is a reason for a worker to call the workflow's code. */
export function recordAnswer(state: RunState, event: StoredEvent): void {
  const key = callKeyOf(event);
  state.answeredCalls.push({ key, at: event.at, op: state.ops.get(key) });
  state.wakeVersion += 1;
  state.consecutiveTransientFailures = 0;
}

/**
 * Forgets the calls of code that starts over: all calls of the run, or only the calls of one step's body if `scope` is
 * given. The numbers of attempts continue after the last attempt before the new start.
 */
export function forgetCalls(state: RunState, scope?: string): void {
  state.attemptsBeforeRewind ??= new Map();
  if (scope === undefined) {
    state.generation += 1;
    state.answeredCalls.length = 0;
  } else {
    state.stepGenerations ??= new Map();
    const step = scope.slice(0, -scopeSeparator.length);
    state.stepGenerations.set(step, (state.stepGenerations.get(step) ?? 0) + 1);
  }
  for (const key of state.resumeSignals?.keys() ?? [])
    if (scope === undefined || key.startsWith(scope)) state.resumeSignals?.delete(key);
  for (const [key, op] of state.ops) {
    if (scope !== undefined && !key.startsWith(scope)) continue;
    // An attempt that was announced but never started has used its number, so the next attempt gets a higher number.
    const wasAnnounced = op.kind === "step" && op.phase === "awaiting_attempt" && state.paused?.node !== key;
    if (op.kind === "step") state.attemptsBeforeRewind.set(key, wasAnnounced ? op.attempt + 1 : op.attempt);
    state.ops.delete(key);
  }
}
