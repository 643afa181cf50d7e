/** Routes and priorities: a park may change the route and the priority of a task; the row of its run stays as created. */
import type { Fence, NewRun, NextTaskState, Route, Transition } from "../../store/contract/store.js";
import { batch, event, newMessage, newRun, newRuns, park, routesOf, transition, uniqueName } from "./builders.js";
import type { Fixture } from "./fixture.js";

type RouteAndPriority = Pick<Extract<NextTaskState, { kind: "park" }>, "route" | "priority">;

const parkReady = (place: RouteAndPriority) => park("waiting", { wakeInMs: 0, ...place });
const routeTo = (workflow: string, version = ""): Route[] => [{ workflow, version }];

/** All priorities are different, so there is only one correct order. */
const sortByPriority = (priorities: readonly number[], runs: readonly NewRun[]): NewRun[] =>
  runs
    .map((run, index) => ({ run, priority: priorities[index] as number }))
    .sort((a, b) => b.priority - a.priority)
    .map(({ run }) => run);

export function routingTests(fixture: Fixture): void {
  const { test, expect } = fixture;

  /** Claims one task after the other on these routes until none is left. */
  async function claimAllInOrder(worker: Fence, routes: readonly Route[]): Promise<string[]> {
    const ids: string[] = [];
    for (;;) {
      const { tasks } = await fixture.claim(worker, routes, { limit: 1 });
      if (tasks.length === 0) return ids;
      ids.push(...tasks.map(({ run }) => run.id));
    }
  }

  for (const parkedBy of ["its owner", "a client"] as const) {
    const startRun = async (overrides: Partial<NewRun> = {}) => {
      const owner = await fixture.registerWorker();
      if (parkedBy === "a client") return { fence: null, run: await fixture.start(overrides) };
      return { fence: owner, run: await fixture.startOwned(owner, overrides) };
    };

    test(`a run that ${parkedBy} parks on a route is claimed on that route, and is still a run of its workflow`, async () => {
      const worker = await fixture.registerWorker();
      const { fence, run } = await startRun({ priority: 3, version: "v2", startKey: uniqueName("key"), tags: ["t"] });
      const created = await fixture.run(run.id);
      const route = uniqueName("route");
      await fixture.commitTransition(
        fence,
        transition(run.id, { events: [event("w")], next: parkReady({ route, priority: 8 }) }),
      );
      expect(await fixture.run(run.id)).toEqual({ ...created, status: "waiting" });
      expect(await claimAllInOrder(worker, [...routesOf(run), ...routeTo(run.workflow), ...routeTo(route)])).toEqual(
        [],
      );
      expect(await fixture.claimOne(worker, routeTo(route, "v2"))).toMatchObject({
        run: { ...created, status: "running" },
      });
      const again = newRun({ workflow: run.workflow, startKey: run.startKey });
      expect(await fixture.commit(batch(null, [], [again]))).toMatchObject({ refused: [{ existing: { id: run.id } }] });
      expect(await fixture.store.runs({ workflow: run.workflow, limit: 10 })).toMatchObject([{ id: run.id }]);
      expect(await fixture.store.runs({ workflow: route, limit: 10 })).toEqual([]);
    });

    test(`a park by ${parkedBy} that names no route or priority keeps those of the park before`, async () => {
      const worker = await fixture.registerWorker();
      const { fence, run } = await startRun({ priority: 1 });
      const route = uniqueName("route");
      const rival = await fixture.start({ workflow: route, priority: 5 });
      const places: RouteAndPriority[] = [{ route, priority: 9 }, {}, { priority: 4 }, { route }, {}];
      const isFirst: boolean[] = [];
      let owner = fence;
      for (const [afterSeq, place] of places.entries()) {
        await fixture.commitTransition(
          owner,
          transition(run.id, { afterSeq, events: [event("w")], next: parkReady(place) }),
        );
        expect((await fixture.claim(worker, routesOf(run))).tasks).toEqual([]);
        const order = await claimAllInOrder(worker, routeTo(route));
        expect([...order].sort()).toEqual([run.id, rival.id].sort());
        isFirst.push(order[0] === run.id);
        const back = transition(rival.id, { afterSeq, events: [event("w")], next: parkReady({}) });
        await fixture.commitTransition(worker, back);
        owner = worker;
      }
      expect(isFirst).toEqual([true, true, false, false, false]);
    });
  }

  test("one batch parks each run on its own route, whatever characters it has, or leaves its route", async () => {
    const worker = await fixture.registerWorker();
    const stem = uniqueName("r");
    const odd = ["\t", "\tb", "\tB", " ", "'\"\\", "{,}", "NULL", "🙂", "?", "é".repeat(120)].map((end) => stem + end);
    const longest = stem.padEnd(255, "x");
    const routes = [...odd, longest, `${longest.slice(0, -1)}y`];
    const moved = await fixture.startOwnedRuns(routes.length, worker);
    const untouched = await fixture.start({ priority: 1 });
    const { workflow } = untouched;
    const left = await fixture.startOwned(worker, { workflow, priority: 2 });
    const raised = await fixture.startOwned(worker, { workflow });
    const parks = moved.map(({ id }, index) => [id, { route: routes[index] as string }] as const);
    const all: (readonly [id: string, place: RouteAndPriority])[] = [
      ...parks,
      [left.id, {}],
      [raised.id, { priority: 3 }],
    ];
    const transaction = await fixture.store.beginTransaction();
    const transitions = all.map(([id, place]) => transition(id, { events: [event("w")], next: parkReady(place) }));
    expect(await transaction.commit(batch(worker, transitions))).toMatchObject({ kind: "committed", notParked: [] });
    for (const [index, route] of routes.entries()) {
      const { run } = await fixture.claimOne(worker, routeTo(route));
      expect(run).toMatchObject({ id: moved[index]?.id, workflow: moved[index]?.workflow });
    }
    expect(await claimAllInOrder(worker, routesOf(left))).toEqual([raised.id, left.id, untouched.id]);
  });

  test("a run that is kept because of messages does not change its route; after draining them it does", async () => {
    const owner = await fixture.registerWorker();
    const run = await fixture.startOwned(owner);
    const rival = await fixture.start({ workflow: run.workflow, priority: 1 });
    const next = parkReady({ route: uniqueName("route"), priority: 2 });
    await fixture.store.send([newMessage(run.id, "x")]);
    const refused = await fixture.commitTransition(owner, transition(run.id, { events: [event("w")], next }));
    expect(refused.notParked).toEqual([run.id]);
    await fixture.store.deregisterWorker(owner);
    const worker = await fixture.registerWorker();
    expect((await fixture.claim(worker, routeTo(next.route as string))).tasks).toEqual([]);
    expect(await claimAllInOrder(worker, routesOf(run))).toEqual([rival.id, run.id]);

    const drainedInboxIds = (await fixture.inbox(run.id)).map(({ id }) => id);
    const done = await fixture.commitTransition(
      worker,
      transition(run.id, { afterSeq: 1, events: [event("w")], drainedInboxIds, next }),
    );
    expect(done.notParked).toEqual([]);
    expect((await fixture.claim(worker, routesOf(run))).tasks).toEqual([]);
    expect(await fixture.claimOne(worker, routeTo(next.route as string))).toMatchObject({ run: { id: run.id } });
  });

  test("a refused batch changes no route", async () => {
    const worker = await fixture.registerWorker();
    const run = await fixture.start();
    const next = parkReady({ route: uniqueName("route"), priority: 2 });
    const { store } = fixture;
    const gap = transition(run.id, { afterSeq: 7, events: [event("w")], next });
    expect(await store.commit(batch(null, [gap]))).toEqual({ kind: "conflict", runId: run.id });
    const unknownWorker = { workerId: uniqueName("unknown"), epoch: 1 };
    expect(await store.commit(batch(unknownWorker, [{ ...gap, afterSeq: 0 }]))).toEqual({ kind: "fenced" });
    expect((await fixture.claim(worker, routeTo(next.route as string))).tasks).toEqual([]);
    await fixture.claimOne(worker, routesOf(run));
  });

  test("a run that sleeps is due on its new route, and no longer on the old one", async () => {
    const worker = await fixture.registerWorker();
    const run = await fixture.startOwned(worker);
    const route = uniqueName("route");
    const wakeAt = (await fixture.store.now()) + 3_600_000;
    const next = park("waiting", { wakeAt, route });
    await fixture.commitTransition(worker, transition(run.id, { events: [event("w")], next }));
    expect(await fixture.claim(worker, routesOf(run))).toMatchObject({ tasks: [], nextDueAt: null });
    expect(await fixture.claim(worker, routeTo(route))).toMatchObject({ tasks: [], nextDueAt: wakeAt });
    await fixture.store.send([newMessage(run.id, "x")]);
    expect((await fixture.claim(worker, routesOf(run))).tasks).toEqual([]);
    expect(await fixture.claimOne(worker, routeTo(route))).toMatchObject({ run: { id: run.id }, pendingMessages: 1 });
  });

  test("one claim takes the highest of all its routes by their new priorities; the rows of the runs stay as created", async () => {
    const worker = await fixture.registerWorker();
    const [firstRuns, secondRuns] = [newRuns(10, { priority: 50 }), newRuns(10)];
    const runs = [...firstRuns, ...secondRuns];
    await fixture.startAll(runs);
    const priorities = runs.map((_, index) => (index * 7) % 20);
    await parkAll(
      null,
      runs,
      priorities.map((priority) => ({ priority })),
      { wakeInMs: 0 },
    );
    const { tasks } = await fixture.claim(worker, routesOf(...runs), { limit: 8 });
    const highest = sortByPriority(priorities, runs).slice(0, 8);
    expect(tasks).toMatchObject(highest.map(({ id, workflow, priority }) => ({ run: { id, workflow, priority } })));
  });

  test("tasks whose priorities change repeatedly while they are ready are claimed by the last priority", async () => {
    const worker = await fixture.registerWorker();
    const runs = newRuns(40);
    await fixture.startAll(runs);
    const priorities = runs.map(() => 0);
    // Each round changes fewer tasks, so that old positions stay between the new ones.
    for (const [after, step] of [1, 2, 3, 5].entries()) {
      const changed = runs.filter((_, index) => index % step === 0);
      const transitions: Transition[] = [];
      for (const run of changed) {
        const index = runs.indexOf(run);
        const priority = ((index * 17 + after * 13) % 40) * 10 + after;
        priorities[index] = priority;
        const { length } = await fixture.log(run.id);
        transitions.push(transition(run.id, { afterSeq: length, events: [event("w")], next: parkReady({ priority }) }));
      }
      await fixture.commit(batch(null, transitions));
    }
    expect(await claimAllInOrder(worker, routesOf(...runs))).toEqual(
      sortByPriority(priorities, runs).map(({ id }) => id),
    );
  });

  const waysToBeReady: Record<
    string,
    (runs: readonly NewRun[], places: readonly RouteAndPriority[]) => Promise<unknown>
  > = {
    "parked for no time": async (runs, places) => parkAll(await claimAllRuns(runs), runs, places, { wakeInMs: 0 }),
    "parked again by a client while they were ready": (runs, places) => parkAll(null, runs, places, { wakeInMs: 0 }),
    "woken by messages": async (runs, places) => {
      await parkAll(await claimAllRuns(runs), runs, places, {});
      await fixture.store.send(runs.map(({ id }) => newMessage(id, "x")));
    },
    released: async (runs, places) => {
      await parkAll(await claimAllRuns(runs), runs, places, {});
      const worker = await fixture.registerWorker();
      const { id } = await fixture.startOwned(worker);
      await fixture.commitTransition(
        worker,
        transition(id, { events: [event("go")], releasedChildIds: runs.map((run) => run.id) }),
      );
    },
    "parked until an instant that has passed": (runs, places) => parkAll(null, runs, places, { wakeAt: 1_000 }),
    "left behind by a worker that was reaped": async (runs, places) => {
      await parkAll(null, runs, places, { wakeInMs: 0 });
      const expired = await fixture.registerWorker({ leaseMs: 1 });
      const [{ route }] = places as [Required<RouteAndPriority>];
      expect((await fixture.claim(expired, routeTo(route))).tasks).toHaveLength(runs.length);
      const reaper = await fixture.registerWorker();
      await fixture.waitUntil("the expired worker is reaped", async () => {
        return (await fixture.store.heartbeat(reaper)).reapedWorkerIds.includes(expired.workerId);
      });
    },
  };

  async function claimAllRuns(runs: readonly NewRun[]): Promise<Fence> {
    const owner = await fixture.registerWorker();
    expect((await fixture.claim(owner, routesOf(...runs))).tasks).toHaveLength(runs.length);
    return owner;
  }

  function parkAll(
    fence: Fence | null,
    runs: readonly NewRun[],
    places: readonly RouteAndPriority[],
    wake: { readonly wakeInMs?: number; readonly wakeAt?: number },
  ) {
    const parks = runs.map(({ id }, index) =>
      transition(id, { events: [event("w")], next: park("waiting", { ...wake, ...places[index] }) }),
    );
    return fixture.commit(batch(fence, parks));
  }

  for (const [howReady, makeReady] of Object.entries(waysToBeReady)) {
    test(`tasks that are ${howReady} are claimed on their new route, in the order of their new priorities`, async () => {
      const worker = await fixture.registerWorker();
      const runs = newRuns(30).map((run, index) => ({ ...run, priority: index % 4 }));
      const route = uniqueName("route");
      // Each priority occurs once, in an order far from that of creation.
      const priorities = runs.map((_, index) => ((index * 11) % 30) - 10);
      await fixture.startAll(runs);
      await makeReady(
        runs,
        priorities.map((priority) => ({ route, priority })),
      );
      expect((await fixture.claim(worker, routesOf(...runs))).tasks).toEqual([]);
      expect(await claimAllInOrder(worker, routeTo(route))).toEqual(
        sortByPriority(priorities, runs).map(({ id }) => id),
      );
    });
  }
}
