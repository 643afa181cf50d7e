/** Start keys and hero keys: a start whose key is taken is refused, and a repeated start changes nothing. */
import { batch, event, finish, newRun, newRuns, park, routesOf, transition, uniqueName } from "./builders.js";
import type { Fixture } from "./fixture.js";

export function keyTests(fixture: Fixture): void {
  const { test, expect } = fixture;

  test("a start key that is taken refuses the start and names the run that has it", async () => {
    const first = await fixture.start({ startKey: "order-1" });
    const second = newRun({ workflow: first.workflow, startKey: "order-1" });
    const { refused } = await fixture.commit(batch(null, [], [second]));
    expect(refused).toEqual([{ runId: second.id, reason: "startKey", existing: await fixture.run(first.id) }]);
    expect(await fixture.store.run(second.id)).toBeNull();
    expect(await fixture.task(second.id)).toBe(undefined);
  });

  test("each workflow has its own start keys, and keys differ by case, accents and spaces", async () => {
    const first = await fixture.start({ startKey: "key" });
    await fixture.start({ startKey: "key" });
    await fixture.start({ workflow: first.workflow, startKey: "KEY" });
    await fixture.start({ workflow: first.workflow, startKey: "kéy" });
    await fixture.start({ workflow: first.workflow, startKey: "key " });
    expect(await fixture.store.runs({ workflow: first.workflow, limit: 10 })).toHaveLength(4);
  });

  test("a start key stays taken after its run has ended", async () => {
    const first = await fixture.start({ startKey: "once" });
    await fixture.commitTransition(null, transition(first.id, { events: [event("end")], next: finish() }));
    const second = newRun({ workflow: first.workflow, startKey: "once" });
    const { refused } = await fixture.commit(batch(null, [], [second]));
    expect(refused).toMatchObject([{ runId: second.id, reason: "startKey", existing: { id: first.id } }]);
    expect(refused[0]?.existing.status).toBe("completed");
  });

  test("a hero key that is taken refuses the start, in any workflow", async () => {
    const heroKey = uniqueName("hero");
    const first = await fixture.start({ heroKey });
    const second = newRun({ heroKey });
    const { refused } = await fixture.commit(batch(null, [], [second]));
    expect(refused).toEqual([{ runId: second.id, reason: "heroKey", existing: await fixture.run(first.id) }]);
    expect(await fixture.store.run(second.id)).toBeNull();
    await fixture.start({ heroKey: heroKey.toUpperCase() });
  });

  test("a hero key is free again when its run has ended, and not before", async () => {
    const heroKey = uniqueName("hero");
    const first = await fixture.start({ heroKey });
    await fixture.commitTransition(null, transition(first.id, { events: [event("wait")], next: park("paused") }));
    const early = await fixture.commit(batch(null, [], [newRun({ heroKey })]));
    expect(early.refused).toHaveLength(1);
    await fixture.commitTransition(
      null,
      transition(first.id, { afterSeq: 1, events: [event("end")], next: finish("canceled") }),
    );
    const second = await fixture.start({ heroKey });
    expect(await fixture.run(second.id)).toMatchObject({ status: "pending" });
  });

  test("a start that both keys refuse is refused for the start key", async () => {
    const heroKey = uniqueName("hero");
    const holder = await fixture.start({ heroKey });
    const keyed = await fixture.start({ startKey: "both" });
    const run = newRun({ workflow: keyed.workflow, startKey: "both", heroKey });
    const { refused } = await fixture.commit(batch(null, [], [run]));
    expect(refused).toMatchObject([{ runId: run.id, reason: "startKey", existing: { id: keyed.id } }]);
    expect(await fixture.run(holder.id)).toMatchObject({ status: "pending" });
  });

  test("refused starts leave the rest of the batch alone", async () => {
    const heroKey = uniqueName("hero");
    const first = await fixture.start({ heroKey, startKey: "taken" });
    const { workflow } = first;
    const starts = [
      newRun({ workflow }),
      newRun({ workflow, startKey: "taken" }),
      newRun({ workflow, startKey: "free" }),
      newRun({ workflow, heroKey }),
      newRun({ workflow }),
    ];
    const { refused } = await fixture.commit(batch(null, [], starts));
    expect(new Map(refused.map(({ runId, reason }) => [runId, reason]))).toEqual(
      new Map([
        [starts[1]?.id, "startKey"],
        [starts[3]?.id, "heroKey"],
      ]),
    );
    const startedIds = (await fixture.store.runsById(starts.map(({ id }) => id))).map(({ id }) => id);
    expect(new Set(startedIds)).toEqual(new Set([starts[0]?.id, starts[2]?.id, starts[4]?.id]));
  });

  test("of two starts in one batch with one start key, the second is refused for the first", async () => {
    const workflow = uniqueName("workflow");
    const [first, second] = [newRun({ workflow, startKey: "same" }), newRun({ workflow, startKey: "same" })];
    const { refused } = await fixture.commit(batch(null, [], [first, second]));
    expect(refused).toMatchObject([{ runId: second.id, reason: "startKey", existing: { id: first.id } }]);
    expect(await fixture.store.runs({ workflow, limit: 10 })).toHaveLength(1);
  });

  test("of two starts in one batch with one hero key, the second is refused for the first", async () => {
    const heroKey = uniqueName("hero");
    const [first, second] = [newRun({ heroKey }), newRun({ heroKey })];
    const { refused } = await fixture.commit(batch(null, [], [first, second]));
    expect(refused).toMatchObject([{ runId: second.id, reason: "heroKey", existing: { id: first.id } }]);
  });

  test("a start that is repeated changes nothing and is not refused, whatever its keys", async () => {
    const run = await fixture.start({ startKey: "mine", heroKey: uniqueName("hero"), input: "1" });
    await fixture.commitTransition(null, transition(run.id, { events: [event("wait")], next: park("waiting") }));
    const { refused } = await fixture.commit(batch(null, [], [{ ...run, input: "2" }]));
    expect(refused).toEqual([]);
    expect(await fixture.run(run.id)).toMatchObject({ status: "waiting", input: "1" });
    expect(await fixture.task(run.id)).toMatchObject({ state: "parked", dueAt: null });
    await fixture.commitTransition(null, transition(run.id, { afterSeq: 1, events: [event("end")], next: finish() }));
    expect((await fixture.commit(batch(null, [], [run]))).refused).toEqual([]);
    expect(await fixture.task(run.id)).toBe(undefined);
    expect(await fixture.run(run.id)).toMatchObject({ status: "completed" });
  });

  test("repeated and new starts go together in one batch", async () => {
    const old = await fixture.start({ startKey: "old" });
    const fresh = newRun({ workflow: old.workflow, startKey: "new" });
    const { refused } = await fixture.commit(batch(null, [], [old, fresh]));
    expect(refused).toEqual([]);
    expect(await fixture.store.runs({ workflow: old.workflow, limit: 10 })).toHaveLength(2);
  });

  test("twenty starts of one id at once make one run", async () => {
    const other = await fixture.openAnother();
    const run = newRun({ startKey: "once", heroKey: uniqueName("hero") });
    const stores = Array.from({ length: 20 }, (_, index) => (index % 2 === 0 ? fixture.store : other));
    const results = await Promise.all(stores.map((store) => store.commit(batch(null, [], [run]))));
    for (const result of results) expect(result).toMatchObject({ kind: "committed", refused: [] });
    expect(await fixture.store.runs({ workflow: run.workflow, limit: 10 })).toHaveLength(1);
    const worker = await fixture.registerWorker();
    expect((await fixture.claimOne(worker, routesOf(run))).deliveries).toBe(1);
  });

  test("of twenty starts with one key at once one wins, and the others get its run", async () => {
    const other = await fixture.openAnother();
    for (const keys of [{ startKey: "race" }, { heroKey: uniqueName("hero") }]) {
      const runs = newRuns(20, keys);
      const results = await Promise.all(
        runs.map((run, index) => fixture.commit(batch(null, [], [run]), index % 2 === 0 ? fixture.store : other)),
      );
      const refusals = results.flatMap(({ refused }) => refused);
      expect(refusals).toHaveLength(19);
      const winners = await fixture.store.runs({ workflow: runs[0]?.workflow ?? "", limit: 30 });
      expect(winners).toHaveLength(1);
      expect(new Set(refusals.map(({ existing }) => existing.id))).toEqual(new Set([winners[0]?.id]));
    }
  });
}
