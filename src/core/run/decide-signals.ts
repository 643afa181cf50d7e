/**
 * Decides about signals. A signal completes the oldest open wait for its name, or else resumes a run whose pause waits for
 * it, or else stays pending.
 */
import type { Decision, OpenWait } from "./decision.js";
import { newEvent } from "./event.js";
import type { Signal, WaitOp } from "./state.js";
import type { Command } from "./stored-schema.js";

export function receiveSignal(decision: Decision, { name, payload, key }: Extract<Command, { type: "signal" }>): void {
  if (key !== null) {
    if (decision.state.signalKeys?.has(key) || decision.receivedSignalKeys.has(key)) return;
    decision.receivedSignalKeys.add(key);
  }
  const seq = decision.nextSeq + decision.events.length;
  const receivedEvent = newEvent("signal.received", {}, key === null ? { name } : { name, key }, { payload });
  decision.events.push(receivedEvent);
  decision.pendingSignals.push({ seq, name, at: 0, data: receivedEvent.data });
  matchWaits(decision);
  resumeIfSignalled(decision);
}

/** Resumes a run whose pause waits for a pending signal. The signal is consumed, so the next pause needs another signal. */
export function resumeIfSignalled(decision: Decision): void {
  const name = decision.paused?.resumeOn ?? null;
  const signal = name === null ? undefined : decision.pendingSignals.find((candidate) => candidate.name === name);
  if (signal === undefined) return;
  decision.pendingSignals.splice(decision.pendingSignals.indexOf(signal), 1);
  decision.paused = null;
  decision.events.push(newEvent("run.resumed", {}, { by: "signal", signal: signal.seq }));
}

/** Completes open waits with pending signals, the oldest wait and the oldest signal first. */
export function matchWaits(decision: Decision): void {
  for (let index = 0; index < decision.openWaits.length && decision.pendingSignals.length > 0; ) {
    const wait = decision.openWaits[index] as OpenWait;
    const signals = signalsFor(decision, wait.op);
    if (signals === null) {
      index += 1;
      continue;
    }
    decision.openWaits.splice(index, 1);
    for (const signal of signals) decision.pendingSignals.splice(decision.pendingSignals.indexOf(signal), 1);
    decision.events.push(
      newEvent("wait.completed", { node: wait.key }, { signals: signals.map((signal) => signal.seq) }),
    );
  }
}

/** The pending signals that complete the wait; null when the signals that the wait needs have not all arrived. */
function signalsFor(decision: Decision, { names, mode }: WaitOp): Signal[] | null {
  if (mode === "any") {
    const signal = decision.pendingSignals.find((candidate) => names.includes(candidate.name));
    return signal === undefined ? null : [signal];
  }
  const chosenSignals: Signal[] = [];
  for (const name of names) {
    const signal = decision.pendingSignals.find(
      (candidate) => candidate.name === name && !chosenSignals.includes(candidate),
    );
    if (signal === undefined) return null;
    chosenSignals.push(signal);
  }
  return chosenSignals;
}
