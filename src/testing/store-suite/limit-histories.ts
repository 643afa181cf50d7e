/** Limits under load: workers that admit at the same time, and random histories. */
import { laneIdOf, type RunClass } from "../../core/limits/lane.js";
import type { Fence, NewRun, Store } from "../../store/contract/store.js";
import { batch, finish, newRun, park, transition, uniqueName } from "./builders.js";
import type { Fixture } from "./fixture.js";
import { createLimitFixture } from "./limit-fixture.js";
import { SeededRandom } from "./seeded-random.js";

export function limitHistoryTests(fixture: Fixture): void {
  const { test, expect } = fixture;
  const { newLimit, classOf, startSorted, admit, idsOf, inUse, finishRuns } = createLimitFixture(fixture);

  test("skipped locks do not overspend a shared budget: workers that admit at the same time respect the limit", async () => {
    const stores = fixture.harness.sharesAcrossInstances
      ? [fixture.store, await fixture.openAnother(), await fixture.openAnother()]
      : [fixture.store, fixture.store, fixture.store];
    const name = await newLimit(3);
    const lanes = ["x", "y"].map((key) => laneIdOf(name, key)) as [string, string];
    const workflow = uniqueName("budget");
    const runs = [
      ...(await startSorted(20, [lanes[0]], { workflow })),
      ...(await startSorted(20, [lanes[1]], { workflow })),
      ...(await startSorted(20, [...lanes], { workflow })),
    ];
    const begun = new Set<string>();
    const work = async (store: Store) => {
      const worker = await fixture.registerWorker({}, store);
      while (begun.size < runs.length) {
        const { tasks } = await admit(worker, runs, 4, store);
        for (const lane of lanes) expect(await inUse(lane)).toBeLessThanOrEqual(3);
        for (const id of idsOf(tasks)) {
          expect(begun.has(id)).toBe(false);
          begun.add(id);
        }
        if (tasks.length === 0) continue;
        await finishRuns(worker, idsOf(tasks), store);
        await store.limits.wake(tasks.flatMap((task) => task.lanes.map((lane) => ({ lane, count: 1 }))));
      }
    };
    await Promise.all(stores.map(work));
    expect([await inUse(lanes[0]), await inUse(lanes[1])]).toEqual([0, 0]);
  });

  test("a random history never has more holders than slots, loses no run, and ends with empty lanes", async () => {
    const random = new SeededRandom(20_260);
    const pick = <T>(items: readonly T[]): T => items[random.integerBelow(items.length)] as T;
    const names = [await newLimit(2), await newLimit(1), await newLimit(3)];
    const lanes = names.flatMap((name) => ["a", "b"].map((key) => laneIdOf(name, key)));
    const concurrency = new Map(names.map((name, index) => [name, [2, 1, 3][index] as number]));
    const workflow = uniqueName("random");
    const runs = Array.from({ length: fixture.rounds(60) }, () =>
      newRun({ workflow, priority: random.integerBelow(2) }),
    );
    const classes = new Map(
      runs.map((run) => {
        const chosen = lanes.filter(() => random.chance(0.25));
        return [run.id, classOf(run, chosen, pick(["", "other"]))];
      }),
    );
    // Half of the runs come with their class, as from a process that has their code.
    const withClass = (run: NewRun, index: number): NewRun =>
      index % 2 === 0 ? run : { ...run, runClass: classes.get(run.id) as RunClass };
    const started = runs.map(withClass);
    await fixture.startAll(started.filter(({ runClass }) => runClass === undefined));
    const waiting = started.filter(({ runClass }) => runClass !== undefined);
    await fixture.startAll(waiting.slice(0, waiting.length / 2));
    const startRest = () => fixture.startAll(waiting.slice(waiting.length / 2));
    let workers = [await fixture.registerWorker(), await fixture.registerWorker()];
    const held = new Map<string, { readonly worker: Fence; readonly lanes: readonly string[] }>();
    const ended = new Set<string>();
    for (let step = 0; ended.size < runs.length; step += 1) {
      if (step > 3_000) throw new Error(`Only ${ended.size} of ${runs.length} runs have ended.`);
      // By now their classes exist, are blocked, or have been deleted.
      if (step === 20) await startRest();
      const routes = [{ workflow, version: "" }];
      const { tasks } = await fixture.store.limits.unsorted({ routes, limit: 10 });
      const unsorted = tasks.filter(() => random.chance(0.7));
      await fixture.store.limits.sort(
        unsorted.map(({ run }) => ({ runId: run.id, runClass: classes.get(run.id) as RunClass, hasBegun: false })),
      );
      const worker = pick(workers);
      const before = new Set(held.keys());
      for (const task of (await admit(worker, runs, pick([1, 2, 8]))).tasks) {
        expect(before.has(task.run.id)).toBe(false);
        held.set(task.run.id, { worker, lanes: task.lanes });
      }
      for (const lane of lanes) {
        const holders = [...held].filter(([, { lanes: taken }]) => taken.includes(lane));
        expect(await inUse(lane)).toBe(holders.length);
        expect(holders.length).toBeLessThanOrEqual(concurrency.get(lane.split("\t")[0] as string) as number);
      }
      const releasedIds = [...held].filter(([, { worker: owner }]) => owner === worker && random.chance(0.5));
      if (random.chance(0.05)) {
        await fixture.store.deregisterWorker(worker);
        for (const [id, { worker: owner }] of held) if (owner === worker) held.delete(id);
        workers = [...workers.filter((other) => other !== worker), await fixture.registerWorker()];
        await fixture.store.limits.sweep();
      } else {
        for (const [id, { lanes: taken }] of releasedIds) {
          const isEnd = random.chance(0.7);
          const wakeAt = await fixture.store.now();
          const next = isEnd
            ? finish("completed", { releasesSlots: true })
            : park("waiting", { wakeAt, releasesSlots: true });
          await fixture.commit(batch(worker, [transition(id, { next })]));
          held.delete(id);
          if (isEnd) ended.add(id);
          await fixture.store.limits.wake(taken.map((lane) => ({ lane, count: 1 })));
        }
      }
    }
    for (const lane of lanes) expect(await inUse(lane)).toBe(0);
    const left = await fixture.store.limits.classes({ afterId: null }, 1_000);
    expect(left.filter(({ route }) => route === workflow && left.length > 100)).toEqual([]);
  });
}
