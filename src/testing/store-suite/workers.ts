/** Workers: epochs, leases, and what becomes of the tasks of one that is gone. Leases run on real time. */
import { systemRuntime } from "../../runtime/system.js";
import type { Fence, Store, WorkerRecord } from "../../store/contract/store.js";
import {
  batch,
  delay,
  event,
  letter,
  newRuns,
  park,
  routesOf,
  transition,
  types,
  unique,
  workerInfo,
} from "./builders.js";
import type { Fixture } from "./fixture.js";

const shortLeaseMs = 60;
const pastLeaseMs = 200;

export function workerTests(fixture: Fixture): void {
  const { test, expect } = fixture;

  async function record(fence: Fence, store: Store = fixture.store): Promise<WorkerRecord | undefined> {
    return (await store.workers()).find(({ id }) => id === fence.workerId);
  }

  test("a worker is read as it enlisted", async () => {
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
    const fence = await fixture.store.enlist(info);
    expect(fence.workerId).toBe(info.id);
    const found = await record(fence);
    expect(found).toMatchObject({ ...info, epoch: fence.epoch, live: true, owned: 0 });
    expect(Math.abs((found?.startedAt ?? 0) - systemRuntime.now())).toBeLessThan(600_000);
    expect(found?.beatAt).toBe(found?.startedAt);
  });

  test("each enlisting has a higher epoch, whatever became of the one before", async () => {
    const info = workerInfo({ name: "old" });
    const first = await fixture.store.enlist(info);
    const second = await fixture.store.enlist({ ...info, name: "new" });
    await fixture.store.retire(second);
    const third = await fixture.store.enlist({ ...info, name: "newest", port: 8080, leaseMs: 999 });
    expect(second.epoch).toBeGreaterThan(first.epoch);
    expect(third.epoch).toBeGreaterThan(second.epoch);
    const found = (await fixture.store.workers()).filter(({ id }) => id === info.id);
    expect(found).toMatchObject([{ name: "newest", port: 8080, leaseMs: 999, live: true, epoch: third.epoch }]);
  });

  test("enlistings of one id at once get different epochs, and one of them is live", async () => {
    const other = await fixture.another();
    const info = workerInfo();
    const fences = await Promise.all(
      Array.from({ length: 10 }, (_, index) => (index % 2 === 0 ? fixture.store : other).enlist(info)),
    );
    expect(new Set(fences.map(({ epoch }) => epoch)).size).toBe(10);
    const alive = await Promise.all(fences.map((fence) => fixture.store.beat(fence)));
    expect(alive.filter((beat) => beat.alive)).toHaveLength(1);
    const highest = Math.max(...fences.map(({ epoch }) => epoch));
    expect((await record(fences[0] as Fence))?.epoch).toBe(highest);
  });

  test("what a worker owned before it enlisted anew is ready again", async () => {
    const info = workerInfo();
    const first = await fixture.store.enlist(info);
    const run = await fixture.owned(first);
    const bystander = await fixture.worker();
    const theirs = await fixture.owned(bystander);
    const second = await fixture.store.enlist(info);
    expect(await fixture.task(run.id)).toMatchObject({ state: "ready", owner: null, epoch: null, deliveries: 1 });
    expect(await fixture.task(theirs.id)).toMatchObject({ state: "owned", owner: bystander.workerId });
    expect(await fixture.claimOne(second, routesOf(run))).toMatchObject({ deliveries: 2 });
  });

  test("a beat renews the lease and tells of nothing when there is nothing", async () => {
    const fence = await fixture.worker();
    const before = await record(fence);
    await delay(20);
    const beat = await fixture.store.beat(fence);
    expect(beat).toMatchObject({ alive: true, mail: [] });
    const after = await record(fence);
    expect(after?.beatAt).toBeGreaterThan(before?.beatAt ?? 0);
    expect(after).toEqual({ ...before, beatAt: after?.beatAt });
  });

  test("a beat names the own runs that have undrained mail", async () => {
    const [mine, theirs] = [await fixture.worker(), await fixture.worker()];
    const runs = newRuns(4, { due: { kind: "owned" } });
    await fixture.startAll(runs, mine);
    const foreign = await fixture.owned(theirs);
    const ready = await fixture.start();
    const mailed = [runs[0], runs[2]].map((run) => run?.id as string);
    await fixture.store.send([...mailed, mailed[0] as string, foreign.id, ready.id].map((to) => letter(to, "x")));
    const beat = await fixture.store.beat(mine);
    expect([...beat.mail].sort()).toEqual([...mailed].sort());
    const drained = (await fixture.inbox(mailed[1] as string)).map(({ id }) => id);
    await fixture.move(mine, transition(mailed[1] as string, { events: [event("got")], drained }));
    expect((await fixture.store.beat(mine)).mail).toEqual([mailed[0]]);
    expect((await fixture.store.beat(theirs)).mail).toEqual([foreign.id]);
  });

  test("a silent worker is reaped: its tasks are ready again, what it has written stays", async () => {
    const silent = await fixture.worker({ leaseMs: shortLeaseMs });
    const runs = newRuns(3, { due: { kind: "owned" } });
    await fixture.startAll(runs, silent);
    const [first] = runs.map(({ id }) => id) as [string];
    await fixture.move(silent, transition(first, { events: [event("done")] }));
    await delay(pastLeaseMs);
    const other = await fixture.another();
    const reaper = await fixture.worker({}, other);
    expect((await other.beat(reaper)).reaped).toContain(silent.workerId);
    expect(await record(silent)).toMatchObject({ live: false, owned: 0, epoch: silent.epoch });
    for (const task of await fixture.tasks(...runs)) {
      expect(task).toMatchObject({ state: "ready", owner: null, epoch: null, deliveries: 1 });
      expect(task.dueAt).not.toBeNull();
    }
    expect(await fixture.run(first)).toMatchObject({ status: "pending" });
    const { tasks } = await fixture.claim(reaper, routesOf(...runs), {}, other);
    expect(tasks.map(({ deliveries }) => deliveries)).toEqual([2, 2, 2]);
    expect(types(await fixture.log(first))).toEqual(["done"]);
    expect((await other.beat(reaper)).reaped).not.toContain(silent.workerId);
  });

  test("a run that was reaped while its owner slept keeps the status it had parked with", async () => {
    const silent = await fixture.worker({ leaseMs: shortLeaseMs });
    const run = await fixture.start();
    const next = park("waiting", { waiting: "w", wakeIn: 0 });
    await fixture.move(null, transition(run.id, { events: [event("wait")], next }));
    await fixture.claimOne(silent, routesOf(run));
    expect(await fixture.run(run.id)).toMatchObject({ status: "running", waiting: "w" });
    await delay(pastLeaseMs);
    await fixture.store.beat(await fixture.worker());
    expect(await fixture.run(run.id)).toMatchObject({ status: "waiting", waiting: "w" });
  });

  test("the fence of a reaped worker is refused everywhere", async () => {
    const info = workerInfo({ leaseMs: shortLeaseMs });
    const stale = await fixture.store.enlist(info);
    const run = await fixture.owned(stale);
    await delay(pastLeaseMs);
    const reaper = await fixture.worker();
    await fixture.store.beat(reaper);
    await fixture.claimOne(reaper, routesOf(run));
    const { store } = fixture;
    const write = batch(stale, [transition(run.id, { events: [event("late")] })]);
    for (let round = 0; round < 2; round += 1) {
      expect(await store.commit(write)).toEqual({ kind: "fenced" });
      expect(await store.claim({ fence: stale, routes: [], limit: 1, limitPerRoute: 1 })).toEqual({ kind: "fenced" });
      expect(await store.beat(stale)).toEqual({ alive: false, mail: [], reaped: [], pausedQueues: [] });
      await store.retire(stale);
      if (round === 0) await store.enlist({ ...info, leaseMs: 60_000 });
    }
    expect(await record(stale)).toMatchObject({ live: true });
    expect(await fixture.log(run.id)).toEqual([]);
    expect(await fixture.task(run.id)).toMatchObject({ state: "owned", owner: reaper.workerId });
  });

  test("a dead worker's beat reaps nobody", async () => {
    const dead = await fixture.worker();
    await fixture.store.retire(dead);
    const silent = await fixture.worker({ leaseMs: shortLeaseMs });
    await delay(pastLeaseMs);
    expect(await fixture.store.beat(dead)).toEqual({ alive: false, mail: [], reaped: [], pausedQueues: [] });
    expect(await record(silent)).toMatchObject({ live: true });
  });

  test("a worker that was late but not reaped goes on", async () => {
    const late = await fixture.worker({ leaseMs: shortLeaseMs });
    const run = await fixture.owned(late);
    await delay(pastLeaseMs);
    const beat = await fixture.store.beat(late);
    expect(beat.alive).toBe(true);
    expect(beat.reaped).not.toContain(late.workerId);
    await fixture.move(late, transition(run.id, { events: [event("go")] }));
  });

  test("a lease is counted from the last beat", async () => {
    const worker = await fixture.worker({ leaseMs: 2_000 });
    const other = await fixture.worker();
    await delay(1_200);
    expect(await fixture.store.beat(worker)).toMatchObject({ alive: true });
    await delay(1_200);
    const beat = await fixture.store.beat(other);
    expect(beat.alive).toBe(true);
    expect(beat.reaped).not.toContain(worker.workerId);
    expect(await record(worker)).toMatchObject({ live: true });
  });

  test("a worker that is silent within its lease is left alone", async () => {
    const [quiet, other] = [await fixture.worker(), await fixture.worker()];
    const run = await fixture.owned(quiet);
    await delay(pastLeaseMs);
    expect((await fixture.store.beat(other)).reaped).not.toContain(quiet.workerId);
    expect(await fixture.task(run.id)).toMatchObject({ state: "owned", owner: quiet.workerId });
    await fixture.move(quiet, transition(run.id, { events: [event("go")] }));
  });

  test("each silent worker is reaped by one of those that beat at once", async () => {
    const other = await fixture.another();
    const silent = await Promise.all(Array.from({ length: 5 }, () => fixture.worker({ leaseMs: shortLeaseMs })));
    const runs = newRuns(5);
    await fixture.startAll(runs);
    for (const fence of silent) await fixture.claim(fence, routesOf(...runs), { limit: 1 });
    await delay(pastLeaseMs);
    const reapers = await Promise.all(
      Array.from({ length: 8 }, async (_, index) => {
        const store = index % 2 === 0 ? fixture.store : other;
        return { store, fence: await fixture.worker({}, store) };
      }),
    );
    const beats = await Promise.all(reapers.map(({ store, fence }) => store.beat(fence)));
    const reaped = beats.flatMap((beat) => beat.reaped);
    for (const { workerId } of silent) expect(reaped.filter((id) => id === workerId)).toHaveLength(1);
    for (const task of await fixture.tasks(...runs)) expect(task).toMatchObject({ state: "ready", deliveries: 1 });
  });

  test("a worker that retires leaves its tasks ready", async () => {
    const worker = await fixture.worker();
    const run = await fixture.owned(worker);
    const parked = await fixture.owned(worker);
    await fixture.move(worker, transition(parked.id, { events: [event("w")], next: park("paused") }));
    await fixture.store.retire(worker);
    expect(await record(worker)).toMatchObject({ live: false, owned: 0 });
    expect(await fixture.task(run.id)).toMatchObject({ state: "ready", owner: null, epoch: null, deliveries: 1 });
    expect(await fixture.task(parked.id)).toMatchObject({ state: "parked", dueAt: null });
    expect(await fixture.store.beat(worker)).toMatchObject({ alive: false });
    await fixture.store.retire(worker);
  });

  test("a retired worker is not reaped again", async () => {
    const gone = await fixture.worker({ leaseMs: shortLeaseMs });
    await fixture.store.retire(gone);
    await delay(pastLeaseMs);
    expect((await fixture.store.beat(await fixture.worker())).reaped).not.toContain(gone.workerId);
  });

  test("workers are listed with how much they own", async () => {
    const [busy, idle] = [await fixture.worker(), await fixture.worker()];
    const runs = newRuns(6);
    await fixture.startAll(runs);
    await fixture.claim(busy, routesOf(...runs), { limit: 4 });
    expect(await record(busy)).toMatchObject({ owned: 4 });
    expect(await record(idle)).toMatchObject({ owned: 0 });
    expect(await record({ workerId: unique("nobody"), epoch: 1 })).toBe(undefined);
  });
}
