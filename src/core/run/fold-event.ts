/** Functions that the reducers of all events share. */
import type { StoredEvent } from "./event.js";
import type { RunState } from "./state.js";
import { scopeSeparator } from "./step-key.js";
import type { EventType } from "./stored-schema.js";

export type EventReducer = (state: RunState, event: StoredEvent) => void;
/** The reducers of all events whose type begins with one of these words. */
export type EventReducers<Kind extends string> = Readonly<
  Record<Extract<EventType, `${Kind}.${string}`>, EventReducer>
>;

export const callKeyOf = (event: StoredEvent): string => event.node ?? "";

/** Records that the call has its result, which is a reason to run the code. */
export function recordAnswer(state: RunState, event: StoredEvent): void {
  const key = callKeyOf(event);
  state.answeredCalls.push({ key, at: event.at, op: state.ops.get(key) });
  state.wakeVersion += 1;
  state.consecutiveTransientFailures = 0;
}

/**
 * Forgets the calls of code that starts over: all calls of the handler, or those of one step's body (`scope`). Attempts keep
 * counting from where they were.
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
    // An attempt that was scheduled but never started has used its number.
    const wasAnnounced = op.kind === "step" && op.phase === "awaiting_attempt" && state.paused?.node !== key;
    if (op.kind === "step") state.attemptsBeforeRewind.set(key, wasAnnounced ? op.attempt + 1 : op.attempt);
    state.ops.delete(key);
  }
}
