/** What a thread makes of an event loop that stands still; here without a thread, and with a loop that only seems to. */
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
        deregisterWorker: async (who) => void calls.push(`retire ${who.workerId}/${who.epoch}`),
        close: async () => void calls.push("close"),
      };
    },
    print: (text) => void printed.push(text),
  });
  const watch = (index = 0) => loop.watch({ index, name: `worker ${index}`, fence, leaseMs, renewedAt: 0 });
  watch();
  /** Looks as often as it would in this time. */
  const checkUntil = async (from: number, to: number, beats = false) => {
    for (let now = from + everyMs; now <= to; now += everyMs) {
      if (beats) frames.heartbeat();
      await loop.check(now);
    }
  };
  const sentMessages = () => sent.map(({ to, kind, data }) => ({ to, kind, ...(decode(data) as object) }));
  const setUnreachable = (is: boolean) => {
    unreachable = is;
  };
  return {
    frames,
    loop,
    did: calls,
    said: printed,
    told: sentMessages,
    lookUntil: checkUntil,
    watch,
    away: setUnreachable,
  };
}

const about = { kind: "blocked", worker: "worker 0", session: "w/7" };

test("a loop that turns is left alone, however long ago its lease was renewed", async () => {
  const { did, lookUntil } = createLoopWatch();
  await lookUntil(0, 60_000, true);
  expect(did).toEqual([]);
});

test("shortly before the lease is over the runs are told, then the worker is marked dead", async () => {
  const { did, lookUntil, told, frames, said } = createLoopWatch();
  frames.enter(0, "a", "spin");
  await lookUntil(0, 2_600);
  expect(did).toEqual(["open"]);
  await lookUntil(2_600, 2_700);
  expect(did).toEqual(["open", "send", "retire w/7"]);
  expect(told()).toEqual([
    { to: "a", ...about, step: "spin", by: null },
    { to: "b", ...about, step: null, by: "a" },
  ]);
  expect(said).toEqual([expect.stringMatching(/Worker "worker 0".*run a, step "spin"/)]);
  await lookUntil(2_700, 9_000);
  expect(did).toEqual(["open", "send", "retire w/7", "close"]);
});

test("a loop that goes on in time is not reported, and its connection is closed", async () => {
  const { did, lookUntil } = createLoopWatch();
  await lookUntil(0, 2_600);
  await lookUntil(2_600, 2_700, true);
  expect(did).toEqual(["open", "close"]);
});

test("a process that was stopped as a whole is not blocked: the first look after it proves nothing", async () => {
  const { did, lookUntil, loop, frames } = createLoopWatch();
  await lookUntil(0, 500, true);
  await loop.check(60_000);
  frames.heartbeat();
  await loop.check(60_100);
  expect(did).toEqual([]);
});

test("a lease that was renewed meanwhile is not over", async () => {
  const { did, lookUntil, loop } = createLoopWatch();
  loop.noteLeaseRenewed(0, 2_000);
  await lookUntil(0, 4_600);
  expect(did).toEqual(["open"]);
  await lookUntil(4_600, 4_700);
  expect(did).toContain("retire w/7");
});

test("code that is on no known stack makes suspects of all runs, unless there is only one", async () => {
  const several = createLoopWatch();
  await several.lookUntil(0, leaseMs);
  expect(several.told().map((one) => [one.to, "step" in one && one.step, "by" in one && one.by])).toEqual([
    ["a", null, null],
    ["b", null, null],
  ]);
  const alone = createLoopWatch(["a"]);
  await alone.lookUntil(0, leaseMs);
  expect(alone.told()).toEqual([{ to: "a", ...about, step: "", by: null }]);
});

test("a run that is not this worker's any more is told all the same that it was the one", async () => {
  const { lookUntil, told, frames } = createLoopWatch([]);
  frames.enter(0, "a", "spin");
  await lookUntil(0, leaseMs);
  expect(told()).toEqual([{ to: "a", ...about, step: "spin", by: null }]);
});

test("the code of one worker's run blocks the others of its process: their runs are told of it", async () => {
  const { lookUntil, told, frames, watch } = createLoopWatch(["b"]);
  watch(1);
  frames.enter(1, "a", "spin");
  await lookUntil(0, leaseMs);
  expect(told().map(({ to, worker, by }: any) => [to, worker, by])).toEqual([
    ["b", "worker 0", "a"],
    ["b", "worker 1", "a"],
    ["a", "worker 1", null],
  ]);
});

test("a database that cannot be reached is tried again, and told of once", async () => {
  const { did, said, lookUntil, away } = createLoopWatch();
  away(true);
  await lookUntil(0, 4_000);
  expect(said).toEqual([expect.stringContaining("away")]);
  away(false);
  await lookUntil(4_000, 4_100);
  expect(did).toEqual(["open", "send", "retire w/7"]);
});

test("a worker that has left is not looked after", async () => {
  const { did, loop, lookUntil } = createLoopWatch();
  loop.unwatch(0);
  expect(loop.checkIntervalMs).toBeNull();
  await lookUntil(0, 60_000);
  expect(did).toEqual([]);
});
