/** What all folders share: which call of the code an event is about, its answer, and what code that starts over forgets. */
import type { StoredEvent } from "./event.js";
import type { RunState } from "./state.js";
import { scopeMark } from "./step-key.js";
import type { EventType } from "./stored-schema.js";

export type Folder = (state: RunState, event: StoredEvent) => void;
/** Of all events whose type begins with one of these words. */
export type Folders<Kind extends string> = Readonly<Record<Extract<EventType, `${Kind}.${string}`>, Folder>>;

export const keyOf = (event: StoredEvent): string => event.node ?? "";

export function answer(state: RunState, event: StoredEvent): void {
  const key = keyOf(event);
  state.answered.push({ key, at: event.at, op: state.ops.get(key) });
  state.news += 1;
  state.postponed = 0;
}

/** Code that starts over does everything anew: all of it, or one step within its scope. Attempts go on counting. */
export function forget(state: RunState, scope?: string): void {
  state.rewound ??= new Map();
  if (scope === undefined) {
    state.generation += 1;
    state.answered.length = 0;
  } else {
    state.stepGenerations ??= new Map();
    const step = scope.slice(0, -scopeMark.length);
    state.stepGenerations.set(step, (state.stepGenerations.get(step) ?? 0) + 1);
  }
  for (const key of state.resumedBy?.keys() ?? [])
    if (scope === undefined || key.startsWith(scope)) state.resumedBy?.delete(key);
  for (const [key, op] of state.ops) {
    if (scope !== undefined && !key.startsWith(scope)) continue;
    // An attempt that was announced and never came has its number all the same.
    const announced = op.kind === "step" && op.phase === "again" && state.paused?.node !== key;
    if (op.kind === "step") state.rewound.set(key, announced ? op.attempt + 1 : op.attempt);
    state.ops.delete(key);
  }
}
