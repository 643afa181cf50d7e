import { expect, test } from "vitest";
import type { Timer } from "../../runtime/runtime.js";
import { systemRuntime } from "../../runtime/system.js";
import type { Store } from "../../store/contract/store.js";
import type { Session } from "../session/session.js";
import { Claimer } from "./claimer.js";

test("a claim that fails after the worker was stopped leaves no timer", async () => {
  const timers = new Set<Timer>();
  let failClaim = (_error: Error) => {};
  const claiming = new Promise<never>((_resolve, reject) => {
    failClaim = reject;
  });
  const session = { committer: { fence: {} }, isDead: false } as Session;
  const claimer = new Claimer({
    ...{ workerName: "worker", concurrency: 10, pollMs: 1_000, lateClaimMs: 3_000, activeCount: () => 0 },
    runtime: {
      ...systemRuntime,
      setTimeout: () => {
        const timer: Timer = { unref: () => timer };
        timers.add(timer);
        return timer;
      },
      clearTimeout: (timer) => void (timer && timers.delete(timer)),
    },
    store: { hasCrossProcessHints: true } as Store,
    log: { warn: () => {} } as never,
    session: () => session,
    claims: { claim: () => claiming } as never,
    onLost: () => {},
  });
  claimer.start();
  expect(timers.size).toBe(1);
  const stopped = claimer.stop();
  failClaim(new Error("The connection was lost."));
  await stopped;
  expect(timers.size).toBe(0);
});
