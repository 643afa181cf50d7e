import { describe, expect, test } from "vitest";
import { StoreError } from "../../core/errors/errors.js";
import { systemRuntime } from "../../runtime/system.js";
import type { Message } from "../../store/contract/store.js";
import { LateParks } from "./late-parks.js";

function createLateParks() {
  const callbacks: (() => void)[] = [];
  const sent: string[] = [];
  const state = { inFlight: new Set<string>(), failures: 0 };
  const lateParks = new LateParks({
    runtime: {
      ...systemRuntime,
      setTimeout: (callback, ms) => {
        if (ms === 3_000) callbacks.push(callback);
        return ms === 3_000
          ? ({ unref: () => null as never, ref: () => null as never } as never)
          : systemRuntime.setTimeout(callback, ms);
      },
      clearTimeout: () => {},
    },
    store: {
      send: async (messages: readonly Message[]) => {
        if (state.failures > 0) {
          state.failures -= 1;
          throw new StoreError("the connection is gone", { transient: true, unreachable: true });
        }
        sent.push(...messages.map(({ to, kind }) => `${kind} ${to}`));
        return { undeliverable: [] };
      },
    },
    log: { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} },
    committer: { isInFlight: (runId) => state.inFlight.has(runId) },
    lateCallMs: 3_000,
  });
  /** The time has passed after which the server executes nothing more. */
  const elapse = () => {
    for (const callback of callbacks.splice(0)) callback();
  };
  return { lateParks, sent, state, elapse };
}

describe("late parks", () => {
  test("a run whose park may have been executed late is woken once that is over", async () => {
    const { lateParks, sent, elapse } = createLateParks();
    lateParks.note("a");
    expect(sent).toEqual([]);
    elapse();
    await expect.poll(() => sent).toEqual(["start a"]);
  });

  test("a run with a commit on its way is woken after it", async () => {
    const { lateParks, sent, state, elapse } = createLateParks();
    lateParks.note("a");
    state.inFlight.add("a");
    elapse();
    expect(sent).toEqual([]);
    state.inFlight.clear();
    elapse();
    await expect.poll(() => sent).toEqual(["start a"]);
  });

  test("a message that does not reach the store is sent again", async () => {
    const { lateParks, sent, state } = createLateParks();
    state.failures = 2;
    await lateParks.wake("a");
    expect(sent).toEqual(["start a"]);
  });

  test("the end of the worker does not leave a run without its message", async () => {
    const { lateParks, sent } = createLateParks();
    lateParks.note("a");
    lateParks.close();
    lateParks.note("b");
    await expect.poll(() => sent).toEqual(["start a", "start b"]);
  });
});
