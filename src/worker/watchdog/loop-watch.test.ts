/** How the watchdog treats a blocked event loop, here without a thread and with a simulated loop. */
import { expect, test } from "vitest";
import { decode } from "../../core/encoding/decode.js";
import type { Message } from "../../store/contract/store.js";
import { Frames } from "./frames.js";
import { LoopWatch } from "./loop-watch.js";

const leaseMs = 3_000;
const everyMs = 100;
const fence = { workerId: "w", epoch: 7 };

function createLoopWatch(owned: readonly string[] = ["a", "b"]) {
  const frames = new Frames();
  const calls: string[] = [];
  const sent: Message[] = [];
  const printed: string[] = [];
  let unreachable = false;
  const loop = new LoopWatch({
    frames,
    openStore: async () => {
      if (unreachable) throw new Error("away");
      calls.push("open");
      return {
        ownedTasks: async () => owned.map((runId) => ({ runId }) as never),
        send: async (messages) => {
          sent.push(...messages);
          calls.push("send");
          return { undeliverable: [] };
        },
        deregisterWorker: async (who) => void calls.push(`deregister ${who.workerId}/${who.epoch}`),
        close: async () => void calls.push("close"),
      };
    },
    print: (text) => void printed.push(text),
  });
  const watch = (index = 0) => loop.watch({ index, name: `worker ${index}`, fence, leaseMs, renewedAt: 0 });
  watch();
  /** Calls `check` as often as the thread would between these times. */
  const checkUntil = async (from: number, to: number, isLoopRunning = false) => {
    for (let now = from + everyMs; now <= to; now += everyMs) {
      if (isLoopRunning) frames.heartbeat();
      await loop.check(now);
    }
  };
  const sentMessages = () => sent.map(({ to, kind, data }) => ({ to, kind, ...(decode(data) as object) }));
  const setUnreachable = (isUnreachable: boolean) => {
    unreachable = isUnreachable;
  };
  return {
    frames,
    loop,
    calls,
    printed,
    sentMessages,
    checkUntil,
    watch,
    setUnreachable,
  };
}

const blockedMessage = { kind: "blocked", worker: "worker 0", session: "w/7" };

test("a running loop is not reported, however long ago its lease was renewed", async () => {
  const { calls, checkUntil } = createLoopWatch();
  await checkUntil(0, 60_000, true);
  expect(calls).toEqual([]);
});

test("shortly before the lease expires the runs get a message, then the worker is marked dead", async () => {
  const { calls, checkUntil, sentMessages, frames, printed } = createLoopWatch();
  frames.enter(0, "a", "spin");
  await checkUntil(0, 2_600);
  expect(calls).toEqual(["open"]);
  await checkUntil(2_600, 2_700);
  expect(calls).toEqual(["open", "send", "deregister w/7"]);
  expect(sentMessages()).toEqual([
    { to: "a", ...blockedMessage, step: "spin", by: null },
    { to: "b", ...blockedMessage, step: null, by: "a" },
  ]);
  expect(printed).toEqual([expect.stringMatching(/Worker "worker 0".*run a, step "spin"/)]);
  await checkUntil(2_700, 9_000);
  expect(calls).toEqual(["open", "send", "deregister w/7", "close"]);
});

test("a loop that continues in time is not reported, and the connection is closed", async () => {
  const { calls, checkUntil } = createLoopWatch();
  await checkUntil(0, 2_600);
  await checkUntil(2_600, 2_700, true);
  expect(calls).toEqual(["open", "close"]);
});

test("a process that was suspended as a whole is not reported as blocked", async () => {
  const { calls, checkUntil, loop, frames } = createLoopWatch();
  await checkUntil(0, 500, true);
  await loop.check(60_000);
  frames.heartbeat();
  await loop.check(60_100);
  expect(calls).toEqual([]);
});

test("a renewed lease postpones the report", async () => {
  const { calls, checkUntil, loop } = createLoopWatch();
  loop.noteLeaseRenewed(0, 2_000);
  await checkUntil(0, 4_600);
  expect(calls).toEqual(["open"]);
  await checkUntil(4_600, 4_700);
  expect(calls).toContain("deregister w/7");
});

test("if no frame is entered, all runs are suspects, unless there is only one", async () => {
  const several = createLoopWatch();
  await several.checkUntil(0, leaseMs);
  expect(
    several
      .sentMessages()
      .map((message) => [message.to, "step" in message && message.step, "by" in message && message.by]),
  ).toEqual([
    ["a", null, null],
    ["b", null, null],
  ]);
  const alone = createLoopWatch(["a"]);
  await alone.checkUntil(0, leaseMs);
  expect(alone.sentMessages()).toEqual([{ to: "a", ...blockedMessage, step: "", by: null }]);
});

test("the run that blocks gets the message even if the worker no longer owns it", async () => {
  const { checkUntil, sentMessages, frames } = createLoopWatch([]);
  frames.enter(0, "a", "spin");
  await checkUntil(0, leaseMs);
  expect(sentMessages()).toEqual([{ to: "a", ...blockedMessage, step: "spin", by: null }]);
});

test("code of one worker's run blocks all workers of its process, and their runs get the message too", async () => {
  const { checkUntil, sentMessages, frames, watch } = createLoopWatch(["b"]);
  watch(1);
  frames.enter(1, "a", "spin");
  await checkUntil(0, leaseMs);
  expect(sentMessages().map(({ to, worker, by }: any) => [to, worker, by])).toEqual([
    ["b", "worker 0", "a"],
    ["b", "worker 1", "a"],
    ["a", "worker 1", null],
  ]);
});

test("an unreachable database is retried, and the failure is printed once", async () => {
  const { calls, printed, checkUntil, setUnreachable } = createLoopWatch();
  setUnreachable(true);
  await checkUntil(0, 4_000);
  expect(printed).toEqual([expect.stringContaining("away")]);
  setUnreachable(false);
  await checkUntil(4_000, 4_100);
  expect(calls).toEqual(["open", "send", "deregister w/7"]);
});

test("a worker that has stopped is no longer watched", async () => {
  const { calls, loop, checkUntil } = createLoopWatch();
  loop.unwatch(0);
  expect(loop.checkIntervalMs).toBeNull();
  await checkUntil(0, 60_000);
  expect(calls).toEqual([]);
});
