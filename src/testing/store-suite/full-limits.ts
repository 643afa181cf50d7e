/** Limits with a policy for runs that find them full: `onFull` and `backlog`. */
import type { OnFull } from "../../core/limits/full-lane.js";
import { laneIdOf } from "../../core/limits/lane.js";
import { baseRouteOf } from "../../core/naming/route.js";
import { decodeMessage } from "../../core/run/message.js";
import type { SortedTask, SortResult } from "../../store/contract/limits.js";
import type { Fence, NewRun, Store } from "../../store/contract/store.js";
import { batch, delay, event, finish, newRuns, park, transition, uniqueName } from "./builders.js";
import type { Fixture } from "./fixture.js";
import { createLimitFixture } from "./limit-fixture.js";

export function fullLimitTests(fixture: Fixture): void {
  const { test, expect } = fixture;
  const { register, newLimit, classOf, inOrderOfAge, admit, idsOf, inUse, finishRuns } = createLimitFixture(fixture);

  const guardedLane = async (onFull: Exclude<OnFull, "wait">, concurrency: number | null, backlog = 0, key = "") =>
    laneIdOf(await newLimit(concurrency, { whenFull: { onFull, backlog } }), key);

  const taskOf = (run: NewRun, lanes: readonly string[], share = "", hasBegun = false): SortedTask => ({
    runId: run.id,
    runClass: classOf(run, lanes, share),
    hasBegun,
    guardedLanes: lanes,
  });

  /** Starts runs and sorts them in one transaction. */
  async function arrive(
    howMany: number,
    lanes: readonly string[],
    { workflow = uniqueName("guarded"), store = fixture.store, priority = 0 } = {},
  ): Promise<{ readonly runs: readonly NewRun[]; readonly result: SortResult }> {
    const runs = inOrderOfAge(newRuns(howMany, { workflow, priority }));
    await fixture.startAll(runs);
    return { runs, result: await store.limits.sort(runs.map((run) => taskOf(run, lanes))) };
  }

  const messagesOf = async (run: Pick<NewRun, "id">) => (await fixture.inbox(run.id)).map(decodeMessage);
  const idsOfRuns = (runs: readonly NewRun[]) => runs.map(({ id }) => id);

  /** Takes the runs that are to end, and ends them as their messages say. */
  async function endRefused(worker: Fence, runs: readonly NewRun[]): Promise<readonly string[]> {
    const { tasks } = await admit(worker, runs);
    const refused = tasks.filter(({ lanes }) => lanes.length === 0);
    for (const { run } of refused) {
      const drainedInboxIds = (await fixture.inbox(run.id)).map(({ id }) => id);
      await fixture.commitTransition(worker, transition(run.id, { drainedInboxIds, next: finish("canceled") }));
    }
    return refused.map(({ run }) => run.id);
  }

  test("skip: runs that find no free slot get a message, and a worker takes them at once without a slot", async () => {
    const worker = await fixture.registerWorker();
    const lane = await guardedLane("skip", 2);
    const { runs, result } = await arrive(4, [lane]);
    const [, , third, fourth] = runs as [NewRun, NewRun, NewRun, NewRun];
    expect(result).toEqual({
      hasPostponed: false,
      verdicts: [third, fourth].map(({ id }) => ({ runId: id, lane, effect: "skip", isHolder: false })),
    });
    expect(await messagesOf(third)).toMatchObject([{ type: "limitFull", effect: "skip", key: "" }]);
    expect(await fixture.task(third.id)).toMatchObject({ state: "ready", pendingMessages: 1, owner: null });
    const { tasks } = await admit(worker, runs);
    expect(idsOf(tasks).sort()).toEqual(idsOfRuns(runs).sort());
    expect(new Map(tasks.map(({ run, lanes, pendingMessages }) => [run.id, [lanes, pendingMessages]]))).toEqual(
      new Map(runs.map(({ id }, index) => [id, index < 2 ? [[lane], 0] : [[], 1]])),
    );
    expect(await inUse(lane)).toBe(2);
    expect(await fixture.task(third.id)).toMatchObject({ route: third.workflow, state: "owned" });
  });

  test("skip: a run that comes when a slot is free again begins", async () => {
    const worker = await fixture.registerWorker();
    const lane = await guardedLane("skip", 1);
    const { runs } = await arrive(1, [lane]);
    await admit(worker, runs);
    const late = await arrive(1, [lane]);
    expect(late.result.verdicts).toHaveLength(1);
    await finishRuns(worker, idsOfRuns(runs));
    const next = await arrive(1, [lane]);
    expect(next.result.verdicts).toEqual([]);
    expect(idsOf((await admit(worker, next.runs)).tasks)).toEqual(idsOfRuns(next.runs));
  });

  test("fail: the message says so, and names the limit and the key", async () => {
    const lane = await guardedLane("fail", 1, 0, "acme");
    const { runs } = await arrive(2, [lane]);
    expect(await messagesOf(runs[0] as NewRun)).toEqual([]);
    expect(await messagesOf(runs[1] as NewRun)).toEqual([
      { type: "limitFull", limit: lane.split("\t")[0], key: "acme", effect: "fail" },
    ]);
  });

  test("backlog: so many runs wait, whichever workflow and class they belong to, and whichever worker sorts them", async () => {
    const worker = await fixture.registerWorker();
    const lane = await guardedLane("skip", 1, 2);
    const other = await fixture.openAnother();
    const accepted: NewRun[] = [];
    let refusedCount = 0;
    for (let round = 0; round < 6; round += 1) {
      const { runs, result } = await arrive(1, [lane], { store: round % 2 === 0 ? fixture.store : other });
      if (result.verdicts.length === 0) accepted.push(...runs);
      else refusedCount += 1;
    }
    expect([accepted.length, refusedCount]).toEqual([3, 3]);
    const first = await admit(worker, accepted);
    expect(idsOf(first.tasks)).toEqual([accepted[0]?.id]);
    // One has its slot now, two wait.
    expect((await arrive(1, [lane])).result.verdicts).toHaveLength(1);
    await finishRuns(worker, [accepted[0]?.id as string]);
    await fixture.store.limits.wake([{ lane, count: 1 }]);
    // A slot is free, but the two that wait come first: one of them may have it, and the other is one of two.
    const { result } = await arrive(2, [lane]);
    expect(result.verdicts).toHaveLength(1);
  });

  test("a run that waits and ends otherwise leaves its place in the backlog", async () => {
    const lane = await guardedLane("skip", 1, 1);
    const { runs, result } = await arrive(3, [lane]);
    expect(result.verdicts.map(({ runId }) => runId)).toEqual([runs[2]?.id]);
    await fixture.commitTransition(null, transition(runs[1]?.id as string, { next: finish("canceled") }));
    await fixture.commitTransition(
      null,
      transition(runs[0]?.id as string, { events: [event("paused")], next: park("paused") }),
    );
    expect((await arrive(3, [lane])).result.verdicts).toHaveLength(1);
  });

  test("a run that has begun, or that a worker has taken before, waits whatever the lane is like", async () => {
    const worker = await fixture.registerWorker();
    const lane = await guardedLane("skip", 1);
    const { runs } = await arrive(1, [lane]);
    await admit(worker, runs);
    const dying = await fixture.registerWorker();
    const taken = await fixture.startOwned(dying, { workflow: uniqueName("taken") });
    await fixture.store.deregisterWorker(dying);
    const begun = await fixture.startOwned(worker, { workflow: uniqueName("begun") });
    const wakeAt = await fixture.store.now();
    const asleep = park("waiting", { wakeAt, startedAt: wakeAt });
    await fixture.commitTransition(worker, transition(begun.id, { events: [event("begun")], next: asleep }));
    const result = await fixture.store.limits.sort([taskOf(taken, [lane]), taskOf(begun, [lane], "", true)]);
    expect(result.verdicts).toEqual([]);
    expect((await arrive(1, [lane])).result.verdicts).toHaveLength(1);
  });

  test("a lane whose rate lets nothing begin now is full", async () => {
    const worker = await fixture.registerWorker();
    const name = uniqueName("rate");
    await register(name, { rate: { limit: 2, perMs: 3_600_000, burst: 1 }, whenFull: { onFull: "skip", backlog: 0 } });
    const lane = laneIdOf(name, "");
    const { runs, result } = await arrive(3, [lane]);
    expect(result.verdicts.map(({ runId }) => runId)).toEqual([runs[2]?.id]);
    expect((await admit(worker, runs)).tasks).toHaveLength(3);
    await finishRuns(worker, idsOfRuns(runs).slice(0, 2));
    expect((await arrive(1, [lane])).result.verdicts).toHaveLength(1);
  });

  test("the first full limit in the order of the workflow decides, and a refused run takes no place in the others", async () => {
    const worker = await fixture.registerWorker();
    const [narrow, wide] = [await guardedLane("fail", 1), await guardedLane("skip", 2)];
    const { runs, result } = await arrive(2, [wide, narrow]);
    expect(result.verdicts).toMatchObject([{ runId: runs[1]?.id, lane: narrow, effect: "fail" }]);
    await admit(worker, runs);
    const next = await arrive(2, [wide]);
    expect(next.result.verdicts).toMatchObject([{ runId: next.runs[1]?.id, lane: wide, effect: "skip" }]);
  });

  test("cancelOldest: the run that holds its slot longest gets a message, once, and the new run waits for it", async () => {
    const worker = await fixture.registerWorker();
    const lane = await guardedLane("cancelOldest", 2);
    const old = await arrive(1, [lane]);
    await admit(worker, old.runs);
    await delay(2);
    const young = await arrive(1, [lane]);
    await admit(worker, young.runs);
    const next = await arrive(1, [lane]);
    const by = next.runs[0]?.id;
    expect(next.result.verdicts).toEqual([{ runId: old.runs[0]?.id, lane, effect: "supersede", by, isHolder: true }]);
    expect(await messagesOf(old.runs[0] as NewRun)).toMatchObject([{ type: "limitFull", effect: "supersede", by }]);
    expect(await fixture.task(old.runs[0]?.id as string)).toMatchObject({ state: "owned", pendingMessages: 1 });
    expect((await admit(worker, next.runs)).tasks).toEqual([]);
    const last = await arrive(1, [lane]);
    expect(last.result.verdicts).toMatchObject([{ runId: young.runs[0]?.id, isHolder: true }]);
  });

  test("cancelOldest: when all holders are being canceled, the run that waits longest makes place", async () => {
    const worker = await fixture.registerWorker();
    const lane = await guardedLane("cancelOldest", 1);
    const { runs, result } = await arrive(3, [lane]);
    expect(result.verdicts.map(({ runId, by }) => [runId, by])).toEqual([
      [runs[0]?.id, runs[1]?.id],
      [runs[1]?.id, runs[2]?.id],
    ]);
    expect([...(await endRefused(worker, runs))].sort()).toEqual(idsOfRuns(runs).slice(0, 2).sort());
    expect(await inUse(lane)).toBe(1);
    const second = await arrive(1, [lane]);
    expect(second.result.verdicts).toMatchObject([{ runId: runs[2]?.id, isHolder: true }]);
    const third = await arrive(1, [lane]);
    expect(third.result.verdicts).toMatchObject([{ runId: second.runs[0]?.id, isHolder: false }]);
    expect(baseRouteOf((await fixture.task(second.runs[0]?.id as string))?.route as string)).toBe(
      second.runs[0]?.workflow,
    );
  });

  test("cancelOldest with a backlog: the run that waits longest makes place, and what has begun goes on", async () => {
    const worker = await fixture.registerWorker();
    const lane = await guardedLane("cancelOldest", 1, 2);
    const { runs } = await arrive(3, [lane]);
    await admit(worker, runs.slice(0, 1));
    const { result } = await arrive(1, [lane]);
    expect(result.verdicts).toMatchObject([{ runId: runs[1]?.id, isHolder: false }]);
    expect(await messagesOf(runs[0] as NewRun)).toEqual([]);
  });

  test("cancelOldest: a holder that is parked with its slot becomes ready", async () => {
    const worker = await fixture.registerWorker();
    const name = await newLimit(1, { isHeldOpen: true, whenFull: { onFull: "cancelOldest", backlog: 0 } });
    const lane = laneIdOf(name, "");
    const { runs } = await arrive(1, [lane]);
    const [holder] = runs as [NewRun];
    await admit(worker, runs);
    const startedAt = await fixture.store.now();
    await fixture.commitTransition(
      worker,
      transition(holder.id, { events: [event("begun")], next: park("waiting", { startedAt, releasesSlots: true }) }),
    );
    expect(await inUse(lane)).toBe(1);
    const { result } = await arrive(1, [lane]);
    expect(result.verdicts).toMatchObject([{ runId: holder.id, isHolder: true }]);
    expect(await fixture.task(holder.id)).toMatchObject({
      route: holder.workflow,
      state: "ready",
      pendingMessages: 1,
    });
  });

  test("many processes that sort at the same time let in exactly as many as have room", async () => {
    const worker = await fixture.registerWorker();
    const lane = await guardedLane("skip", 3, 2);
    const stores = [fixture.store, await fixture.openAnother(), await fixture.openAnother()];
    const workflows = stores.map(() => uniqueName("raced"));
    const started = workflows.map((workflow) => inOrderOfAge(newRuns(6, { workflow })));
    await fixture.startAll(started.flat());
    const sortAll = (store: Store, index: number) =>
      Promise.all((started[index] as NewRun[]).map((run) => store.limits.sort([taskOf(run, [lane])])));
    const results = (await Promise.all(stores.map(sortAll))).flat();
    expect(results.flatMap(({ verdicts }) => verdicts)).toHaveLength(13);
    const runs = started.flat();
    const { tasks } = await admit(worker, runs, 30);
    expect(tasks.filter(({ lanes }) => lanes.length > 0)).toHaveLength(3);
    expect(await inUse(lane)).toBe(3);
  });

  test("a run that is refused leaves its class with a message; one that was admitted is left alone", async () => {
    const worker = await fixture.registerWorker();
    const lane = laneIdOf(await newLimit(1, { isHeldOpen: true }), "customer");
    const runs = inOrderOfAge(newRuns(3, { workflow: uniqueName("cycle") }));
    await fixture.startAll(runs);
    await fixture.store.limits.sort(
      runs.slice(0, 2).map((run) => ({ runId: run.id, runClass: classOf(run, [lane]), hasBegun: false })),
    );
    await admit(worker, runs);
    const [holder, waiting, unsorted] = runs as [NewRun, NewRun, NewRun];
    const chain = ["a waits for b"];
    const refusals = runs.map(({ id }) => ({ runId: id, lane, chain }));
    expect(await fixture.store.limits.refuse(refusals)).toEqual([waiting.id]);
    expect(await messagesOf(waiting)).toMatchObject([{ type: "limitFull", effect: "cycle", key: "customer", chain }]);
    expect(await messagesOf(holder)).toEqual([]);
    expect(await messagesOf(unsorted)).toEqual([]);
    const { tasks } = await admit(worker, runs);
    expect(tasks.map(({ run, lanes }) => [run.id, lanes])).toEqual([[waiting.id, []]]);
    expect(await fixture.store.limits.refuse([])).toEqual([]);
  });

  test("housekeeping forgets lanes in which nothing waits, and no others", async () => {
    const worker = await fixture.registerWorker();
    const lane = await guardedLane("skip", 1, 1);
    const { runs } = await arrive(2, [lane]);
    const { limits } = fixture.store;
    for (let round = 0; round < 3; round += 1) await limits.tidy();
    expect((await arrive(1, [lane])).result.verdicts).toHaveLength(1);
    await admit(worker, runs);
    await finishRuns(worker, [runs[0]?.id as string]);
    await limits.wake([{ lane, count: 1 }]);
    await admit(worker, runs);
    await fixture.commit(
      batch(worker, [transition(runs[1]?.id as string, { next: finish("completed", { releasesSlots: true }) })]),
    );
    for (let round = 0; round < 3; round += 1) await limits.tidy();
    expect((await arrive(2, [lane])).result.verdicts).toEqual([]);
  });
}
