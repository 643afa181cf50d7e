/** What timers, signals and waits for signals do to the state of their run. */
import { dataOf } from "./event.js";
import { answer, type Folders, keyOf } from "./fold-event.js";
import type { RunState, Signal } from "./state.js";
import { scopeMark } from "./step-key.js";

export const waitFolders: Folders<"timer" | "signal" | "wait"> = {
  "timer.started": (state, event) => {
    const { ms, until } = dataOf(event, "timer.started");
    if (keyOf(event).includes(scopeMark)) (state.resting ??= new Set()).add(keyOf(event));
    state.ops.set(keyOf(event), { kind: "timer", phase: "open", dueAt: until ?? event.at + (ms ?? 0) });
  },
  "timer.fired": (state, event) => {
    const op = state.ops.get(keyOf(event));
    if (op?.kind === "timer") op.phase = "fired";
    answer(state, event);
  },
  "signal.received": (state, event) => {
    const { name, key } = dataOf(event, "signal.received");
    state.signals.push({ seq: event.seq, name, at: event.at, data: event.data });
    if (key !== undefined) (state.signalKeys ??= new Set()).add(key);
  },
  "wait.started": (state, event) => {
    const { names, mode, timeoutMs } = dataOf(event, "wait.started");
    if (keyOf(event).includes(scopeMark)) (state.resting ??= new Set()).add(keyOf(event));
    const dueAt = timeoutMs === undefined ? null : event.at + timeoutMs;
    state.ops.set(keyOf(event), { kind: "wait", phase: "open", names, mode, dueAt, signals: [] });
  },
  "wait.completed": (state, event) => {
    const consumed = dataOf(event, "wait.completed").signals.map((seq) => takeSignal(state, seq));
    const op = state.ops.get(keyOf(event));
    if (op?.kind !== "wait") return;
    op.phase = "completed";
    op.signals = consumed;
    answer(state, event);
  },
  "wait.timed_out": (state, event) => {
    const op = state.ops.get(keyOf(event));
    if (op?.kind === "wait") op.phase = "timed out";
    answer(state, event);
  },
  "wait.withdrawn": (state, event) => {
    const op = state.ops.get(keyOf(event));
    if (op?.kind === "timer" && op.phase === "open") op.phase = "withdrawn";
    if (op?.kind !== "wait") return;
    // It lost before the code had seen its signals: they are for the next wait.
    if (op.phase === "completed") state.signals.push(...op.signals);
    state.signals.sort((a, b) => a.seq - b.seq);
    op.phase = "withdrawn";
  },
};

export function takeSignal(state: RunState, seq: number): Signal {
  const index = state.signals.findIndex((signal) => signal.seq === seq);
  const [signal] = index < 0 ? [] : state.signals.splice(index, 1);
  if (signal === undefined) throw new RangeError(`The log consumes signal ${seq}, which it never received.`);
  return signal;
}
