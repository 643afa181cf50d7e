/** Starts that are gathered: which run they are added to, until when, and what the run gets. */
import type { GatherCall, GatherRule } from "../../core/gathering/plan-gathering.js";
import { gatheringIdOf, readGathering } from "../../core/gathering/run-gathering.js";
import type { GatherResult } from "../../store/contract/gatherings.js";
import type { NewRun, Store } from "../../store/contract/store.js";
import { batch, event, finish, newRun, park, transition, uniqueName } from "./builders.js";
import type { Fixture } from "./fixture.js";

type Gathered = Extract<GatherResult, { kind: "gathered" }>;

export const batchRule = (size: number, withinMs = 60_000): GatherRule => ({ kind: "batch", size, withinMs });

export const debounceRule = (keep: "last" | "first" | "all", quietMs = 60_000, maxMs = 10 * quietMs): GatherRule => ({
  kind: "debounce",
  quietMs,
  maxMs,
  keep,
});

export function newCall(
  workflow: string,
  rule: GatherRule,
  input: unknown,
  { key = "", startKey = null, ...run }: Partial<NewRun> & { key?: string } = {},
): GatherCall {
  const created = newRun({ ...run, workflow, input: JSON.stringify(input) });
  return { id: gatheringIdOf(rule, key, created), key, rule, run: created, startKey };
}

export async function gather(store: Store, calls: readonly GatherCall[], mayRepeat = false): Promise<Gathered> {
  const result = await store.gatherings.gather(calls, { mayRepeat });
  if (result.kind !== "gathered") throw new Error("The starts were refused.");
  return result;
}

