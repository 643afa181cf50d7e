import { expect, onTestFinished, test } from "vitest";
import { systemRuntime } from "../../runtime/system.js";
import type { Store } from "../../store/contract/store.js";
import { Heartbeat, type LeaseEvents } from "./heartbeat.js";

const silent = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };
const fence = { workerId: "w", epoch: 1 };
const options = { fence, leaseMs: 3_600_000, log: silent, runtime: systemRuntime, countExecuting: () => [] };
const maintenance = { pausedQueues: async () => [] };

test("a poll that is requested during another one follows it, because that one may have read too early", async () => {
  const results: ((runIds: readonly string[]) => void)[] = [];
  const ownedWithMessages = () => new Promise<readonly string[]>((resolve) => results.push(resolve));
  const receivedRunIds: string[] = [];
  const store = { ownedWithMessages, maintenance } as unknown as Store;
  const events: LeaseEvents = {
    onLost: () => {},
    onMessages: (runIds) => receivedRunIds.push(...runIds),
    onPausedQueues: () => {},
  };
  const lease = new Heartbeat({ ...options, store }, events);
  onTestFinished(() => lease.stop());
  const first = lease.pollNow();
  // A message may have arrived after the first poll read the inbox.
  void lease.pollNow();
  void lease.pollNow();
  expect(results).toHaveLength(1);
  results[0]?.([]);
  await expect.poll(() => results.length).toBe(2);
  results[1]?.(["run"]);
  await first;
  expect(receivedRunIds).toEqual(["run"]);
  expect(results).toHaveLength(2);
});

test("no requested poll is lost, at whatever moment of the previous one it is requested, and none of them writes", async () => {
  for (let moments = 0; moments < 10; moments += 1) {
    let reads = 0;
    const ownedWithMessages = async () => {
      reads += 1;
      return [];
    };
    const events = { onLost: () => {}, onMessages: () => {}, onPausedQueues: () => {} };
    // The store has no `heartbeat` method: a poll that wrote one would throw a TypeError.
    const store = { ownedWithMessages, maintenance } as unknown as Store;
    const lease = new Heartbeat({ ...options, store }, events);
    void lease.pollNow();
    for (let moment = 0; moment < moments; moment += 1) await undefined;
    void lease.pollNow();
    await new Promise((resolve) => setImmediate(resolve));
    lease.stop();
    expect(reads, `requested after ${moments} microtasks`).toBe(2);
  }
});

test.each([
  [1, 'Freed the runs of a dead worker: "worker-1" (id-1).'],
  [2, 'Freed the runs of 2 dead workers: "worker-1" (id-1), "worker-2" (id-2).'],
  [40, 'Freed the runs of 40 dead workers: "worker-1", "worker-2", "worker-3" and 37 more.'],
])(
  "the warning about %i dead workers has their number and names, and their ids when they are few",
  async (count, line) => {
    const workers = Array.from({ length: count }, (_, n) => ({ id: `id-${n + 1}`, name: `worker-${n + 1}` }));
    expect(await warningAboutDead(workers, async () => workers)).toBe(line);
  },
);

test("the warning names dead workers by their ids when their names cannot be read", async () => {
  const unread = () => Promise.reject(new Error("not now"));
  expect(await warningAboutDead([{ id: "id-1" }], unread)).toBe("Freed the runs of a dead worker: id-1.");
});

/** The warning that is logged when a heartbeat has reaped these workers. */
function warningAboutDead(dead: readonly { readonly id: string }[], workers: () => Promise<readonly object[]>) {
  return new Promise((resolve) => {
    const reapedWorkerIds = dead.map(({ id }) => id);
    const heartbeat = async () => ({ isAlive: true, ownedWithMessages: [], reapedWorkerIds, pausedQueues: [] });
    const events = { onLost: () => {}, onMessages: () => {}, onPausedQueues: () => {} };
    const store = { heartbeat, workers } as unknown as Store;
    const lease = new Heartbeat({ ...options, store, leaseMs: 30, log: { ...silent, warn: resolve } }, events);
    onTestFinished(() => lease.stop());
  });
}
