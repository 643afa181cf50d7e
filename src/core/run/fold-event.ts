/** What all folders share: which call of the code an event is about, its answer, and what code that starts over forgets. */
import type { StoredEvent } from "./event.js";
import type { RunState } from "./state.js";
import { scopeSeparator } from "./step-key.js";
import type { EventType } from "./stored-schema.js";

export type EventReducer = (state: RunState, event: StoredEvent) => void;
/** Of all events whose type begins with one of these words. */
export type EventReducers<Kind extends string> = Readonly<
  Record<Extract<EventType, `${Kind}.${string}`>, EventReducer>
>;

export const callKeyOf = (event: StoredEvent): string => event.node ?? "";

export function recordAnswer(state: RunState, event: StoredEvent): void {
  const key = callKeyOf(event);
  state.answeredCalls.push({ key, at: event.at, op: state.ops.get(key) });
  state.wakeVersion += 1;
  state.consecutiveTransientFailures = 0;
}

/** Code that starts over does everything anew: all of it, or one step within its scope. Attempts go on counting. */
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
    // An attempt that was announced and never came has its number all the same.
    const wasAnnounced = op.kind === "step" && op.phase === "awaiting_attempt" && state.paused?.node !== key;
    if (op.kind === "step") state.attemptsBeforeRewind.set(key, wasAnnounced ? op.attempt + 1 : op.attempt);
    state.ops.delete(key);
  }
}
