import { expect, onTestFinished, test } from "vitest";
import { systemRuntime } from "../../runtime/system.js";
import type { Store } from "../../store/contract/store.js";
import { Heartbeat, type LeaseEvents } from "./heartbeat.js";

const silent = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };
const maintenance = { pausedQueues: async () => [] };

test("a look that is asked for while one is under way follows it: that one may have been too early", async () => {
  const results: ((runIds: readonly string[]) => void)[] = [];
  const ownedWithMessages = () => new Promise<readonly string[]>((resolve) => results.push(resolve));
  const receivedRunIds: string[] = [];
  const store = { ownedWithMessages, maintenance } as unknown as Store;
  const events: LeaseEvents = {
    onLost: () => {},
    onMessages: (runIds) => receivedRunIds.push(...runIds),
    onPausedQueues: () => {},
  };
  const lease = new Heartbeat(store, { workerId: "w", epoch: 1 }, 3_600_000, silent, events, systemRuntime);
  onTestFinished(() => lease.stop());
  const first = lease.pollNow();
  // Mail has come since the first one looked.
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

test("none that is asked for is lost, at whatever moment of the one before, and none of them writes", async () => {
  for (let moments = 0; moments < 10; moments += 1) {
    let reads = 0;
    const ownedWithMessages = async () => {
      reads += 1;
      return [];
    };
    const events = { onLost: () => {}, onMessages: () => {}, onPausedQueues: () => {} };
    // A beat would be a TypeError here.
    const store = { ownedWithMessages, maintenance } as unknown as Store;
    const lease = new Heartbeat(store, { workerId: "w", epoch: 1 }, 3_600_000, silent, events, systemRuntime);
    void lease.pollNow();
    for (let moment = 0; moment < moments; moment += 1) await undefined;
    void lease.pollNow();
    await new Promise((resolve) => setImmediate(resolve));
    lease.stop();
    expect(reads, `asked after ${moments} moments`).toBe(2);
  }
});

test.each([
  [1, 'Freed the runs of a dead worker: "mail-1" (id-1).'],
  [2, 'Freed the runs of 2 dead workers: "mail-1" (id-1), "mail-2" (id-2).'],
  [40, 'Freed the runs of 40 dead workers: "mail-1", "mail-2", "mail-3" and 37 more.'],
])(
  "of %i that it frees the runs of it says how many there are and their names, and ids when they are few",
  async (count, line) => {
    const workers = Array.from({ length: count }, (_, n) => ({ id: `id-${n + 1}`, name: `mail-${n + 1}` }));
    expect(await warningAboutDead(workers, async () => workers)).toBe(line);
  },
);

test("dead workers whose names cannot be read are told of by their ids", async () => {
  const unread = () => Promise.reject(new Error("not now"));
  expect(await warningAboutDead([{ id: "id-1" }], unread)).toBe("Freed the runs of a dead worker: id-1.");
});

/** What a lease says when a beat has found these dead. */
function warningAboutDead(dead: readonly { readonly id: string }[], workers: () => Promise<readonly object[]>) {
  return new Promise((resolve) => {
    const reapedWorkerIds = dead.map(({ id }) => id);
    const heartbeat = async () => ({ isAlive: true, ownedWithMessages: [], reapedWorkerIds, pausedQueues: [] });
    const events = { onLost: () => {}, onMessages: () => {}, onPausedQueues: () => {} };
    const store = { heartbeat, workers } as unknown as Store;
    const lease = new Heartbeat(
      store,
      { workerId: "w", epoch: 1 },
      30,
      { ...silent, warn: resolve },
      events,
      systemRuntime,
    );
    onTestFinished(() => lease.stop());
  });
}
