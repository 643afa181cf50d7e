/** Claims: which due tasks a worker gets, in what order, and that no task goes to two workers. */
import type { Fence, NewRun, Store } from "../../store/contract/store.js";
import {
  batch,
  delay,
  event,
  finish,
  newId,
  newRun,
  newRuns,
  park,
  routesOf,
  transition,
  uniqueName,
} from "./builders.js";
import type { Fixture } from "./fixture.js";

export function claimTests(fixture: Fixture): void {
  const { test, expect } = fixture;

  test("a claimed task comes with its run and belongs to the worker", async () => {
    const worker = await fixture.registerWorker();
    const run = await fixture.start({ input: '{"x":1}', version: "v1", tags: ["t"], heroType: "User", heroId: "7" });
    const before = await fixture.run(run.id);
    const { at, tasks } = await fixture.claim(worker, routesOf(run));
    expect(tasks).toEqual([
      { run: { ...before, status: "running" }, route: run.workflow, deliveries: 1, pendingMessages: 0, isFresh: true },
    ]);
    expect(at).toBeGreaterThanOrEqual(before.createdAt);
    expect(await fixture.run(run.id)).toEqual({ ...before, status: "running" });
    expect(await fixture.task(run.id)).toMatchObject({
      state: "owned",
      owner: worker.workerId,
      epoch: worker.epoch,
      deliveries: 1,
    });
  });

  test("a claimed run knows its place among the children of its parent", async () => {
    const worker = await fixture.registerWorker();
    const child = { parentId: newId(), parentNode: "n", workflow: uniqueName("child") };
    const runs = [newRun({ ...child, parentIndex: 0 }), newRun({ ...child, parentAttempt: 2 }), newRun(child)];
    await fixture.commit(batch(null, [], runs));
    const { tasks } = await fixture.claim(worker, routesOf(...runs));
    const places = new Map(tasks.map(({ run }) => [run.id, [run.parentIndex, run.parentAttempt]]));
    expect(places).toEqual(
      new Map([
        [runs[0]?.id, [0, null]],
        [runs[1]?.id, [null, 2]],
        [runs[2]?.id, [null, null]],
      ]),
    );
  });

  test("a claimed task is not claimed again", async () => {
    const [first, second] = [await fixture.registerWorker(), await fixture.registerWorker()];
    const run = await fixture.start();
    await fixture.claimOne(first, routesOf(run));
    expect((await fixture.claim(first, routesOf(run))).tasks).toEqual([]);
    expect((await fixture.claim(second, routesOf(run))).tasks).toEqual([]);
  });

  test("only tasks of the given routes are claimed: workflow and version, exactly", async () => {
    const worker = await fixture.registerWorker();
    const workflow = uniqueName("routed");
    const plain = await fixture.start({ workflow });
    const second = await fixture.start({ workflow, version: "v2" });
    const upper = await fixture.start({ workflow: workflow.toUpperCase() });
    const claimed = async (...routes: { workflow: string; version: string }[]) =>
      (await fixture.claim(worker, routes)).tasks.map(({ run }) => run.id);
    expect(await claimed()).toEqual([]);
    expect(await claimed({ workflow, version: "v1" }, { workflow, version: "V2" })).toEqual([]);
    expect(await claimed({ workflow, version: "" })).toEqual([plain.id]);
    expect(await claimed({ workflow, version: "v2" }, { workflow: uniqueName("none"), version: "" })).toEqual([
      second.id,
    ]);
    expect(await claimed(...routesOf(upper))).toEqual([upper.id]);
  });

  test("many routes are served by one claim", async () => {
    const worker = await fixture.registerWorker();
    const runs = Array.from({ length: 30 }, () => newRun());
    await fixture.startAll(runs);
    const { tasks } = await fixture.claim(worker, routesOf(...runs), { limit: 100, limitPerRoute: 10 });
    expect(new Set(tasks.map(({ run }) => run.id))).toEqual(new Set(runs.map(({ id }) => id)));
  });

  test("no more than the limit is claimed, and none is lost", async () => {
    const worker = await fixture.registerWorker();
    const runs = [...newRuns(8), ...newRuns(8)];
    await fixture.startAll(runs);
    const sizes: number[] = [];
    const seen = new Set<string>();
    for (let round = 0; round < 4; round += 1) {
      const { tasks } = await fixture.claim(worker, routesOf(...runs), { limit: 6, limitPerRoute: 6 });
      sizes.push(tasks.length);
      for (const { run } of tasks) seen.add(run.id);
    }
    expect(sizes).toEqual([6, 6, 4, 0]);
    expect(seen.size).toBe(16);
  });

  test("no more than the limit per route is claimed, so a busy workflow does not starve another", async () => {
    const worker = await fixture.registerWorker();
    const busy = newRuns(50, { priority: 9 });
    const quiet = newRuns(2);
    await fixture.startAll([...busy, ...quiet]);
    const routes = routesOf(...busy, ...quiet);
    const { tasks } = await fixture.claim(worker, routes, { limit: 10, limitPerRoute: 5 });
    const workflows = tasks.map(({ run }) => run.workflow);
    expect(workflows.filter((workflow) => workflow === busy[0]?.workflow)).toHaveLength(5);
    expect(workflows.filter((workflow) => workflow === quiet[0]?.workflow)).toHaveLength(2);
  });

  test("tasks with a higher priority are claimed first, then those that were due earlier", async () => {
    const worker = await fixture.registerWorker();
    const workflow = uniqueName("ordered");
    const order: NewRun[] = [];
    for (const priority of [0, 5, -3, 5, 0, 9]) {
      order.push(await fixture.start({ workflow, priority }));
      await delay(3);
    }
    const expected = [5, 1, 3, 0, 4, 2].map((index) => order[index]?.id);
    const claimed: string[] = [];
    for (const _ of order) {
      const { tasks } = await fixture.claim(worker, [{ workflow, version: "" }], { limit: 1 });
      claimed.push(...tasks.map(({ run }) => run.id));
    }
    expect(claimed).toEqual(expected);
  });

  test("a task is claimed when its time has come, not before", async () => {
    const worker = await fixture.registerWorker();
    const run = newRun({ due: { kind: "in", ms: 300 } });
    const { at } = await fixture.commit(batch(null, [], [run]));
    const early = await fixture.claim(worker, routesOf(run));
    if (early.at < at + 300) expect(early.tasks).toEqual([]);
    await fixture.waitUntil("the task is claimed", async () => {
      const { tasks, at: claimedAt } = await fixture.claim(worker, routesOf(run));
      if (tasks.length > 0) expect(claimedAt).toBeGreaterThanOrEqual(at + 300);
      return tasks.length > 0;
    });
  });

  test("nextDueAt is when the first parked task of the routes becomes due", async () => {
    const worker = await fixture.registerWorker();
    const workflow = uniqueName("later");
    const now = await fixture.store.now();
    const routes = [
      { workflow, version: "" },
      { workflow: `${workflow}-2`, version: "" },
    ];
    expect(await fixture.claim(worker, routes)).toMatchObject({ tasks: [], nextDueAt: null });
    await fixture.start({ workflow, due: { kind: "at", ms: now + 900_000 } });
    await fixture.start({ workflow: `${workflow}-2`, due: { kind: "at", ms: now + 700_000 } });
    await fixture.start({ workflow, due: { kind: "at", ms: now + 800_000 } });
    await fixture.start({ workflow: `${workflow}-3`, due: { kind: "at", ms: now + 600_000 } });
    await fixture.start({ workflow, due: { kind: "held" } });
    expect(await fixture.claim(worker, routes)).toMatchObject({ tasks: [], nextDueAt: now + 700_000 });
    expect(await fixture.claim(worker, routes.slice(0, 1))).toMatchObject({ tasks: [], nextDueAt: now + 800_000 });
    const ready = await fixture.start({ workflow });
    expect(await fixture.claim(worker, routes)).toMatchObject({
      tasks: [{ run: { id: ready.id } }],
      nextDueAt: now + 700_000,
    });
    await fixture.startAll(newRuns(3, { workflow }));
    expect(await fixture.claim(worker, routes, { limit: 2 })).toMatchObject({ nextDueAt: null });
  });

  test("runs that sleep, are paused, are held or have ended are not claimed", async () => {
    const worker = await fixture.registerWorker();
    const workflow = uniqueName("still");
    const start = () => fixture.start({ workflow });
    const moves = [park("waiting", { wakeInMs: 3_600_000 }), park("paused"), park("waiting"), finish("canceled")];
    for (const next of moves) {
      const run = await start();
      await fixture.commitTransition(null, transition(run.id, { events: [event("still")], next }));
    }
    await fixture.start({ workflow, due: { kind: "held" } });
    expect((await fixture.claim(worker, [{ workflow, version: "" }])).tasks).toEqual([]);
  });

  test("deliveries count the claims since the owner last parked the run", async () => {
    const run = await fixture.start();
    const routes = routesOf(run);
    for (let delivery = 1; delivery <= 3; delivery += 1) {
      const leaving = await fixture.registerWorker();
      expect((await fixture.claimOne(leaving, routes)).deliveries).toBe(delivery);
      await fixture.store.deregisterWorker(leaving);
    }
    const worker = await fixture.registerWorker();
    expect((await fixture.claimOne(worker, routes)).deliveries).toBe(4);
    await fixture.commitTransition(
      worker,
      transition(run.id, { events: [event("w")], next: park("waiting", { wakeInMs: 0 }) }),
    );
    expect((await fixture.claimOne(worker, routes)).deliveries).toBe(1);
  });

  test("a run that has a log is never claimed as fresh", async () => {
    const worker = await fixture.registerWorker();
    const parked = await fixture.start();
    await fixture.commitTransition(
      null,
      transition(parked.id, { events: [event("w")], next: park("pending", { wakeInMs: 0 }) }),
    );
    expect((await fixture.claimOne(worker, routesOf(parked))).isFresh).toBe(false);

    const leaving = await fixture.registerWorker();
    const claimed = await fixture.start();
    expect((await fixture.claimOne(leaving, routesOf(claimed))).isFresh).toBe(true);
    const createdOwned = await fixture.startOwned(leaving);
    for (const { id } of [claimed, createdOwned])
      await fixture.commitTransition(leaving, transition(id, { events: [event("go")] }));
    await fixture.store.deregisterWorker(leaving);
    expect(await fixture.claimOne(worker, routesOf(claimed))).toMatchObject({ isFresh: false, deliveries: 2 });
    expect(await fixture.claimOne(worker, routesOf(createdOwned))).toMatchObject({ isFresh: false, deliveries: 2 });
  });

  test("a claim counts the messages in the run's inbox", async () => {
    const worker = await fixture.registerWorker();
    const run = await fixture.start();
    await fixture.store.send([1, 2, 3].map((data) => ({ to: run.id, kind: "signal", data: `${data}` })));
    expect(await fixture.claimOne(worker, routesOf(run))).toMatchObject({ pendingMessages: 3, isFresh: true });
  });

  test("a stale fence claims nothing", async () => {
    const info = { id: uniqueName("worker") };
    const stale = await fixture.registerWorker(info);
    const live = await fixture.registerWorker(info);
    const run = await fixture.start();
    const limits = { routes: routesOf(run), limit: 10, limitPerRoute: 10 };
    expect(await fixture.store.claim({ fence: stale, ...limits })).toEqual({ kind: "fenced" });
    const unknownWorker = { workerId: uniqueName("unknown"), epoch: 1 };
    expect(await fixture.store.claim({ fence: unknownWorker, ...limits })).toEqual({ kind: "fenced" });
    await fixture.store.deregisterWorker(live);
    expect(await fixture.store.claim({ fence: live, ...limits })).toEqual({ kind: "fenced" });
    expect(await fixture.task(run.id)).toMatchObject({ state: "ready", owner: null, deliveries: 0 });
  });

  test("due timers are claimed although ready tasks never run out", async () => {
    const worker = await fixture.registerWorker();
    const workflow = uniqueName("flood");
    const timer = await fixture.start({ workflow, due: { kind: "in", ms: 20 } });
    await delay(40);
    let isClaimed = false;
    for (let round = 0; round < 40 && !isClaimed; round += 1) {
      await fixture.startAll(newRuns(20, { workflow }));
      const { tasks } = await fixture.claim(worker, [{ workflow, version: "" }], { limit: 10 });
      expect(tasks).toHaveLength(10);
      isClaimed = tasks.some(({ run }) => run.id === timer.id);
    }
    expect(isClaimed).toBe(true);
  });

  test("ready tasks are claimed although due timers never run out", async () => {
    const worker = await fixture.registerWorker();
    const workflow = uniqueName("tick");
    const ready = await fixture.start({ workflow });
    let isClaimed = false;
    for (let round = 0; round < 40 && !isClaimed; round += 1) {
      const ms = (await fixture.store.now()) - 1;
      await fixture.startAll(newRuns(20, { workflow, due: { kind: "at", ms } }));
      const { tasks } = await fixture.claim(worker, [{ workflow, version: "" }], { limit: 10 });
      isClaimed = tasks.some(({ run }) => run.id === ready.id);
    }
    expect(isClaimed).toBe(true);
  });

  test("workers that claim at once never get the same task, and none is left", async () => {
    const stores: Store[] = [
      fixture.store,
      await fixture.openAnother(),
      await fixture.openAnother(),
      await fixture.openAnother(),
    ];
    const runs = [...newRuns(100), ...newRuns(50, { due: { kind: "at", ms: 1_000 } }), ...newRuns(50)];
    await fixture.startAll(runs);
    const routes = routesOf(...runs);
    const claimed: string[] = [];
    const claimLoops = stores
      .flatMap((store) => [store, store])
      .map(async (store) => {
        const worker: Fence = await fixture.registerWorker({}, store);
        let idle = 0;
        while (idle < 3 && claimed.length <= runs.length) {
          const { tasks } = await fixture.claim(worker, routes, { limit: 7, limitPerRoute: 5 }, store);
          idle = tasks.length === 0 ? idle + 1 : 0;
          claimed.push(...tasks.map(({ run }) => run.id));
          for (const { deliveries } of tasks) expect(deliveries).toBe(1);
          if (idle > 0) await delay(5);
        }
      });
    await Promise.all(claimLoops);
    expect(claimed).toHaveLength(200);
    expect(new Set(claimed)).toEqual(new Set(runs.map(({ id }) => id)));
  });
}
