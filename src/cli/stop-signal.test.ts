import { EventEmitter } from "node:events";
import { expect, test } from "vitest";
import { waitForStopSignal } from "./stop-signal.js";

function waitWithFakeProcess() {
  const process = new EventEmitter();
  const state = { now: 1_000, exits: 0 };
  const stopped = waitForStopSignal({ process, now: () => state.now, exitNow: () => (state.exits += 1) });
  const send = (signal: NodeJS.Signals, at: number) => {
    state.now = at;
    process.emit(signal, signal);
  };
  return { state, stopped, send };
}

test("the first signal is the one that is returned", async () => {
  const { stopped, send, state } = waitWithFakeProcess();
  send("SIGTERM", 1_000);
  send("SIGINT", 1_001);
  expect(await stopped).toBe("SIGTERM");
  expect(state.exits).toBe(0);
});

test("signals within 300 ms count as one; a later one exits at once", () => {
  const { send, state } = waitWithFakeProcess();
  for (const at of [1_000, 1_000, 1_299]) send("SIGTERM", at);
  expect(state.exits).toBe(0);
  send("SIGTERM", 1_300);
  expect(state.exits).toBe(1);
});
