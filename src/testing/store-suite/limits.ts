/** Limits: classes of waiting runs, admission, slots, and what gives slots back. */
import { laneIdOf } from "../../core/limits/lane.js";
import { baseRouteOf } from "../../core/naming/route.js";
import type { NewRun } from "../../store/contract/store.js";
import { batch, event, finish, newMessage, newRuns, park, transition, uniqueName } from "./builders.js";
import type { Fixture } from "./fixture.js";
import { createLimitFixture } from "./limit-fixture.js";

export function limitTests(fixture: Fixture): void {
  const { test, expect } = fixture;
  const { register, newLimit, newLane, classOf, sort, inOrderOfAge, startSorted, admit, idsOf, inUse, finishRuns } =
    createLimitFixture(fixture);

  test("due tasks of a route are read with their runs, and without owning them", async () => {
    const runs = newRuns(3);
    await fixture.startAll(runs);
    const sleeper = await fixture.start({ workflow: runs[0]?.workflow as string, due: { kind: "in", ms: 60_000 } });
    const routes = [{ workflow: sleeper.workflow, version: "" }];
    const unsorted = await fixture.store.limits.unsorted({ routes, limit: 10 });
    expect(unsorted.tasks.map(({ run }) => run.id).sort()).toEqual(runs.map(({ id }) => id).sort());
    expect(unsorted.tasks.map(({ route, run }) => [route, run.input])).toEqual(
      runs.map(() => [sleeper.workflow, "null"]),
    );
    expect(unsorted.nextDueAt).toBeGreaterThan(unsorted.at);
    expect(unsorted.hasOpenClasses).toBe(false);
    expect(await fixture.task(runs[0]?.id as string)).toMatchObject({ state: "ready", owner: null });
  });

  test("a run that was executed since it was read is not sorted by what was read", async () => {
    const worker = await fixture.registerWorker();
    const lane = await newLane(1, "a");
    const run = await fixture.start();
    const routes = [{ workflow: run.workflow, version: "" }];
    const read = async () => (await fixture.store.limits.unsorted({ routes, limit: 10 })).tasks[0]?.dueAt as number;
    const runClass = classOf(run, [lane]);
    const sortAsRead = (dueAt: number) =>
      fixture.store.limits.sort([{ runId: run.id, dueAt, runClass, hasBegun: false }]);
    const isSorted = async () => (await fixture.store.limits.waiting([runClass.id], 1)).get(runClass.id) === 1;
    const seen = await read();
    await fixture.claim(worker, routes);
    const wakeAt = seen + 1;
    await fixture.commitTransition(worker, transition(run.id, { next: park("waiting", { wakeAt }) }));
    await fixture.waitUntil("the run is due again", async () => (await read()) === wakeAt);
    await sortAsRead(seen);
    expect(await isSorted()).toBe(false);
    await sortAsRead(await read());
    expect(await isSorted()).toBe(true);
  });

  test("an admitted run belongs to the worker, and has its route back", async () => {
    const worker = await fixture.registerWorker();
    const lane = await newLane(1, "a");
    const runs = await startSorted(1, [lane], { input: '{"x":1}' });
    const run = runs[0] as NewRun;
    expect(baseRouteOf((await fixture.task(run.id))?.route as string)).toBe(run.workflow);
    expect((await fixture.claim(worker, [{ workflow: run.workflow, version: "" }])).tasks).toEqual([]);
    const before = await fixture.run(run.id);
    expect((await admit(worker, runs)).tasks).toEqual([
      {
        run: { ...before, status: "running" },
        route: run.workflow,
        deliveries: 1,
        pendingMessages: 0,
        isFresh: true,
        lanes: [lane],
        openLanes: [],
      },
    ]);
    expect(await fixture.task(run.id)).toMatchObject({
      route: run.workflow,
      state: "owned",
      owner: worker.workerId,
      epoch: worker.epoch,
    });
    expect(await fixture.store.limits.slots({ lane }, 10)).toMatchObject([
      { runId: run.id, lane, owner: worker.workerId, epoch: worker.epoch },
    ]);
  });

  test("a lane has as many holders as its limit says, and the next run begins when one gives its slot back", async () => {
    const worker = await fixture.registerWorker();
    const lane = await newLane(2);
    const runs = await startSorted(5, [lane]);
    const first = await admit(worker, runs);
    expect(idsOf(first.tasks)).toEqual(runs.slice(0, 2).map(({ id }) => id));
    expect(first.hasMore).toBe(false);
    expect((await admit(worker, runs)).tasks).toEqual([]);
    await finishRuns(worker, [runs[1]?.id as string]);
    expect(await inUse(lane)).toBe(1);
    expect(await fixture.store.limits.wake([{ lane, count: 1 }])).toBe(1);
    expect(idsOf((await admit(worker, runs)).tasks)).toEqual([runs[2]?.id]);
    expect(await inUse(lane)).toBe(2);
  });

  test("capacity follows from the holders, not from positions: a run that ends out of order frees its own slot", async () => {
    const worker = await fixture.registerWorker();
    const lane = await newLane(3);
    const runs = await startSorted(6, [lane]);
    expect((await admit(worker, runs)).tasks).toHaveLength(3);
    await finishRuns(worker, [runs[2]?.id as string, runs[1]?.id as string]);
    await fixture.store.limits.wake([{ lane, count: 2 }]);
    expect(idsOf((await admit(worker, runs)).tasks)).toEqual([runs[3]?.id, runs[4]?.id]);
    expect(await inUse(lane)).toBe(3);
  });

  test("parking gives the slot back in the same commit, unless messages keep the run with its owner", async () => {
    const worker = await fixture.registerWorker();
    const lane = await newLane(2);
    const runs = await startSorted(2, [lane]);
    const [first, second] = runs.map(({ id }) => id) as [string, string];
    await admit(worker, runs);
    await fixture.store.send([newMessage(second, "1")]);
    const { notParked } = await fixture.commit(
      batch(
        worker,
        [first, second].map((id) => transition(id, { next: park("waiting", { releasesSlots: true }) })),
      ),
    );
    expect(notParked).toEqual([second]);
    expect((await fixture.store.limits.slots({ lane }, 10)).map(({ runId }) => runId)).toEqual([second]);
  });

  test("counters cannot leak when a process dies: the slots of a reaped worker are free with its runs", async () => {
    const dying = await fixture.registerWorker();
    const lane = await newLane(2);
    const runs = await startSorted(3, [lane]);
    await admit(dying, runs);
    const other = await fixture.registerWorker();
    expect((await admit(other, runs)).tasks).toEqual([]);
    await fixture.store.deregisterWorker(dying);
    expect(await inUse(lane)).toBe(0);
    const { workflow } = runs[0] as NewRun;
    expect(await fixture.store.limits.sweep()).toBeGreaterThan(0);
    const { tasks } = await fixture.store.limits.unsorted({ routes: [{ workflow, version: "" }], limit: 10 });
    expect(tasks.map(({ run }) => run.id).sort()).toEqual(
      runs
        .slice(0, 2)
        .map(({ id }) => id)
        .sort(),
    );
    expect(idsOf((await admit(other, runs)).tasks)).toEqual([runs[2]?.id]);
  });

  test("runs that wait in the classes of a route get it back when its workflow has no limits any more", async () => {
    const worker = await fixture.registerWorker();
    const lane = await newLane(1);
    const workflow = uniqueName("former");
    const runs = await startSorted(3, [lane], { workflow });
    const [resumed] = inOrderOfAge(newRuns(1, { workflow })) as [NewRun];
    await fixture.startAll([resumed]);
    await sort([resumed], (run) => classOf(run, [lane], "other"), { hasBegun: true });
    const [of] = await startSorted(1, [await newLane(1)]);
    const [holder] = idsOf((await admit(worker, runs)).tasks);
    const routes = [{ workflow, version: "" }];
    for (let calls = 0; (await fixture.store.limits.unsort(routes)) > 0; calls += 1) expect(calls).toBeLessThan(10);
    const claimed = (await fixture.claim(worker, routes)).tasks.map(({ run }) => run.id);
    expect(claimed).toEqual([...runs, resumed].map(({ id }) => id).filter((id) => id !== holder));
    const left = await fixture.store.limits.classes({ afterId: null }, 100_000);
    expect(left.filter(({ route }) => route === workflow)).toEqual([]);
    expect(idsOf((await admit(worker, [of as NewRun])).tasks)).toEqual([of?.id]);
  });

  test("a worker that registers again has given back the slots of its earlier epoch", async () => {
    const worker = await fixture.registerWorker({ id: uniqueName("again") });
    const lane = await newLane(1);
    await admit(worker, await startSorted(1, [lane]));
    await fixture.registerWorker({ id: worker.workerId });
    expect(await inUse(lane)).toBe(0);
  });

  test("an admission under a fence that is dead takes nothing", async () => {
    const worker = await fixture.registerWorker();
    const lane = await newLane(1);
    const [run] = await startSorted(1, [lane]);
    await fixture.store.deregisterWorker(worker);
    const routes = [{ workflow: run?.workflow as string, version: "" }];
    expect(await fixture.store.limits.admit({ fence: worker, routes, limit: 1 })).toEqual({ kind: "fenced" });
    expect(await inUse(lane)).toBe(0);
  });

  test("several limits are taken together or not at all, never one after another", async () => {
    const worker = await fixture.registerWorker();
    const [narrow, wide] = [await newLane(1, "k"), await newLane(5)];
    const holders = await startSorted(1, [narrow]);
    await admit(worker, holders);
    const both = await startSorted(2, [wide, narrow]);
    expect((await admit(worker, both)).tasks).toEqual([]);
    expect(await inUse(wide)).toBe(0);
    await finishRuns(worker, [holders[0]?.id as string]);
    await fixture.store.limits.wake([{ lane: narrow, count: 1 }]);
    expect(idsOf((await admit(worker, both)).tasks)).toEqual([both[0]?.id]);
    expect([await inUse(wide), await inUse(narrow)]).toEqual([1, 1]);
  });

  test("a run without lanes is only subject to the order of turns", async () => {
    const worker = await fixture.registerWorker();
    const workflow = uniqueName("fair");
    const big = await startSorted(6, [], { workflow }, "big");
    const small = await startSorted(2, [], { workflow }, "small");
    const { tasks } = await admit(worker, big, 4);
    expect(idsOf(tasks)).toEqual([big[0], small[0], big[1], small[1]].map((run) => run?.id));
  });

  test("within a class the priority comes first, then runs that resume, then age", async () => {
    const worker = await fixture.registerWorker();
    const lane = await newLane(10);
    const workflow = uniqueName("order");
    const old = await startSorted(1, [lane], { workflow });
    const begun = inOrderOfAge(newRuns(1, { workflow }));
    await fixture.startAll(begun);
    await sort(begun, (run) => classOf(run, [lane]), { hasBegun: true });
    const important = await startSorted(1, [lane], { workflow, priority: 1 });
    const expected = [...important, ...begun, ...old].map(({ id }) => id);
    expect(idsOf((await admit(worker, old)).tasks)).toEqual(expected);
    for (const { dueAt } of await fixture.tasks(...begun)) expect(dueAt).toBeGreaterThan(0);
  });

  test("between lanes: with k busy classes at most k - 1 admissions lie between two of one, however long its backlog", async () => {
    const worker = await fixture.registerWorker();
    const limit = await newLimit(1);
    const shared = await newLane(4);
    const workflow = uniqueName("tenants");
    const big = await startSorted(60, [shared], { workflow }, "big");
    const others: NewRun[] = [];
    for (let tenant = 0; tenant < 5; tenant += 1)
      others.push(...(await startSorted(4, [shared], { workflow }, `tenant ${tenant}`)));
    const tenantOf = new Map(others.map(({ id }, index) => [id, `tenant ${Math.floor(index / 4)}`]));
    const order: string[] = [];
    for (let round = 0; order.length < 24; round += 1) {
      const { tasks } = await admit(worker, big, 1 + (round % 3));
      const ids = idsOf(tasks);
      order.push(...ids.map((id) => tenantOf.get(id) ?? "big"));
      if (round % 2 === 0 || ids.length === 0) {
        const held = await fixture.store.limits.slots({ lane: shared }, 10);
        await finishRuns(
          worker,
          held.map(({ runId }) => runId),
        );
        await fixture.store.limits.wake([{ lane: shared, count: held.length }]);
      }
    }
    const classCount = 6;
    for (let from = 0; from + classCount <= 24; from += 1)
      expect(new Set(order.slice(from, from + classCount)).size, order.join(" ")).toBe(classCount);
    expect(limit).not.toBe("");
  });

  test("a client that pauses a waiting run takes it out of its class", async () => {
    const worker = await fixture.registerWorker();
    const lane = await newLane(1);
    const runs = await startSorted(2, [lane]);
    const [first, second] = runs as [NewRun, NewRun];
    await fixture.commitTransition(null, transition(first.id, { events: [event("paused")], next: park("paused") }));
    expect(await fixture.task(first.id)).toMatchObject({ route: first.workflow, state: "parked" });
    expect(idsOf((await admit(worker, runs)).tasks)).toEqual([second.id]);
    const wakeAt = await fixture.store.now();
    const resume = transition(first.id, { afterSeq: 1, events: [event("resumed")], next: park("waiting", { wakeAt }) });
    await fixture.commitTransition(null, resume);
    const routes = [{ workflow: first.workflow, version: "" }];
    const { tasks } = await fixture.store.limits.unsorted({ routes, limit: 10 });
    expect(tasks.map(({ run }) => run.id)).toEqual([first.id]);
  });

  test("a client that cancels the only waiting run of a class does not keep the lane from the next class", async () => {
    const worker = await fixture.registerWorker();
    const lane = await newLane(1);
    const workflow = uniqueName("canceled");
    const holder = await startSorted(1, [lane], { workflow }, "holder");
    await admit(worker, holder);
    const canceled = await startSorted(1, [lane], { workflow }, "canceled");
    const next = await startSorted(1, [lane], { workflow }, "next");
    expect((await admit(worker, holder)).tasks).toEqual([]);
    await fixture.commitTransition(null, transition(canceled[0]?.id as string, { next: finish("canceled") }));
    await finishRuns(worker, [holder[0]?.id as string]);
    await fixture.store.limits.wake([{ lane, count: 1 }]);
    const admitted = [...(await admit(worker, holder)).tasks, ...(await admit(worker, holder)).tasks];
    expect(idsOf(admitted)).toEqual([next[0]?.id]);
  });

  test("tasks that were sorted, claimed or put to sleep meanwhile are left alone", async () => {
    const worker = await fixture.registerWorker();
    const lane = await newLane(5);
    const workflow = uniqueName("raced");
    const [sorted] = await startSorted(1, [lane], { workflow });
    const owned = await fixture.startOwned(worker, { workflow });
    const asleep = await fixture.start({ workflow, due: { kind: "in", ms: 60_000 } });
    const runs = [sorted as NewRun, owned, asleep];
    await sort(runs, (run) => classOf(run, [lane], "other"));
    expect(idsOf((await admit(worker, runs)).tasks)).toEqual([sorted?.id]);
    expect(await fixture.task(owned.id)).toMatchObject({ route: workflow, state: "owned" });
    expect(await fixture.task(asleep.id)).toMatchObject({ route: workflow, state: "parked" });
  });

  test("a lowered limit takes no slot away, and admits when enough were given back", async () => {
    const worker = await fixture.registerWorker();
    const name = await newLimit(3);
    const lane = laneIdOf(name, "");
    const runs = await startSorted(5, [lane]);
    await admit(worker, runs);
    await register(name, { concurrency: 1 });
    await finishRuns(worker, [runs[0]?.id as string]);
    await fixture.store.limits.wake([{ lane, count: 1 }]);
    expect((await admit(worker, runs)).tasks).toEqual([]);
    await finishRuns(worker, [runs[1]?.id as string, runs[2]?.id as string]);
    await fixture.store.limits.wake([{ lane, count: 2 }]);
    expect(idsOf((await admit(worker, runs)).tasks)).toEqual([runs[3]?.id]);
    await register(name, { concurrency: null });
    expect(await fixture.store.limits.sweep()).toBeGreaterThan(0);
    expect(idsOf((await admit(worker, runs)).tasks)).toEqual([runs[4]?.id]);
  });

  test("a limit that nothing has registered admits nothing", async () => {
    const worker = await fixture.registerWorker();
    expect((await admit(worker, await startSorted(1, [laneIdOf(uniqueName("unknown"), "")]))).tasks).toEqual([]);
  });

  test("limits, lanes, slots, classes and numbers of waiting runs can be read", async () => {
    const worker = await fixture.registerWorker();
    const name = await newLimit(1);
    const [a, b] = [laneIdOf(name, "a"), laneIdOf(name, "b")];
    const workflow = uniqueName("read");
    const ofA = await startSorted(3, [a], { workflow });
    await startSorted(1, [b], { workflow });
    await admit(worker, ofA);
    const { limits } = fixture.store;
    expect((await limits.list()).find((limit) => limit.name === name)).toMatchObject({ name, concurrency: 1 });
    expect(await limits.lanes(name, { after: null, limit: 10 })).toEqual([
      { id: a, inUse: 1, waitingSteps: 0, opensAt: null },
      { id: b, inUse: 1, waitingSteps: 0, opensAt: null },
    ]);
    expect((await limits.lanes(name, { after: a, limit: 10 })).map(({ id }) => id)).toEqual([b]);
    const { id } = classOf(ofA[0] as NewRun, [a]);
    expect(await limits.classes({ ids: [id] }, 10)).toMatchObject([{ id, route: workflow, lanes: [a], blockedOn: a }]);
    expect(await limits.waiting([id], 10)).toEqual(new Map([[id, 2]]));
    expect(await limits.waiting([id], 1)).toEqual(new Map([[id, 1]]));
    expect((await limits.slots({ runIds: [ofA[0]?.id as string] }, 10)).map((slot) => slot.lane)).toEqual([a]);
  });

  test("what uses a limit, what holds its slots and what waits in which order can be read, bounded", async () => {
    const worker = await fixture.registerWorker();
    const { limits } = fixture.store;
    const [name, other] = [await newLimit(2), await newLimit(1)];
    const [a, b] = [laneIdOf(name, "a"), laneIdOf(name, "b")];
    const workflow = uniqueName("usage");
    const ofA = await startSorted(5, [a], { workflow });
    const ofB = await startSorted(1, [b], { workflow });
    const urgent = await startSorted(1, [a], { workflow, priority: 5 });
    const held = idsOf((await admit(worker, ofA)).tasks);
    expect(held).toHaveLength(3);
    expect(await limits.usage([other, name], 100)).toEqual([
      { name: other, inUse: 0, waitingSteps: 0, isCapped: false },
      { name, inUse: 3, waitingSteps: 0, isCapped: false },
    ]);
    expect(await limits.usage([name], 2)).toEqual([{ name, inUse: 2, waitingSteps: 0, isCapped: true }]);
    expect(await limits.usage([], 2)).toEqual([]);
    expect(await limits.lanes(name, { after: null, limit: 10, id: b })).toMatchObject([{ id: b, inUse: 1 }]);
    expect(await limits.lanes(name, { after: null, limit: 10, id: laneIdOf(name, "c") })).toEqual([]);

    const holders = await limits.holders([b, a, laneIdOf(name, "c")], 1);
    expect(holders.map(({ lane, isWaiting }) => [lane, isWaiting]).sort()).toEqual([
      [a, false],
      [b, false],
    ]);
    expect((await limits.holders([a], 10)).map(({ runId }) => runId).sort()).toEqual(
      held.filter((id) => id !== ofB[0]?.id).sort(),
    );

    const runClass = classOf(ofA[0] as NewRun, [a]);
    const blocked = await limits.blockedClasses({ lanes: [a, b] }, 10);
    expect(blocked).toMatchObject([{ id: runClass.id, blockedOn: a }]);
    expect(await limits.blockedClasses({ limits: [other, name] }, 10)).toEqual(blocked);
    expect(await limits.blockedClasses({ lanes: [a] }, 0)).toEqual([]);
    const isOurs = ({ route }: { readonly route: string }) => route === workflow;
    expect((await limits.blockedClasses({ nothing: true }, 1_000)).filter(isOurs)).toEqual([]);
    // The urgent run was admitted first, and one of the others after it.
    expect(held).toContain(urgent[0]?.id);
    expect(await limits.heads(runClass, 10)).toEqual(ofA.slice(1).map(({ id }) => id));
    expect(await limits.heads(runClass, 2)).toEqual(ofA.slice(1, 3).map(({ id }) => id));
    await limits.wake([{ lane: a, count: 1 }]);
    expect((await limits.blockedClasses({ nothing: true }, 1_000)).filter(isOurs)).toMatchObject([{ id: runClass.id }]);
  });
}
