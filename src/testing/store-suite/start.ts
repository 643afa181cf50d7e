/** Starts: what a start writes, when its task becomes due, and children. */
import type { NewRun, RunRecord } from "../../store/contract/store.js";
import { batch, event, finish, newId, newRun, newRuns, routesOf, transition, uniqueName } from "./builders.js";
import type { Fixture } from "./fixture.js";

export function startTests(fixture: Fixture): void {
  const { test, expect } = fixture;

  test("a run is read as it was created", async () => {
    const { store } = fixture;
    const run = newRun({
      version: "v2",
      queue: "mails",
      priority: -7,
      input: '{"a":[1,"ü"]}',
      heroType: "User",
      heroId: "42",
      heroKey: uniqueName("hero"),
      tags: ["red", "blå"],
      startKey: "key",
      parentId: newId(),
      parentNode: "send/3",
      parentIndex: 12,
      parentAttempt: 3,
    });
    const { at } = await fixture.commit(batch(null, [], [run]));
    const { heroKey: _, due: __, ...columns } = run;
    const expected: RunRecord = {
      ...columns,
      status: "pending",
      output: null,
      error: null,
      waiting: null,
      createdAt: at,
      startedAt: null,
      finishedAt: null,
    };
    expect(await store.run(run.id)).toEqual(expected);
    expect(await store.runsById([run.id])).toEqual([expected]);
    expect(await store.log(run.id, { after: 0, limit: 10 })).toEqual([]);
  });

  test("fields that a start leaves out are null, and there are no tags", async () => {
    const run = await fixture.start();
    expect(await fixture.run(run.id)).toMatchObject({
      heroType: null,
      heroId: null,
      tags: [],
      startKey: null,
      parentId: null,
      parentNode: null,
      parentIndex: null,
      parentAttempt: null,
      version: "",
    });
  });

  test("names and keys may be long, of any script, or empty", async () => {
    const emojis = "🪝".repeat(50);
    const long = newRun({
      workflow: `${uniqueName("long")} ${"🪝".repeat(40)}`,
      version: "v".repeat(200),
      queue: emojis,
      priority: -1_000_000,
      heroType: emojis,
      heroId: "7".repeat(200),
      heroKey: `${uniqueName("hero")}/${"k".repeat(580)}`,
      tags: [emojis, "t".repeat(200)],
      startKey: "s".repeat(200),
      parentNode: "n".repeat(200),
    });
    const empty = newRun({ queue: "", heroType: "", heroId: "", startKey: "", parentNode: "", tags: [""], input: "" });
    for (const run of [long, empty]) {
      await fixture.startAll([run]);
      const { heroKey: _, due: __, ...columns } = run;
      expect(await fixture.run(run.id)).toMatchObject(columns);
      const again = newRun({ workflow: run.workflow, startKey: run.startKey });
      const { refused } = await fixture.commit(batch(null, [], [again]));
      expect(refused).toMatchObject([{ runId: again.id, reason: "startKey" }]);
      const worker = await fixture.registerWorker();
      expect((await fixture.claimOne(worker, routesOf(run))).run.id).toBe(run.id);
    }
  });

  test("a run that does not exist is null, and is missing in runsById", async () => {
    const run = await fixture.start();
    expect(await fixture.store.run(newId())).toBeNull();
    expect((await fixture.store.runsById([newId(), run.id])).map(({ id }) => id)).toEqual([run.id]);
    expect(await fixture.store.runsById([])).toEqual([]);
  });

  test("the task of a run that is due now is ready at once", async () => {
    const run = newRun();
    const { at } = await fixture.commit(batch(null, [], [run]));
    expect(await fixture.task(run.id)).toEqual({
      runId: run.id,
      route: run.workflow,
      state: "ready",
      dueAt: at,
      owner: null,
      epoch: null,
      deliveries: 0,
      pendingMessages: 0,
    });
  });

  test("a run that is due at an instant is parked until then", async () => {
    const at = (await fixture.store.now()) + 3_600_000;
    const run = await fixture.start({ due: { kind: "at", ms: at } });
    expect(await fixture.task(run.id)).toMatchObject({ state: "parked", dueAt: at });
    const worker = await fixture.registerWorker();
    expect((await fixture.claim(worker, routesOf(run))).tasks).toEqual([]);
  });

  test("a run that is due at an instant in the past is claimed at once", async () => {
    const run = await fixture.start({ due: { kind: "at", ms: (await fixture.store.now()) - 5_000 } });
    const worker = await fixture.registerWorker();
    expect((await fixture.claimOne(worker, routesOf(run))).run.id).toBe(run.id);
  });

  test("the delay of a run that is due later counts from the commit", async () => {
    const run = newRun({ due: { kind: "in", ms: 3_600_000 } });
    const { at } = await fixture.commit(batch(null, [], [run]));
    expect(await fixture.task(run.id)).toMatchObject({ state: "parked", dueAt: at + 3_600_000 });
  });

  test("a held run never becomes due by itself", async () => {
    const run = await fixture.start({ due: { kind: "held" } });
    expect(await fixture.task(run.id)).toMatchObject({ state: "parked", dueAt: null });
    const worker = await fixture.registerWorker();
    expect(await fixture.claim(worker, routesOf(run))).toMatchObject({ tasks: [], nextDueAt: null });
  });

  test("a run that starts as owned belongs to the committing worker, as its first delivery", async () => {
    const worker = await fixture.registerWorker();
    const run = await fixture.startOwned(worker);
    expect(await fixture.task(run.id)).toMatchObject({
      state: "owned",
      owner: worker.workerId,
      epoch: worker.epoch,
      deliveries: 1,
      pendingMessages: 0,
    });
    expect(await fixture.run(run.id)).toMatchObject({ status: "running", startedAt: null });
    const other = await fixture.registerWorker();
    expect((await fixture.claim(other, routesOf(run))).tasks).toEqual([]);
  });

  test("five hundred runs are started in one batch", async () => {
    const runs = newRuns(500, { tags: ["many"] });
    await fixture.startAll(runs);
    const storedRuns = await fixture.store.runsById(runs.map(({ id }) => id));
    expect(storedRuns).toHaveLength(500);
    expect(await fixture.store.tasks(runs.map(({ id }) => id))).toHaveLength(500);
  });

  test("children are created in their parent's transition, also held and owned ones", async () => {
    const worker = await fixture.registerWorker();
    const parent = await fixture.startOwned(worker);
    const child = { parentId: parent.id, parentNode: "fan", workflow: uniqueName("child") };
    const newChildren = [
      newRun({ ...child, parentIndex: 0 }),
      newRun({ ...child, parentIndex: 1, due: { kind: "held" } }),
      newRun({ ...child, parentIndex: 2, due: { kind: "owned" } }),
    ];
    await fixture.commitTransition(worker, transition(parent.id, { events: [event("fan")], newChildren }));
    const children = await fixture.store.runs({ parentId: parent.id, limit: 10 });
    const found = new Map(children.map((run) => [run.id, [run.parentNode, run.parentIndex, run.status]]));
    expect(found).toEqual(
      new Map([
        [newChildren[0]?.id, ["fan", 0, "pending"]],
        [newChildren[1]?.id, ["fan", 1, "pending"]],
        [newChildren[2]?.id, ["fan", 2, "running"]],
      ]),
    );
    const states = (await fixture.store.tasks(newChildren.map(({ id }) => id))).map(({ runId, state }) => [
      runId,
      state,
    ]);
    expect(new Map(states as [string, string][])).toEqual(
      new Map([
        [newChildren[0]?.id, "ready"],
        [newChildren[1]?.id, "parked"],
        [newChildren[2]?.id, "owned"],
      ]),
    );
  });

  test("a child whose id exists already is not created again", async () => {
    const worker = await fixture.registerWorker();
    const parent = await fixture.startOwned(worker);
    const [first, second] = newRuns(2, { parentId: parent.id, input: "1" }) as [NewRun, NewRun];
    await fixture.commitTransition(worker, transition(parent.id, { events: [event("one")], newChildren: [first] }));
    await fixture.commitTransition(null, transition(first.id, { events: [event("end")], next: finish() }));
    const again = [{ ...first, input: "2" }, second];
    await fixture.commitTransition(
      worker,
      transition(parent.id, { afterSeq: 1, events: [event("two")], newChildren: again }),
    );
    expect(await fixture.run(first.id)).toMatchObject({ status: "completed", input: "1" });
    expect(await fixture.task(first.id)).toBe(undefined);
    expect(await fixture.run(second.id)).toMatchObject({ status: "pending" });
  });
}
