/** Limits: rates, overrides, slots that are held until the end of a run, and lanes that are named as freed. */
import { laneIdOf } from "../../core/limits/lane.js";
import type { LimitOverride } from "../../core/limits/settings.js";
import type { NewRun } from "../../store/contract/store.js";
import { batch, finish, park, transition, uniqueName } from "./builders.js";
import type { Fixture } from "./fixture.js";
import { createLimitFixture } from "./limit-fixture.js";

const hour = 3_600_000;

export function limitRateTests(fixture: Fixture): void {
  const { test, expect } = fixture;
  const { register, newLimit, newLane, classOf, sort, startSorted, admit, idsOf, inUse, finishRuns } =
    createLimitFixture(fixture);
  const limits = () => fixture.store.limits;
  const routesOf = (runs: readonly NewRun[]) => [{ workflow: runs[0]?.workflow as string, version: "" }];
  const overrideOf = (values: Partial<LimitOverride>): LimitOverride => ({
    until: null,
    reason: "an incident",
    by: "ada",
    at: 1,
    ...values,
  });

  test("a rate admits as many as its burst and one, and the store says when the lane opens", async () => {
    const worker = await fixture.registerWorker();
    const name = await newLimit(null, { rate: { limit: 1, perMs: hour, burst: 2 } });
    const lane = laneIdOf(name, "");
    const runs = await startSorted(5, [lane]);
    expect(idsOf((await admit(worker, runs)).tasks)).toEqual(runs.slice(0, 3).map(({ id }) => id));
    // Giving a slot back does not bring back what the rate has admitted.
    await finishRuns(worker, [runs[0]?.id as string]);
    await limits().wake([{ lane, count: 1 }]);
    expect((await admit(worker, runs)).tasks).toEqual([]);
    const { at, nextDueAt, openedLanes } = await limits().unsorted({ routes: routesOf(runs), limit: 10 });
    expect(openedLanes).toEqual([]);
    const [record] = await limits().lanes(name, { after: null, limit: 10 });
    expect(record).toMatchObject({ id: lane, inUse: 2 });
    expect(record?.opensAt).toBeGreaterThan(at + hour / 2);
    expect(record?.opensAt).toBeLessThanOrEqual(at + hour);
    expect(nextDueAt).toBeLessThanOrEqual(record?.opensAt as number);
  });

  test("units and times that multiply to more than a column can hold keep the lane closed", async () => {
    const worker = await fixture.registerWorker();
    const perMs = 1_000 * 365 * 24 * hour;
    const lane = laneIdOf(await newLimit(null, { rate: { limit: 1, perMs, burst: 0 } }), "");
    const [run] = (await startSorted(1, [])) as [NewRun];
    const request = (node: string) => ({ runId: run.id, node, lane, priority: 0, units: 1_000_000_000 });
    const changes = { fence: worker, released: [], lanes: [] };
    const first = await limits().changeStepSlots({ ...changes, asked: [request("1 a")] });
    expect(first).toMatchObject({ kind: "granted", held: [{ node: "1 a" }] });
    await limits().addUnits(lane, 1_000_000_000);
    const second = await limits().changeStepSlots({ ...changes, asked: [request("2 b")], released: [request("1 a")] });
    expect(second).toMatchObject({ kind: "granted", held: [] });
    await limits().addUnits(lane, -1_000_000_000);
  });

  test("a sweep leaves classes behind that no worker executes, all at once, so that the lane does not stand still", async () => {
    const worker = await fixture.registerWorker();
    const lane = await newLane(1);
    const [holder] = (await startSorted(1, [lane])) as [NewRun];
    await admit(worker, [holder]);
    const left: NewRun[] = [];
    for (let share = 0; share < 5; share += 1)
      left.push(...(await startSorted(1, [lane], { workflow: uniqueName("left") }, `${share}`)));
    const [mine] = (await startSorted(1, [lane])) as [NewRun];
    expect((await admit(worker, [...left, mine])).tasks).toEqual([]);
    await finishRuns(worker, [holder.id]);
    await limits().sweep();
    expect(idsOf((await admit(worker, [mine])).tasks)).toEqual([mine.id]);
  });

  test("a faster rate opens a lane only when the pace of the slower one has passed, and no rate at once", async () => {
    const worker = await fixture.registerWorker();
    const name = await newLimit(null, { rate: { limit: 1, perMs: hour, burst: 0 } });
    const lane = laneIdOf(name, "");
    const runs = await startSorted(3, [lane]);
    await admit(worker, runs);
    expect((await admit(worker, runs)).tasks).toEqual([]);
    await register(name, { rate: { limit: 1_000, perMs: 1, burst: 0 } });
    const pacedOut = await limits().unsorted({ routes: routesOf(runs), limit: 10 });
    expect(pacedOut.openedLanes).toEqual([]);
    await limits().override(name, overrideOf({ rate: null }));
    expect(await limits().sweep()).toBe(1);
    expect((await admit(worker, runs)).tasks).toHaveLength(2);
  });

  test("a larger burst opens a waiting lane earlier, and the store says when", async () => {
    const worker = await fixture.registerWorker();
    const name = await newLimit(null, { rate: { limit: 1, perMs: hour, burst: 0 } });
    const runs = await startSorted(4, [laneIdOf(name, "")]);
    await admit(worker, runs);
    expect((await admit(worker, runs)).tasks).toEqual([]);
    await limits().override(name, overrideOf({ rate: { limit: 2, perMs: hour, burst: 1 } }));
    expect(await limits().sweep()).toBe(1);
    expect((await admit(worker, runs)).tasks).toEqual([]);
    const [record] = await limits().lanes(name, { after: null, limit: 10 });
    const { at, nextDueAt } = await limits().unsorted({ routes: routesOf(runs), limit: 10 });
    expect(record?.opensAt).toBeLessThanOrEqual(at + hour / 2);
    expect(nextDueAt).toBe(record?.opensAt);
    // The instant is known now, so the class is not looked at again before it.
    expect(await limits().sweep()).toBe(0);
  });

  test("classes that are blocked come before a new one when their lane has room and was not named", async () => {
    const worker = await fixture.registerWorker();
    const name = await newLimit(1);
    const lane = laneIdOf(name, "");
    const workflow = uniqueName("passing");
    const holder = await startSorted(1, [lane], { workflow }, "holder");
    await admit(worker, holder);
    const waiting = await startSorted(1, [lane], { workflow }, "waits");
    expect((await admit(worker, holder)).tasks).toEqual([]);
    await finishRuns(worker, [holder[0]?.id as string]);
    const late = await startSorted(1, [lane], { workflow }, "late");
    expect((await admit(worker, holder)).tasks).toEqual([]);
    expect(idsOf((await admit(worker, holder)).tasks)).toEqual([waiting[0]?.id]);
    await finishRuns(worker, [waiting[0]?.id as string]);
    await limits().wake([{ lane, count: 1 }]);
    expect(idsOf((await admit(worker, holder)).tasks)).toEqual([late[0]?.id]);
  });

  test("the pace of a lane is its own: another key of the same limit is not delayed", async () => {
    const worker = await fixture.registerWorker();
    const name = await newLimit(null, { rate: { limit: 1, perMs: hour, burst: 0 } });
    const workflow = uniqueName("paced");
    const ofA = await startSorted(2, [laneIdOf(name, "a")], { workflow });
    const ofB = await startSorted(2, [laneIdOf(name, "b")], { workflow });
    expect(idsOf((await admit(worker, ofA)).tasks).sort()).toEqual([ofA[0]?.id, ofB[0]?.id].sort());
    expect((await admit(worker, ofA)).tasks).toEqual([]);
  });

  test("a rate is spent only together with the slots: a run that waits for another lane leaves the pace alone", async () => {
    const worker = await fixture.registerWorker();
    const paced = laneIdOf(await newLimit(null, { rate: { limit: 1, perMs: hour, burst: 0 } }), "");
    const narrow = await newLane(1);
    const holder = await startSorted(1, [narrow]);
    await admit(worker, holder);
    expect((await admit(worker, await startSorted(1, [narrow, paced]))).tasks).toEqual([]);
    const free = await startSorted(1, [paced]);
    expect(idsOf((await admit(worker, free)).tasks)).toEqual([free[0]?.id]);
  });

  test("an override is in force until it ends or is cleared, and a release does not change it", async () => {
    const worker = await fixture.registerWorker();
    const name = await newLimit(1);
    const lane = laneIdOf(name, "");
    const runs = await startSorted(5, [lane]);
    const until = (await fixture.store.now()) + hour;
    expect(await limits().override(name, overrideOf({ concurrency: 2, until }))).toBe(true);
    expect((await admit(worker, runs)).tasks).toHaveLength(2);
    await register(name, { concurrency: 1 });
    await finishRuns(worker, [runs[0]?.id as string]);
    await limits().wake([{ lane, count: 1 }]);
    expect((await admit(worker, runs)).tasks).toHaveLength(1);
    const stored = (await limits().list()).find((limit) => limit.name === name);
    expect(stored).toMatchObject({
      concurrency: 1,
      override: { concurrency: 2, until, reason: "an incident", by: "ada" },
    });
    expect(await limits().override(name, null)).toBe(true);
    expect((await limits().list()).find((limit) => limit.name === name)?.override).toBeNull();
    await finishRuns(worker, [runs[1]?.id as string]);
    await limits().wake([{ lane, count: 1 }]);
    expect((await admit(worker, runs)).tasks).toEqual([]);
    expect(await inUse(lane)).toBe(1);
    expect(await limits().override(uniqueName("unknown"), null)).toBe(false);
  });

  test("an override that has ended is not in force, and a lane that waits for its end opens then", async () => {
    const worker = await fixture.registerWorker();
    const name = await newLimit(2);
    const lane = laneIdOf(name, "");
    const runs = await startSorted(3, [lane]);
    const now = await fixture.store.now();
    await limits().override(name, overrideOf({ concurrency: 1, until: now + hour }));
    expect((await admit(worker, runs)).tasks).toHaveLength(1);
    const [record] = await limits().lanes(name, { after: null, limit: 10 });
    expect(record?.opensAt).toBe(now + hour);
    expect((await limits().unsorted({ routes: routesOf(runs), limit: 10 })).nextDueAt).toBeLessThanOrEqual(now + hour);
    await limits().override(name, overrideOf({ concurrency: 1, until: now - 1 }));
    expect(await limits().sweep()).toBe(1);
    expect((await admit(worker, runs)).tasks).toHaveLength(1);
  });

  test("an override may set a rate, or take that of the code away", async () => {
    const worker = await fixture.registerWorker();
    const name = await newLimit(null, { rate: { limit: 1, perMs: hour, burst: 0 } });
    const runs = await startSorted(4, [laneIdOf(name, "")]);
    expect((await admit(worker, runs)).tasks).toHaveLength(1);
    await limits().override(name, overrideOf({ rate: null }));
    await limits().sweep();
    expect((await admit(worker, runs)).tasks).toHaveLength(3);
  });

  test("a slot that is held until the end outlives parking and the death of the worker, and ends with the run", async () => {
    const worker = await fixture.registerWorker();
    const lane = laneIdOf(await newLimit(1, { isHeldOpen: true }), "customer");
    const runs = await startSorted(2, [lane]);
    const [first, second] = runs as [NewRun, NewRun];
    const [task] = (await admit(worker, runs)).tasks;
    expect(task).toMatchObject({ lanes: [lane], openLanes: [lane] });
    const wakeAt = await fixture.store.now();
    await fixture.commitTransition(
      worker,
      transition(first.id, { next: park("waiting", { wakeAt, releasesSlots: true }) }),
    );
    expect(await inUse(lane)).toBe(1);
    expect(await limits().sweep()).toBe(0);
    await sort([first], (run) => classOf(run, []), { hasBegun: true });
    const again = (await admit(worker, runs)).tasks;
    expect(again).toMatchObject([{ run: { id: first.id }, lanes: [lane], openLanes: [lane] }]);
    await fixture.store.deregisterWorker(worker);
    expect(await inUse(lane)).toBe(1);
    const next = await fixture.registerWorker();
    await sort([first], (run) => classOf(run, []), { hasBegun: true });
    await admit(next, runs);
    await finishRuns(next, [first.id]);
    expect(await inUse(lane)).toBe(0);
    await limits().wake([{ lane, count: 1 }]);
    expect(idsOf((await admit(next, runs)).tasks)).toEqual([second.id]);
  });

  test("a slot that was left by a run that has ended is removed, and the next run gets it", async () => {
    const worker = await fixture.registerWorker();
    const lane = laneIdOf(await newLimit(1, { isHeldOpen: true }), "left");
    const runs = await startSorted(2, [lane]);
    await admit(worker, runs);
    await fixture.commit(batch(worker, [transition(runs[0]?.id as string, { next: finish("completed") })]));
    expect(await inUse(lane)).toBe(1);
    await limits().tidy();
    expect(await inUse(lane)).toBe(0);
    expect(idsOf((await admit(worker, runs)).tasks)).toEqual([runs[1]?.id]);
  });

  test("an admission that is told of freed slots needs no call of wake", async () => {
    const worker = await fixture.registerWorker();
    const lane = await newLane(1);
    const runs = await startSorted(3, [lane]);
    await admit(worker, runs);
    await finishRuns(worker, [runs[0]?.id as string]);
    const freed = [{ lane, count: 1 }];
    const result = await limits().admit({ fence: worker, routes: routesOf(runs), limit: 10, freed });
    expect(result.kind === "admitted" && idsOf(result.tasks)).toEqual([runs[1]?.id]);
  });

  test("slots that are freed go to the class that comes first, also if only another worker executes it", async () => {
    const [mine, other] = [await fixture.registerWorker(), await fixture.registerWorker()];
    const lane = await newLane(1);
    const holder = await startSorted(1, [lane]);
    await admit(mine, holder);
    const ofOther = await startSorted(1, [lane]);
    const ofMine = await startSorted(1, [lane]);
    expect((await admit(other, ofOther)).tasks).toEqual([]);
    expect((await admit(mine, ofMine)).tasks).toEqual([]);
    await finishRuns(mine, [holder[0]?.id as string]);
    const freed = [{ lane, count: 2 }];
    const result = await limits().admit({ fence: mine, routes: routesOf(ofMine), limit: 10, freed });
    expect(result).toMatchObject({ kind: "admitted", tasks: [] });
    expect(idsOf((await admit(other, ofOther)).tasks)).toEqual([ofOther[0]?.id]);
  });

  test("lanes that are not in use are removed, and come back when they are needed", async () => {
    const worker = await fixture.registerWorker();
    const lane = await newLane(1, "passing");
    const runs = await startSorted(1, [lane]);
    await admit(worker, runs);
    await finishRuns(worker, [runs[0]?.id as string]);
    await limits().tidy();
    const later = await startSorted(1, [lane], { workflow: runs[0]?.workflow as string });
    expect(idsOf((await admit(worker, later)).tasks)).toEqual([later[0]?.id]);
  });
}
