/** Routes and priorities: a park may change who is asked for a task, and what it goes before. Its run stays as born. */
import type { Fence, NewRun, Next, Route, Transition } from "../../store/contract/store.js";
import { batch, event, letter, newRun, newRuns, park, routesOf, transition, unique } from "./builders.js";
import type { Fixture } from "./fixture.js";

type Place = Pick<Extract<Next, { kind: "park" }>, "route" | "priority">;

const readyAt = (place: Place) => park("waiting", { wakeIn: 0, ...place });
const to = (workflow: string, version = ""): Route[] => [{ workflow, version }];

/** No two of the priorities are the same, so there is one order. */
const inOrderOf = (priorities: readonly number[], runs: readonly NewRun[]): NewRun[] =>
  runs
    .map((run, index) => ({ run, priority: priorities[index] as number }))
    .sort((a, b) => b.priority - a.priority)
    .map(({ run }) => run);

export function routingTests(fixture: Fixture): void {
  const { test, expect } = fixture;

  /** What claims give for these routes, one after the other until there is no more. */
  async function served(worker: Fence, routes: readonly Route[]): Promise<string[]> {
    const ids: string[] = [];
    for (;;) {
      const { tasks } = await fixture.claim(worker, routes, { limit: 1 });
      if (tasks.length === 0) return ids;
      ids.push(...tasks.map(({ run }) => run.id));
    }
  }

  for (const who of ["its owner", "a client"] as const) {
    const begin = async (overrides: Partial<NewRun> = {}) => {
      const owner = await fixture.worker();
      if (who === "a client") return { fence: null, run: await fixture.start(overrides) };
      return { fence: owner, run: await fixture.owned(owner, overrides) };
    };

    test(`a run that ${who} parks on a route is claimed by that route, and is still a run of its workflow`, async () => {
      const worker = await fixture.worker();
      const { fence, run } = await begin({ priority: 3, version: "v2", startKey: unique("key"), tags: ["t"] });
      const born = await fixture.run(run.id);
      const route = unique("route");
      await fixture.move(fence, transition(run.id, { events: [event("w")], next: readyAt({ route, priority: 8 }) }));
      expect(await fixture.run(run.id)).toEqual({ ...born, status: "waiting" });
      expect(await served(worker, [...routesOf(run), ...to(run.workflow), ...to(route)])).toEqual([]);
      expect(await fixture.claimOne(worker, to(route, "v2"))).toMatchObject({ run: { ...born, status: "running" } });
      const again = newRun({ workflow: run.workflow, startKey: run.startKey });
      expect(await fixture.commit(batch(null, [], [again]))).toMatchObject({ refused: [{ existing: { id: run.id } }] });
      expect(await fixture.store.runs({ workflow: run.workflow, limit: 10 })).toMatchObject([{ id: run.id }]);
      expect(await fixture.store.runs({ workflow: route, limit: 10 })).toEqual([]);
    });

    test(`what ${who} does not name at a park stays as the last one left it`, async () => {
      const worker = await fixture.worker();
      const { fence, run } = await begin({ priority: 1 });
      const route = unique("route");
      const rival = await fixture.start({ workflow: route, priority: 5 });
      const places: Place[] = [{ route, priority: 9 }, {}, { priority: 4 }, { route }, {}];
      const isFirst: boolean[] = [];
      let owner = fence;
      for (const [after, place] of places.entries()) {
        await fixture.move(owner, transition(run.id, { after, events: [event("w")], next: readyAt(place) }));
        expect((await fixture.claim(worker, routesOf(run))).tasks).toEqual([]);
        const order = await served(worker, to(route));
        expect([...order].sort()).toEqual([run.id, rival.id].sort());
        isFirst.push(order[0] === run.id);
        const back = transition(rival.id, { after, events: [event("w")], next: readyAt({}) });
        await fixture.move(worker, back);
        owner = worker;
      }
      expect(isFirst).toEqual([true, true, false, false, false]);
    });
  }

  test("one batch parks each run on its own route, whatever characters it is made of, or leaves it", async () => {
    const worker = await fixture.worker();
    const stem = unique("r");
    const odd = ["\t", "\tb", "\tB", " ", "'\"\\", "{,}", "NULL", "🙂", "?", "é".repeat(120)].map((end) => stem + end);
    const longest = stem.padEnd(255, "x");
    const routes = [...odd, longest, `${longest.slice(0, -1)}y`];
    const moved = await fixture.ownedRuns(routes.length, worker);
    const untouched = await fixture.start({ priority: 1 });
    const { workflow } = untouched;
    const left = await fixture.owned(worker, { workflow, priority: 2 });
    const raised = await fixture.owned(worker, { workflow });
    const parks = moved.map(({ id }, index) => [id, { route: routes[index] as string }] as const);
    const all: (readonly [id: string, place: Place])[] = [...parks, [left.id, {}], [raised.id, { priority: 3 }]];
    const transaction = await fixture.store.begin();
    const transitions = all.map(([id, place]) => transition(id, { events: [event("w")], next: readyAt(place) }));
    expect(await transaction.commit(batch(worker, transitions))).toMatchObject({ kind: "committed", kept: [] });
    for (const [index, route] of routes.entries()) {
      const { run } = await fixture.claimOne(worker, to(route));
      expect(run).toMatchObject({ id: moved[index]?.id, workflow: moved[index]?.workflow });
    }
    expect(await served(worker, routesOf(left))).toEqual([raised.id, left.id, untouched.id]);
  });

  test("a run that mail keeps with its owner is not moved; once that is drained it is", async () => {
    const owner = await fixture.worker();
    const run = await fixture.owned(owner);
    const rival = await fixture.start({ workflow: run.workflow, priority: 1 });
    const next = readyAt({ route: unique("route"), priority: 2 });
    await fixture.store.send([letter(run.id, "x")]);
    const refused = await fixture.move(owner, transition(run.id, { events: [event("w")], next }));
    expect(refused.kept).toEqual([run.id]);
    await fixture.store.retire(owner);
    const worker = await fixture.worker();
    expect((await fixture.claim(worker, to(next.route as string))).tasks).toEqual([]);
    expect(await served(worker, routesOf(run))).toEqual([rival.id, run.id]);

    const drained = (await fixture.inbox(run.id)).map(({ id }) => id);
    const done = await fixture.move(worker, transition(run.id, { after: 1, events: [event("w")], drained, next }));
    expect(done.kept).toEqual([]);
    expect((await fixture.claim(worker, routesOf(run))).tasks).toEqual([]);
    expect(await fixture.claimOne(worker, to(next.route as string))).toMatchObject({ run: { id: run.id } });
  });

  test("a refused batch moves nobody", async () => {
    const worker = await fixture.worker();
    const run = await fixture.start();
    const next = readyAt({ route: unique("route"), priority: 2 });
    const { store } = fixture;
    const gap = transition(run.id, { after: 7, events: [event("w")], next });
    expect(await store.commit(batch(null, [gap]))).toEqual({ kind: "conflict", runId: run.id });
    const stranger = { workerId: unique("nobody"), epoch: 1 };
    expect(await store.commit(batch(stranger, [{ ...gap, after: 0 }]))).toEqual({ kind: "fenced" });
    expect((await fixture.claim(worker, to(next.route as string))).tasks).toEqual([]);
    await fixture.claimOne(worker, routesOf(run));
  });

  test("a run that sleeps is due on its new route, and no longer on the old one", async () => {
    const worker = await fixture.worker();
    const run = await fixture.owned(worker);
    const route = unique("route");
    const wakeAt = (await fixture.store.now()) + 3_600_000;
    const next = park("waiting", { wakeAt, route });
    await fixture.move(worker, transition(run.id, { events: [event("w")], next }));
    expect(await fixture.claim(worker, routesOf(run))).toMatchObject({ tasks: [], nextDueAt: null });
    expect(await fixture.claim(worker, to(route))).toMatchObject({ tasks: [], nextDueAt: wakeAt });
    await fixture.store.send([letter(run.id, "x")]);
    expect((await fixture.claim(worker, routesOf(run))).tasks).toEqual([]);
    expect(await fixture.claimOne(worker, to(route))).toMatchObject({ run: { id: run.id }, mail: 1 });
  });

  test("one claim takes the highest of all its routes by their new priorities; the runs are as born", async () => {
    const worker = await fixture.worker();
    const [here, there] = [newRuns(10, { priority: 50 }), newRuns(10)];
    const runs = [...here, ...there];
    await fixture.startAll(runs);
    const priorities = runs.map((_, index) => (index * 7) % 20);
    await parkAll(
      null,
      runs,
      priorities.map((priority) => ({ priority })),
      { wakeIn: 0 },
    );
    const { tasks } = await fixture.claim(worker, routesOf(...runs), { limit: 8 });
    const highest = inOrderOf(priorities, runs).slice(0, 8);
    expect(tasks).toMatchObject(highest.map(({ id, workflow, priority }) => ({ run: { id, workflow, priority } })));
  });

  test("tasks whose priorities change again and again while they are ready are served by the last", async () => {
    const worker = await fixture.worker();
    const runs = newRuns(40);
    await fixture.startAll(runs);
    const priorities = runs.map(() => 0);
    // Ever fewer of them, so that what is left of the earlier places stands between the others.
    for (const [after, step] of [1, 2, 3, 5].entries()) {
      const changed = runs.filter((_, index) => index % step === 0);
      const transitions: Transition[] = [];
      for (const run of changed) {
        const index = runs.indexOf(run);
        const priority = ((index * 17 + after * 13) % 40) * 10 + after;
        priorities[index] = priority;
        const { length } = await fixture.log(run.id);
        transitions.push(transition(run.id, { after: length, events: [event("w")], next: readyAt({ priority }) }));
      }
      await fixture.commit(batch(null, transitions));
    }
    expect(await served(worker, routesOf(...runs))).toEqual(inOrderOf(priorities, runs).map(({ id }) => id));
  });

  const waysToBeReady: Record<string, (runs: readonly NewRun[], places: readonly Place[]) => Promise<unknown>> = {
    "parked for no time": async (runs, places) => parkAll(await ownerOf(runs), runs, places, { wakeIn: 0 }),
    "parked again by a client while they were ready": (runs, places) => parkAll(null, runs, places, { wakeIn: 0 }),
    "woken by messages": async (runs, places) => {
      await parkAll(await ownerOf(runs), runs, places, {});
      await fixture.store.send(runs.map(({ id }) => letter(id, "x")));
    },
    released: async (runs, places) => {
      await parkAll(await ownerOf(runs), runs, places, {});
      const worker = await fixture.worker();
      const { id } = await fixture.owned(worker);
      await fixture.move(worker, transition(id, { events: [event("go")], release: runs.map((run) => run.id) }));
    },
    "parked until an instant that has passed": (runs, places) => parkAll(null, runs, places, { wakeAt: 1_000 }),
    "left behind by a worker that was reaped": async (runs, places) => {
      await parkAll(null, runs, places, { wakeIn: 0 });
      const doomed = await fixture.worker({ leaseMs: 1 });
      const [{ route }] = places as [Required<Place>];
      expect((await fixture.claim(doomed, to(route))).tasks).toHaveLength(runs.length);
      const reaper = await fixture.worker();
      await fixture.eventually("the silent worker is reaped", async () => {
        return (await fixture.store.beat(reaper)).reaped.includes(doomed.workerId);
      });
    },
  };

  async function ownerOf(runs: readonly NewRun[]): Promise<Fence> {
    const owner = await fixture.worker();
    expect((await fixture.claim(owner, routesOf(...runs))).tasks).toHaveLength(runs.length);
    return owner;
  }

  function parkAll(
    fence: Fence | null,
    runs: readonly NewRun[],
    places: readonly Place[],
    wake: { readonly wakeIn?: number; readonly wakeAt?: number },
  ) {
    const parks = runs.map(({ id }, index) =>
      transition(id, { events: [event("w")], next: park("waiting", { ...wake, ...places[index] }) }),
    );
    return fixture.commit(batch(fence, parks));
  }

  for (const [way, makeReady] of Object.entries(waysToBeReady)) {
    test(`tasks that are ${way} are served by route, in the order of their new priorities`, async () => {
      const worker = await fixture.worker();
      const runs = newRuns(30).map((run, index) => ({ ...run, priority: index % 4 }));
      const route = unique("route");
      // Each number once, far from the order that they were born in.
      const priorities = runs.map((_, index) => ((index * 11) % 30) - 10);
      await fixture.startAll(runs);
      await makeReady(
        runs,
        priorities.map((priority) => ({ route, priority })),
      );
      expect((await fixture.claim(worker, routesOf(...runs))).tasks).toEqual([]);
      expect(await served(worker, to(route))).toEqual(inOrderOf(priorities, runs).map(({ id }) => id));
    });
  }
}
