import { expect, test } from "vitest";
import type { Runtime } from "../../runtime/runtime.js";
import { ReplayGate } from "./replay-gate.js";

test("a gate that is closed sets no timer and starts no call, although the code goes on", () => {
  const timers = new Set<object>();
  const runtime = {
    setTimeout: () => {
      const timer = {};
      timers.add(timer);
      return timer;
    },
    clearTimeout: (timer: object | null) => void timers.delete(timer ?? {}),
  } as unknown as Runtime;
  const state = { seq: 0, ops: new Map(), acceptedNames: new Set() };
  const host = { runtime, state, replayGraceMs: 1_000 };
  const gate = new ReplayGate(host as never, ["recorded"]);
  const started: string[] = [];
  gate.startWhenLive("new", false, () => started.push("new"));
  expect([gate.hasGatedCalls, timers.size]).toEqual([true, 1]);
  gate.close();
  gate.startWhenLive("newer", false, () => started.push("newer"));
  gate.markReached("recorded");
  expect([started, gate.hasGatedCalls, timers.size]).toEqual([[], false, 0]);
});
