/** Workers: epochs, leases, and how the tasks of a dead worker become ready. Leases run on real time. */
import { systemRuntime } from "../../runtime/system.js";
import type { Fence, Store, WorkerRecord } from "../../store/contract/store.js";
import {
  batch,
  delay,
  event,
  eventTypes,
  newMessage,
  newRuns,
  park,
  routesOf,
  transition,
  uniqueName,
  workerInfo,
} from "./builders.js";
import type { Fixture } from "./fixture.js";

const shortLeaseMs = 60;
const afterLeaseMs = 200;

export function workerTests(fixture: Fixture): void {
  const { test, expect } = fixture;

  async function readWorker(fence: Fence, store: Store = fixture.store): Promise<WorkerRecord | undefined> {
    return (await store.workers()).find(({ id }) => id === fence.workerId);
  }

  test("a worker is read as it was registered", async () => {
    const routes = [
      { workflow: 'a"b', version: "v1" },
      { workflow: "ü", version: "" },
    ];
    const info = workerInfo({
      name: "mail worker",
      host: "box-1",
      pid: 4_194_304,
      port: 65_535,
      routes,
      leaseMs: 12_345,
    });
    const fence = await fixture.store.registerWorker(info);
    expect(fence.workerId).toBe(info.id);
    const found = await readWorker(fence);
    expect(found).toMatchObject({ ...info, epoch: fence.epoch, live: true, executing: [], loopLagMs: null });
    expect(Math.abs((found?.startedAt ?? 0) - systemRuntime.now())).toBeLessThan(600_000);
    expect(found?.heartbeatAt).toBe(found?.startedAt);
  });

  test("each registration has a higher epoch than the one before", async () => {
    const info = workerInfo({ name: "old" });
    const first = await fixture.store.registerWorker(info);
    const second = await fixture.store.registerWorker({ ...info, name: "new" });
    await fixture.store.deregisterWorker(second);
    const third = await fixture.store.registerWorker({ ...info, name: "newest", port: 8080, leaseMs: 999 });
    expect(second.epoch).toBeGreaterThan(first.epoch);
    expect(third.epoch).toBeGreaterThan(second.epoch);
    const found = (await fixture.store.workers()).filter(({ id }) => id === info.id);
    expect(found).toMatchObject([{ name: "newest", port: 8080, leaseMs: 999, live: true, epoch: third.epoch }]);
  });

  test("registrations of one id at once get different epochs, and one of them is live", async () => {
    const other = await fixture.openAnother();
    const info = workerInfo();
    const fences = await Promise.all(
      Array.from({ length: 10 }, (_, index) => (index % 2 === 0 ? fixture.store : other).registerWorker(info)),
    );
    expect(new Set(fences.map(({ epoch }) => epoch)).size).toBe(10);
    const heartbeats = await Promise.all(fences.map((fence) => fixture.store.heartbeat(fence)));
    expect(heartbeats.filter(({ isAlive }) => isAlive)).toHaveLength(1);
    const highest = Math.max(...fences.map(({ epoch }) => epoch));
    expect((await readWorker(fences[0] as Fence))?.epoch).toBe(highest);
  });

  test("tasks that a worker owned before it registered again are ready", async () => {
    const info = workerInfo();
    const first = await fixture.store.registerWorker(info);
    const run = await fixture.startOwned(first);
    const otherWorker = await fixture.registerWorker();
    const otherRun = await fixture.startOwned(otherWorker);
    const second = await fixture.store.registerWorker(info);
    expect(await fixture.task(run.id)).toMatchObject({ state: "ready", owner: null, epoch: null, deliveries: 1 });
    expect(await fixture.task(otherRun.id)).toMatchObject({ state: "owned", owner: otherWorker.workerId });
    expect(await fixture.claimOne(second, routesOf(run))).toMatchObject({ deliveries: 2 });
  });

  test("a heartbeat renews the lease, and lists no run if none has messages", async () => {
    const fence = await fixture.registerWorker();
    const before = await readWorker(fence);
    await delay(20);
    const heartbeat = await fixture.store.heartbeat(fence);
    expect(heartbeat).toMatchObject({ isAlive: true, ownedWithMessages: [] });
    const after = await readWorker(fence);
    expect(after?.heartbeatAt).toBeGreaterThan(before?.heartbeatAt ?? 0);
    expect(after).toEqual({ ...before, heartbeatAt: after?.heartbeatAt });
  });

  test("a heartbeat lists the worker's own runs that have undrained messages", async () => {
    const [worker, other] = [await fixture.registerWorker(), await fixture.registerWorker()];
    const runs = newRuns(4, { due: { kind: "owned" } });
    await fixture.startAll(runs, worker);
    const runOfOther = await fixture.startOwned(other);
    const ready = await fixture.start();
    const withMessages = [runs[0], runs[2]].map((run) => run?.id as string);
    await fixture.store.send(
      [...withMessages, withMessages[0] as string, runOfOther.id, ready.id].map((to) => newMessage(to, "x")),
    );
    const heartbeat = await fixture.store.heartbeat(worker);
    expect([...heartbeat.ownedWithMessages].sort()).toEqual([...withMessages].sort());
    const drainedInboxIds = (await fixture.inbox(withMessages[1] as string)).map(({ id }) => id);
    await fixture.commitTransition(
      worker,
      transition(withMessages[1] as string, { events: [event("got")], drainedInboxIds }),
    );
    expect((await fixture.store.heartbeat(worker)).ownedWithMessages).toEqual([withMessages[0]]);
    expect((await fixture.store.heartbeat(other)).ownedWithMessages).toEqual([runOfOther.id]);
  });

  test("a worker whose lease has expired is reaped: its tasks are ready again, what it has written stays", async () => {
    const expired = await fixture.registerWorker({ leaseMs: shortLeaseMs });
    const runs = newRuns(3, { due: { kind: "owned" } });
    await fixture.startAll(runs, expired);
    const [first] = runs.map(({ id }) => id) as [string];
    await fixture.commitTransition(expired, transition(first, { events: [event("done")] }));
    await delay(afterLeaseMs);
    const other = await fixture.openAnother();
    const reaper = await fixture.registerWorker({}, other);
    expect((await other.heartbeat(reaper)).reapedWorkerIds).toContain(expired.workerId);
    expect(await readWorker(expired)).toMatchObject({ live: false, executing: [], epoch: expired.epoch });
    for (const task of await fixture.tasks(...runs)) {
      expect(task).toMatchObject({ state: "ready", owner: null, epoch: null, deliveries: 1 });
      expect(task.dueAt).not.toBeNull();
    }
    expect(await fixture.run(first)).toMatchObject({ status: "pending" });
    const { tasks } = await fixture.claim(reaper, routesOf(...runs), {}, other);
    expect(tasks.map(({ deliveries }) => deliveries)).toEqual([2, 2, 2]);
    expect(eventTypes(await fixture.log(first))).toEqual(["done"]);
    expect((await other.heartbeat(reaper)).reapedWorkerIds).not.toContain(expired.workerId);
  });

  test("a run whose owner was reaped has the status that it was last parked with", async () => {
    const expired = await fixture.registerWorker({ leaseMs: shortLeaseMs });
    const run = await fixture.start();
    const next = park("waiting", { waiting: "w", wakeInMs: 0 });
    await fixture.commitTransition(null, transition(run.id, { events: [event("wait")], next }));
    await fixture.claimOne(expired, routesOf(run));
    expect(await fixture.run(run.id)).toMatchObject({ status: "running", waiting: "w" });
    await delay(afterLeaseMs);
    await fixture.store.heartbeat(await fixture.registerWorker());
    expect(await fixture.run(run.id)).toMatchObject({ status: "waiting", waiting: "w" });
  });

  test("every call refuses the fence of a reaped worker", async () => {
    const info = workerInfo({ leaseMs: shortLeaseMs });
    const stale = await fixture.store.registerWorker(info);
    const run = await fixture.startOwned(stale);
    await delay(afterLeaseMs);
    const reaper = await fixture.registerWorker();
    await fixture.store.heartbeat(reaper);
    await fixture.claimOne(reaper, routesOf(run));
    const { store } = fixture;
    const write = batch(stale, [transition(run.id, { events: [event("late")] })]);
    for (let round = 0; round < 2; round += 1) {
      expect(await store.commit(write)).toEqual({ kind: "fenced" });
      expect(await store.claim({ fence: stale, routes: [], limit: 1, limitPerRoute: 1 })).toEqual({ kind: "fenced" });
      expect(await store.heartbeat(stale)).toEqual({
        isAlive: false,
        ownedWithMessages: [],
        reapedWorkerIds: [],
        pausedQueues: [],
        nextScheduleInMs: null,
        nextStartDeadlineInMs: null,
        nextOfferInMs: null,
        scheduleSetInForce: null,
      });
      await store.deregisterWorker(stale);
      if (round === 0) await store.registerWorker({ ...info, leaseMs: 60_000 });
    }
    expect(await readWorker(stale)).toMatchObject({ live: true });
    expect(await fixture.log(run.id)).toEqual([]);
    expect(await fixture.task(run.id)).toMatchObject({ state: "owned", owner: reaper.workerId });
  });

  test("the heartbeat of a dead worker reaps no other worker", async () => {
    const dead = await fixture.registerWorker();
    await fixture.store.deregisterWorker(dead);
    const expired = await fixture.registerWorker({ leaseMs: shortLeaseMs });
    await delay(afterLeaseMs);
    expect(await fixture.store.heartbeat(dead)).toEqual({
      isAlive: false,
      ownedWithMessages: [],
      reapedWorkerIds: [],
      pausedQueues: [],
      nextScheduleInMs: null,
      nextStartDeadlineInMs: null,
      nextOfferInMs: null,
      scheduleSetInForce: null,
    });
    expect(await readWorker(expired)).toMatchObject({ live: true });
  });

  test("a worker whose lease expired but was not reaped continues with its next heartbeat", async () => {
    const late = await fixture.registerWorker({ leaseMs: shortLeaseMs });
    const run = await fixture.startOwned(late);
    await delay(afterLeaseMs);
    const heartbeat = await fixture.store.heartbeat(late);
    expect(heartbeat.isAlive).toBe(true);
    expect(heartbeat.reapedWorkerIds).not.toContain(late.workerId);
    await fixture.commitTransition(late, transition(run.id, { events: [event("go")] }));
  });

  test("a lease counts from the last heartbeat", async () => {
    const worker = await fixture.registerWorker({ leaseMs: 2_000 });
    const other = await fixture.registerWorker();
    await delay(1_200);
    expect(await fixture.store.heartbeat(worker)).toMatchObject({ isAlive: true });
    await delay(1_200);
    const heartbeat = await fixture.store.heartbeat(other);
    expect(heartbeat.isAlive).toBe(true);
    expect(heartbeat.reapedWorkerIds).not.toContain(worker.workerId);
    expect(await readWorker(worker)).toMatchObject({ live: true });
  });

  test("a worker without a heartbeat is not reaped before its lease expires", async () => {
    const [quiet, other] = [await fixture.registerWorker(), await fixture.registerWorker()];
    const run = await fixture.startOwned(quiet);
    await delay(afterLeaseMs);
    expect((await fixture.store.heartbeat(other)).reapedWorkerIds).not.toContain(quiet.workerId);
    expect(await fixture.task(run.id)).toMatchObject({ state: "owned", owner: quiet.workerId });
    await fixture.commitTransition(quiet, transition(run.id, { events: [event("go")] }));
  });

  test("each expired worker is reaped once by several simultaneous heartbeats", async () => {
    const other = await fixture.openAnother();
    const expired = await Promise.all(
      Array.from({ length: 5 }, () => fixture.registerWorker({ leaseMs: shortLeaseMs })),
    );
    const runs = newRuns(5);
    await fixture.startAll(runs);
    for (const fence of expired) await fixture.claim(fence, routesOf(...runs), { limit: 1 });
    await delay(afterLeaseMs);
    const reapers = await Promise.all(
      Array.from({ length: 8 }, async (_, index) => {
        const store = index % 2 === 0 ? fixture.store : other;
        return { store, fence: await fixture.registerWorker({}, store) };
      }),
    );
    const heartbeats = await Promise.all(reapers.map(({ store, fence }) => store.heartbeat(fence)));
    const reaped = heartbeats.flatMap(({ reapedWorkerIds }) => reapedWorkerIds);
    for (const { workerId } of expired) expect(reaped.filter((id) => id === workerId)).toHaveLength(1);
    for (const task of await fixture.tasks(...runs)) expect(task).toMatchObject({ state: "ready", deliveries: 1 });
  });

  test("the tasks of a deregistered worker are ready", async () => {
    const worker = await fixture.registerWorker();
    const run = await fixture.startOwned(worker);
    const parked = await fixture.startOwned(worker);
    await fixture.commitTransition(worker, transition(parked.id, { events: [event("w")], next: park("paused") }));
    await fixture.store.deregisterWorker(worker);
    expect(await readWorker(worker)).toMatchObject({ live: false, executing: [] });
    expect(await fixture.task(run.id)).toMatchObject({ state: "ready", owner: null, epoch: null, deliveries: 1 });
    expect(await fixture.task(parked.id)).toMatchObject({ state: "parked", dueAt: null });
    expect(await fixture.store.heartbeat(worker)).toMatchObject({ isAlive: false });
    await fixture.store.deregisterWorker(worker);
  });

  test("a deregistered worker is not reaped", async () => {
    const deregistered = await fixture.registerWorker({ leaseMs: shortLeaseMs });
    await fixture.store.deregisterWorker(deregistered);
    await delay(afterLeaseMs);
    expect((await fixture.store.heartbeat(await fixture.registerWorker())).reapedWorkerIds).not.toContain(
      deregistered.workerId,
    );
  });

  test("workers are listed with what they executed as of their last heartbeat, until they are dead", async () => {
    const [busy, idle] = [await fixture.registerWorker(), await fixture.registerWorker()];
    const executing = [
      { route: 'a"b\tü', version: "v1", count: 4 },
      { route: "a", version: "", count: 1 },
    ];
    await fixture.store.heartbeat(busy, { executing, loopLagMs: 1_234 });
    expect(await readWorker(busy)).toMatchObject({ executing, loopLagMs: 1_234 });
    // A heartbeat that only checks the fence leaves the counts as they are.
    await fixture.store.heartbeat(busy);
    expect(await readWorker(busy)).toMatchObject({ executing, loopLagMs: 1_234 });
    expect(await readWorker(idle)).toMatchObject({ executing: [], loopLagMs: null });
    await fixture.store.heartbeat(busy, { executing: [], loopLagMs: 0 });
    expect(await readWorker(busy)).toMatchObject({ executing: [], loopLagMs: 0 });
    await fixture.store.heartbeat(busy, { executing, loopLagMs: 1_234 });
    await fixture.store.deregisterWorker(busy);
    expect(await readWorker(busy)).toMatchObject({ live: false, executing: [], loopLagMs: null });
    await fixture.store.heartbeat(busy, { executing, loopLagMs: 1_234 });
    expect(await readWorker(busy)).toMatchObject({ live: false, executing: [], loopLagMs: null });
    expect(await readWorker({ workerId: uniqueName("unknown"), epoch: 1 })).toBe(undefined);
  });

  test("a worker that registers again or is reaped executes nothing", async () => {
    const executing = [{ route: "a", version: "", count: 1 }];
    const worker = await fixture.registerWorker();
    await fixture.store.heartbeat(worker, { executing, loopLagMs: 5 });
    const again = await fixture.registerWorker({ id: worker.workerId, leaseMs: shortLeaseMs });
    expect(await readWorker(again)).toMatchObject({ executing: [], loopLagMs: null });
    await fixture.store.heartbeat(again, { executing, loopLagMs: 6 });
    await delay(afterLeaseMs);
    await fixture.store.heartbeat(await fixture.registerWorker());
    expect(await readWorker(again)).toMatchObject({ live: false, executing: [], loopLagMs: null });
  });

  test("the tasks of workers are counted", async () => {
    const [busy, idle, other] = [
      await fixture.registerWorker(),
      await fixture.registerWorker(),
      await fixture.registerWorker(),
    ];
    const runs = newRuns(6);
    await fixture.startAll(runs);
    await fixture.claim(busy, routesOf(...runs), { limit: 4 });
    await fixture.claim(other, routesOf(...runs), { limit: 1 });
    const { maintenance } = fixture.store;
    expect(await maintenance.ownedTaskCounts([busy.workerId, idle.workerId])).toEqual(new Map([[busy.workerId, 4]]));
    expect(await maintenance.ownedTaskCounts([])).toEqual(new Map());
  });
}
