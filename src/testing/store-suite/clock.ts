/** Time: the store's own clock gives every timestamp, a virtual clock can replace it, and leases always run on real time. */
import { systemRuntime } from "../../runtime/system.js";
import type { Store } from "../../store/contract/store.js";
import {
  batch,
  delay,
  event,
  finish,
  newMessage,
  newRun,
  park,
  routesOf,
  transition,
  uniqueName,
  workerInfo,
} from "./builders.js";
import type { Fixture } from "./fixture.js";

const yearMs = 365 * 86_400_000;

export function clockTests(fixture: Fixture): void {
  const { test, expect } = fixture;

  async function openWithVirtualClock(startAt: number): Promise<{ store: Store; time: { now: number } }> {
    const time = { now: startAt };
    return { store: await fixture.open({ clock: () => time.now }), time };
  }

  test("now is an instant in whole milliseconds, and does not go back", async () => {
    const instants: number[] = [];
    for (let round = 0; round < 5; round += 1) instants.push(await fixture.store.now());
    for (const instant of instants) {
      expect(Number.isInteger(instant)).toBe(true);
      expect(Math.abs(instant - systemRuntime.now())).toBeLessThan(86_400_000);
    }
    expect(instants).toEqual([...instants].sort((a, b) => a - b));
    const before = await fixture.store.now();
    const { at } = await fixture.commit(batch(null, [], [newRun()]));
    expect(at).toBeGreaterThanOrEqual(before);
    expect(at).toBeLessThanOrEqual(await fixture.store.now());
  });

  test("a virtual clock gives every timestamp", async () => {
    for (const startAt of [1_000_000, systemRuntime.now() + 50 * yearMs]) {
      const { store, time } = await openWithVirtualClock(startAt);
      expect(await store.now()).toBe(startAt);
      const worker = await store.registerWorker(workerInfo());
      const run = await fixture.start({}, store);
      expect(await fixture.run(run.id, store)).toMatchObject({ createdAt: startAt });
      expect(await fixture.task(run.id, store)).toMatchObject({ dueAt: startAt });
      expect((await fixture.claim(worker, routesOf(run), {}, store)).at).toBe(startAt);

      time.now += 1_000;
      await store.send([newMessage(run.id, "x")]);
      expect(await fixture.inbox(run.id, store)).toMatchObject([{ at: startAt + 1_000 }]);
      time.now += 1_000;
      const drainedInboxIds = (await fixture.inbox(run.id, store)).map(({ id }) => id);
      const waits = transition(run.id, {
        events: [event("w")],
        drainedInboxIds,
        cursors: [{ node: "n", cursor: "1" }],
        next: park("waiting", { startedAt: "now", wakeInMs: 500 }),
      });
      expect(await fixture.commitTransition(worker, waits, store)).toMatchObject({ at: startAt + 2_000 });
      expect(await fixture.log(run.id, store)).toMatchObject([{ at: startAt + 2_000 }]);
      expect(await store.cursors(run.id)).toMatchObject([{ at: startAt + 2_000 }]);
      expect(await fixture.run(run.id, store)).toMatchObject({ startedAt: startAt + 2_000 });
      expect(await fixture.task(run.id, store)).toMatchObject({ state: "parked", dueAt: startAt + 2_500 });

      time.now += 1_000;
      const ends = transition(run.id, { afterSeq: 1, events: [event("e")], next: finish() });
      await fixture.commitTransition(null, ends, store);
      expect(await fixture.run(run.id, store)).toMatchObject({ finishedAt: startAt + 3_000 });
      const name = uniqueName("workflow");
      await store.registerWorkflows([{ name, queue: null, version: null, signature: null, graph: null }]);
      expect(await store.workflow(name)).toMatchObject({ createdAt: startAt + 3_000 });
    }
  });

  test("tasks become due by the virtual clock alone", async () => {
    const { store, time } = await openWithVirtualClock(5_000_000);
    const worker = await store.registerWorker(workerInfo());
    const slow = await fixture.start({ due: { kind: "in", ms: yearMs } }, store);
    const soon = await fixture.start({ workflow: slow.workflow, due: { kind: "at", ms: 5_001_000 } }, store);
    const claim = () => fixture.claim(worker, routesOf(slow), {}, store);
    expect(await claim()).toMatchObject({ tasks: [], nextDueAt: 5_001_000 });
    time.now = 5_000_999;
    expect((await claim()).tasks).toEqual([]);
    time.now = 5_001_000;
    expect(await claim()).toMatchObject({ tasks: [{ run: { id: soon.id } }], nextDueAt: 5_000_000 + yearMs });
    time.now = 5_000_000 + yearMs - 1;
    expect((await claim()).tasks).toEqual([]);
    time.now += 1;
    expect(await claim()).toMatchObject({ tasks: [{ run: { id: slow.id } }], nextDueAt: null });
  });

  test("a wake-up in the past of the virtual clock is due at once", async () => {
    const { store, time } = await openWithVirtualClock(systemRuntime.now() + yearMs);
    const worker = await store.registerWorker(workerInfo());
    const run = await fixture.startOwned(worker, {}, store);
    const next = park("waiting", { wakeAt: time.now - yearMs / 2 });
    await fixture.commitTransition(worker, transition(run.id, { events: [event("w")], next }), store);
    expect((await fixture.claimOne(worker, routesOf(run), store)).run.id).toBe(run.id);
  });

  test("leases do not expire when the virtual clock jumps", async () => {
    const { store, time } = await openWithVirtualClock(1_000_000);
    const idleWorker = await store.registerWorker(workerInfo());
    const other = await store.registerWorker(workerInfo());
    time.now += 10 * yearMs;
    const heartbeat = await store.heartbeat(other);
    expect(heartbeat).toMatchObject({ isAlive: true });
    expect(heartbeat.reapedWorkerIds).not.toContain(idleWorker.workerId);
    const workers = (await store.workers()).filter(({ id }) => [idleWorker.workerId, other.workerId].includes(id));
    for (const { heartbeatAt, startedAt } of workers) {
      expect(Math.abs(heartbeatAt - systemRuntime.now())).toBeLessThan(86_400_000);
      expect(Math.abs(startedAt - systemRuntime.now())).toBeLessThan(86_400_000);
    }
  });

  test("leases expire although the virtual clock does not move, and the freed tasks are due by the virtual clock", async () => {
    const { store, time } = await openWithVirtualClock(1_000_000);
    const expiredWorker = await store.registerWorker(workerInfo({ leaseMs: 60 }));
    const other = await store.registerWorker(workerInfo());
    const run = await fixture.startOwned(expiredWorker, {}, store);
    await delay(200);
    expect((await store.heartbeat(other)).reapedWorkerIds).toContain(expiredWorker.workerId);
    expect(await fixture.task(run.id, store)).toMatchObject({ state: "ready", dueAt: time.now });
    expect(await fixture.claimOne(other, routesOf(run), store)).toMatchObject({ deliveries: 2 });
  });
}
