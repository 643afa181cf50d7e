/** Paused queues: they stay paused until they are resumed, and workers learn of the pause and of the resumption. */
import type { Hint } from "../../store/contract/store.js";
import { delay, uniqueName } from "./builders.js";
import type { Fixture } from "./fixture.js";

export function pausedQueueTests(fixture: Fixture): void {
  const { test, expect } = fixture;

  test("a queue is paused until it is resumed, and every heartbeat lists it", async () => {
    const { store } = fixture;
    const other = await fixture.openAnother();
    const fence = await fixture.registerWorker();
    const [mails, Mails] = [uniqueName("mails"), uniqueName("Mails")];
    const paused = async () =>
      (await other.maintenance.pausedQueues()).filter(({ name }) => [mails, Mails].includes(name));
    expect(await paused()).toEqual([]);
    const before = await store.now();
    await store.maintenance.pauseQueue(mails, "the provider is down", "ada");
    const [first] = await paused();
    expect(first).toEqual({ name: mails, pausedAt: first?.pausedAt, reason: "the provider is down", by: "ada" });
    expect(first?.pausedAt).toBeGreaterThanOrEqual(before);
    await delay(3);
    await other.maintenance.pauseQueue(mails, null, null);
    await store.maintenance.pauseQueue(Mails, "ünï", "Zoë 👋");
    expect(await paused()).toMatchObject([
      { name: Mails, reason: "ünï", by: "Zoë 👋" },
      { name: mails, pausedAt: first?.pausedAt, reason: null, by: null },
    ]);
    for (const name of [mails, Mails]) expect((await store.heartbeat(fence)).pausedQueues).toContain(name);
    await store.maintenance.resumeQueue(mails);
    await store.maintenance.resumeQueue(mails);
    expect((await paused()).map(({ name }) => name)).toEqual([Mails]);
    expect((await store.heartbeat(fence)).pausedQueues).not.toContain(mails);
    await store.maintenance.resumeQueue(Mails);
  });

  test("listeners get a hint when a queue is paused or resumed", async () => {
    const hints: Hint[] = [];
    const { harness, store } = fixture;
    const listener = harness.notifiesAcrossInstances ? await fixture.openAnother() : store;
    const unwatch = listener.watch((hint) => hints.push(hint));
    const countHints = () => hints.filter(({ kind }) => kind === "anything").length;
    if (harness.notifiesAcrossInstances)
      await fixture.waitUntil("the listener is connected", hasStoppedGrowing(countHints));
    const queue = uniqueName("hinted");
    for (const change of ["pauseQueue", "resumeQueue"] as const) {
      const before = countHints();
      await store.maintenance[change](queue, null, null);
      await fixture.waitUntil("there is a hint", () => countHints() > before);
    }
    unwatch();
  });

  /**
   * Returns a check whether no hints arrive for 100 ms, because a listener that has just connected may emit a hint of
   * its own.
   */
  function hasStoppedGrowing(count: () => number): () => Promise<boolean> {
    return async () => {
      const before = count();
      await delay(100);
      return count() === before;
    };
  }
}
