/** Folds the events of timers, signals and waits for signals. */
import { dataOf } from "./event.js";
import { callKeyOf, type EventReducers, recordAnswer } from "./fold-event.js";
import type { RunState, Signal } from "./state.js";
import { scopeSeparator } from "./step-key.js";

export const waitReducers: EventReducers<"timer" | "signal" | "wait"> = {
  "timer.started": (state, event) => {
    const { ms, until } = dataOf(event, "timer.started");
    if (callKeyOf(event).includes(scopeSeparator)) (state.bodyWaits ??= new Set()).add(callKeyOf(event));
    state.ops.set(callKeyOf(event), { kind: "timer", phase: "open", dueAt: until ?? event.at + (ms ?? 0) });
  },
  "timer.fired": (state, event) => {
    const op = state.ops.get(callKeyOf(event));
    if (op?.kind === "timer") op.phase = "fired";
    recordAnswer(state, event);
  },
  "signal.received": (state, event) => {
    const { name, key } = dataOf(event, "signal.received");
    state.pendingSignals.push({ seq: event.seq, name, at: event.at, data: event.data });
    if (key !== undefined) (state.signalKeys ??= new Set()).add(key);
  },
  "wait.started": (state, event) => {
    const { names, mode, timeoutMs } = dataOf(event, "wait.started");
    if (callKeyOf(event).includes(scopeSeparator)) (state.bodyWaits ??= new Set()).add(callKeyOf(event));
    const dueAt = timeoutMs === undefined ? null : event.at + timeoutMs;
    state.ops.set(callKeyOf(event), { kind: "wait", phase: "open", names, mode, dueAt, signals: [] });
  },
  "wait.completed": (state, event) => {
    const consumedSignals = dataOf(event, "wait.completed").signals.map((seq) => consumeSignal(state, seq));
    const op = state.ops.get(callKeyOf(event));
    if (op?.kind !== "wait") return;
    op.phase = "completed";
    op.signals = consumedSignals;
    recordAnswer(state, event);
  },
  "wait.timed_out": (state, event) => {
    const op = state.ops.get(callKeyOf(event));
    if (op?.kind === "wait") op.phase = "timed_out";
    recordAnswer(state, event);
  },
  "wait.withdrawn": (state, event) => {
    const op = state.ops.get(callKeyOf(event));
    if (op?.kind === "timer" && op.phase === "open") op.phase = "withdrawn";
    if (op?.kind !== "wait") return;
    // The signals of a withdrawn wait were not delivered to the workflow's code, so they are pending again.
    if (op.phase === "completed") state.pendingSignals.push(...op.signals);
    state.pendingSignals.sort((a, b) => a.seq - b.seq);
    op.phase = "withdrawn";
  },
};

/** Removes the signal from the pending signals and returns it. */
export function consumeSignal(state: RunState, seq: number): Signal {
  const index = state.pendingSignals.findIndex((signal) => signal.seq === seq);
  const [signal] = index < 0 ? [] : state.pendingSignals.splice(index, 1);
  if (signal === undefined) throw new RangeError(`The log consumes signal ${seq}, which it never received.`);
  return signal;
}