export function gatheringTests(fixture: Fixture): void {
  const { test, expect } = fixture;

  const gatherOne = async (call: GatherCall) => {
    const { outcomes, at } = await gather(fixture.store, [call]);
    return { ...(outcomes[0] as Gathered["outcomes"][number]), at };
  };
  const stored = async (runId: string) => {
    const { input, schedule, status } = await fixture.run(runId);
    return { input: JSON.parse(input) as unknown, gathering: readGathering(schedule), status };
  };
  const begin = async (runId: string) => {
    const begun = (await fixture.store.gatherings.begin([runId])).get(runId);
    return JSON.parse(begun?.input as string) as unknown;
  };

  test("the first start creates a run that is due later, and the next are added to it", async () => {
    const workflow = uniqueName("mail");
    const rule = batchRule(10, 60_000);
    const calls = [1, 2, 3].map((n) => newCall(workflow, rule, n));
    const first = await gatherOne(calls[0] as GatherCall);
    const runId = calls[0]?.run.id as string;
    expect(first).toMatchObject({ runId, position: 0, isMerged: false });
    expect(await fixture.task(runId)).toMatchObject({ route: workflow, state: "parked", dueAt: first.at + 60_000 });
    const others = await gather(fixture.store, calls.slice(1));
    expect(others.outcomes).toEqual([
      { runId, position: 1, isMerged: true },
      { runId, position: 2, isMerged: true },
    ]);
    expect(others.createdIds).toEqual([]);
    expect(await fixture.task(runId)).toMatchObject({ dueAt: first.at + 60_000 });
    expect((await fixture.store.gatherings.items(runId)).map(({ position, input }) => [position, input])).toEqual([
      [0, "1"],
      [1, "2"],
      [2, "3"],
    ]);
    expect((await stored(runId)).gathering).toMatchObject({ gathering: "batch", calls: 3, lastAt: others.at });
  });

  test("a full list is due at once, and the starts of one call may fill several", async () => {
    const workflow = uniqueName("mail");
    const calls = [1, 2, 3, 4, 5].map((n) => newCall(workflow, batchRule(2), n));
    const { outcomes, createdIds } = await gather(fixture.store, calls);
    expect(createdIds).toHaveLength(3);
    expect(outcomes.map(({ runId, position }) => [createdIds.indexOf(runId), position])).toEqual([
      [0, 0],
      [0, 1],
      [1, 0],
      [1, 1],
      [2, 0],
    ]);
    const states = await Promise.all(createdIds.map(async (id) => (await fixture.task(id))?.state));
    expect(states).toEqual(["ready", "ready", "parked"]);
    const next = await gatherOne(newCall(workflow, batchRule(2), 6));
    expect(next).toMatchObject({ runId: createdIds[2], position: 1 });
    expect(await fixture.task(next.runId)).toMatchObject({ state: "ready" });
  });

  test("a list is also full when its inputs are large, and nothing of it is lost", async () => {
    const workflow = uniqueName("mail");
    const large = "ä".repeat(400_000);
    const calls = Array.from({ length: 8 }, (_, n) => newCall(workflow, batchRule(100), `${n}${large}`));
    const { outcomes, createdIds } = await gather(fixture.store, calls);
    expect(outcomes.map(({ runId, position }) => [createdIds.indexOf(runId), position])).toEqual([
      ...[0, 1, 2, 3, 4, 5].map((position) => [0, position]),
      [1, 0],
      [1, 1],
    ]);
    const worker = await fixture.registerWorker();
    expect((await fixture.claimOne(worker, [{ workflow, version: "" }])).run.id).toBe(createdIds[0]);
    expect(await begin(createdIds[0] as string)).toEqual([0, 1, 2, 3, 4, 5].map((n) => `${n}${large}`));
  });

  test("a further start moves a debounced run, but not beyond the limit", async () => {
    const workflow = uniqueName("index");
    const first = await gatherOne(newCall(workflow, debounceRule("last", 60_000), 1));
    const second = await gatherOne(newCall(workflow, debounceRule("last", 90_000, 100_000), 2));
    expect(second).toMatchObject({ runId: first.runId, position: null, isMerged: true });
    expect(await fixture.task(first.runId)).toMatchObject({
      state: "parked",
      dueAt: Math.min(second.at + 90_000, first.at + 100_000),
    });
    await gatherOne(newCall(workflow, debounceRule("last", 90_000, 0), 3));
    expect(await fixture.task(first.runId)).toMatchObject({ state: "ready", dueAt: first.at });
    expect(await stored(first.runId)).toMatchObject({ input: 3, gathering: { calls: 3 } });
    await gatherOne(newCall(workflow, debounceRule("first", 90_000), 4));
    expect(await fixture.task(first.runId)).toMatchObject({ state: "parked" });
    expect(await stored(first.runId)).toMatchObject({ input: 3, gathering: { calls: 4 } });
  });

  test("a run that a worker has claimed gets no further start", async () => {
    const workflow = uniqueName("mail");
    const worker = await fixture.registerWorker();
    const first = await gatherOne(newCall(workflow, batchRule(10, 0), 1));
    await fixture.claimOne(worker, [{ workflow, version: "" }]);
    const second = await gatherOne(newCall(workflow, batchRule(10), 2));
    expect(second).toMatchObject({ position: 0, isMerged: false });
    expect(await begin(first.runId)).toEqual([1]);
    expect((await stored(first.runId)).gathering?.begun).toBe(true);
    // The claim of the first run did not let go of the second.
    expect(await gatherOne(newCall(workflow, batchRule(10), 3))).toMatchObject({ runId: second.runId, position: 1 });
    // A worker that takes the run over does the same again.
    expect(await begin(first.runId)).toEqual([1]);
    await fixture.store.deregisterWorker(worker);
    expect(await gatherOne(newCall(workflow, batchRule(10), 4))).toMatchObject({ runId: second.runId, position: 2 });
  });

  test("a run that was parked, paused or ended gets no further start", async () => {
    const worker = await fixture.registerWorker();
    const ends = [park("waiting", { startedAt: 1, wakeInMs: 60_000 }), park("paused"), finish("completed")];
    for (const next of ends) {
      const workflow = uniqueName("mail");
      const first = await gatherOne(newCall(workflow, batchRule(10, 0), 1));
      await fixture.claimOne(worker, [{ workflow, version: "" }]);
      await fixture.commitTransition(worker, transition(first.runId, { events: [event("begun")], next }));
      expect(await gatherOne(newCall(workflow, batchRule(10), 2))).toMatchObject({ isMerged: false, position: 0 });
    }
  });

  test("a repeated start is added once, before and after its run has begun", async () => {
    const workflow = uniqueName("mail");
    const worker = await fixture.registerWorker();
    const calls = [1, 2].map((n) => newCall(workflow, batchRule(10, 0), n));
    const { outcomes } = await gather(fixture.store, calls);
    expect((await gather(fixture.store, calls, true)).outcomes).toEqual(outcomes);
    const { run } = await fixture.claimOne(worker, [{ workflow, version: "" }]);
    expect(await begin(run.id)).toEqual([1, 2]);
    expect((await gather(fixture.store, calls.toReversed(), true)).outcomes).toEqual(outcomes.toReversed());
    expect((await fixture.store.gatherings.items(run.id)).map(({ callId }) => callId)).toEqual(
      calls.map((call) => call.run.id),
    );
    const debounced = newCall(uniqueName("index"), debounceRule("last"), 1);
    await gather(fixture.store, [debounced]);
    expect((await gather(fixture.store, [debounced], true)).outcomes).toMatchObject([
      { runId: debounced.run.id, isMerged: false },
    ]);
    expect((await stored(debounced.run.id)).gathering?.calls).toBe(1);
  });

  test("a start key belongs to one element, for as long as its run is kept", async () => {
    const workflow = uniqueName("mail");
    const worker = await fixture.registerWorker();
    const rule = batchRule(10, 0);
    const keyed = newCall(workflow, rule, 1, { startKey: "k1" });
    const plain = newCall(workflow, rule, 2);
    const again = newCall(workflow, rule, 1, { startKey: "k1", key: "other" });
    const { outcomes } = await gather(fixture.store, [keyed, plain, again]);
    const runId = keyed.run.id;
    expect(outcomes[2]).toEqual({ runId, position: 0, isMerged: false, inputOfKey: "1" });
    expect(await fixture.store.gatherings.itemOfKey(workflow, "k1")).toMatchObject({ runId, position: 0 });
    expect(await fixture.store.gatherings.itemOfKey(workflow, "k2")).toBe(null);
    await fixture.claimOne(worker, [{ workflow, version: "" }]);
    expect(await begin(runId)).toEqual([1, 2]);
    expect((await fixture.store.gatherings.items(runId)).map(({ input }) => input)).toEqual(["1", null]);
    expect(await gatherOne(newCall(workflow, rule, 3, { startKey: "k1" }))).toMatchObject({ runId, inputOfKey: "1" });
    await fixture.commitTransition(worker, transition(runId, { next: finish("completed") }));
    expect(await fixture.store.maintenance.deleteRuns([runId])).toBe(1);
    expect(await fixture.store.gatherings.items(runId)).toEqual([]);
    expect(await gatherOne(newCall(workflow, rule, 3, { startKey: "k1" }))).toMatchObject({ position: 0 });
  });

  test("a start key that a run has is refused, and nothing is written", async () => {
    const run = await fixture.start({ startKey: "k", input: "7" });
    const call = newCall(run.workflow, batchRule(10), 1, { startKey: "k" });
    const other = newCall(run.workflow, batchRule(10), 2);
    const result = await fixture.store.gatherings.gather([other, call], { mayRepeat: false });
    expect(result).toMatchObject({
      kind: "refused",
      refused: [{ runId: call.run.id, reason: "startKey", existing: { id: run.id, input: "7" } }],
    });
    expect(await fixture.store.run(other.run.id)).toBe(null);
    expect(await fixture.store.gatherings.items(other.run.id)).toEqual([]);
  });

  test("a hero that has an active run refuses the run of a debounced start, and the next start can be made", async () => {
    const hero = { heroType: "Doc", heroId: uniqueName("hero") };
    const heroKey = uniqueName("hero key");
    const workflow = uniqueName("index");
    const worker = await fixture.registerWorker();
    const running = await fixture.startOwned(worker, { ...hero, heroKey, workflow });
    const call = newCall(workflow, debounceRule("last"), 1, { ...hero, heroKey });
    expect(await fixture.store.gatherings.gather([call], { mayRepeat: false })).toMatchObject({
      kind: "refused",
      refused: [{ runId: call.run.id, reason: "heroKey", existing: { id: running.id } }],
    });
    await fixture.commitTransition(worker, transition(running.id, { next: finish("completed") }));
    expect(await gatherOne(call)).toMatchObject({ runId: call.run.id, isMerged: false });
  });

  test("gathering wakes the workers of the workflow", async () => {
    const workflow = uniqueName("mail");
    const hints: string[] = [];
    const stop = fixture.store.watch((hint) => {
      if (hint.kind === "ready") hints.push(...hint.workflows);
    });
    await gather(fixture.store, [newCall(workflow, batchRule(10), 1)]);
    await fixture.waitUntil("a hint names the workflow", () => hints.includes(workflow));
    stop();
  });

  test("deleting a run that was canceled before it began deletes what it has gathered", async () => {
    const workflow = uniqueName("mail");
    const { runId } = await gatherOne(newCall(workflow, batchRule(10), 1));
    await fixture.commit(batch(null, [transition(runId, { events: [event("canceled")], next: finish("canceled") })]));
    expect(await gatherOne(newCall(workflow, batchRule(10), 2))).toMatchObject({ isMerged: false, position: 0 });
    expect(await fixture.store.maintenance.deleteRuns([runId])).toBe(1);
    expect(await fixture.store.gatherings.items(runId)).toEqual([]);
    expect(await fixture.store.maintenance.audit.orphanedRunIds("gathered", { after: null, limit: 10 })).toEqual([]);
  });
}
