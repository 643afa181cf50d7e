/** Transactions: the user's writes commit with the batch or not at all, on the store's connection and on the caller's. */
import type { NewRun } from "../../store/contract/store.js";
import {
  batch,
  event,
  eventTypes,
  finish,
  newMessage,
  newRun,
  park,
  routesOf,
  transition,
  uniqueName,
  workerInfo,
} from "./builders.js";
import type { Fixture } from "./fixture.js";
import type { TransactionHarness } from "./harness.js";

export function transactionTests(fixture: Fixture): void {
  const { test, expect } = fixture;

  test("a batch has the same effect in a transaction as without one", async () => {
    const worker = await fixture.registerWorker();
    const run = await fixture.startOwned(worker);
    const started = newRun();
    const transaction = await fixture.store.beginTransaction();
    const given = transition(run.id, { events: [event("a"), event("b")], next: park("waiting", { wakeInMs: 0 }) });
    const result = await transaction.commit(batch(worker, [given], [started]));
    expect(result).toMatchObject({ kind: "committed", notParked: [], refused: [] });
    expect(eventTypes(await fixture.log(run.id))).toEqual(["a", "b"]);
    expect(await fixture.task(run.id)).toMatchObject({ state: "ready" });
    expect(await fixture.run(started.id)).toMatchObject({ status: "pending" });
  });

  test("refusals, conflicts, fences and messages have the same result in a transaction as without one", async () => {
    const worker = await fixture.registerWorker();
    const run = await fixture.startOwned(worker, { startKey: "taken" });
    await fixture.commitTransition(worker, transition(run.id, { events: [event("one")] }));
    const commit = async (parts: Parameters<typeof batch>) =>
      (await fixture.store.beginTransaction()).commit(batch(...parts));
    const stale = transition(run.id, { events: [event("x")] });
    expect(await commit([worker, [stale]])).toEqual({ kind: "conflict", runId: run.id });
    expect(await commit([{ ...worker, epoch: worker.epoch + 1 }, [stale]])).toEqual({ kind: "fenced" });
    expect(await commit([null, [{ ...stale, afterSeq: 1 }]])).toEqual({ kind: "conflict", runId: run.id });
    const again = newRun({ workflow: run.workflow, startKey: "taken" });
    expect(await commit([null, [], [again]])).toMatchObject({ refused: [{ runId: again.id, reason: "startKey" }] });
    await fixture.store.send([newMessage(run.id, "x")]);
    const parks = transition(run.id, { afterSeq: 1, events: [event("two")], next: park() });
    expect(await commit([worker, [parks]])).toMatchObject({ kind: "committed", notParked: [run.id] });
    expect(eventTypes(await fixture.log(run.id))).toEqual(["one", "two"]);
  });

  test("the store works after many transactions, however they end", async () => {
    const worker = await fixture.registerWorker();
    const run = await fixture.startOwned(worker);
    for (let round = 0; round < 30; round += 1) {
      const transaction = await fixture.store.beginTransaction();
      const append = transition(run.id, { afterSeq: Math.floor(round / 3), events: [event(`${round}`)] });
      if (round % 3 === 0) await transaction.rollback();
      else if (round % 3 === 1) await transaction.commit(batch({ workerId: "unknown", epoch: 1 }, [append]));
      else expect(await transaction.commit(batch(worker, [append]))).toMatchObject({ kind: "committed" });
    }
    expect(await fixture.log(run.id)).toHaveLength(10);
  });

  test("transactions and commits of different runs at once all succeed", async () => {
    const worker = await fixture.registerWorker();
    const runs = await Promise.all(Array.from({ length: 12 }, () => fixture.startOwned(worker)));
    const works = runs.map(async ({ id }, index) => {
      const append = batch(worker, [transition(id, { events: [event(`${index}`)] })]);
      const target = index % 2 === 0 ? fixture.store : await fixture.store.beginTransaction();
      return target.commit(append);
    });
    for (const result of await Promise.all(works)) expect(result).toMatchObject({ kind: "committed" });
    for (const [index, { id }] of runs.entries()) expect(eventTypes(await fixture.log(id))).toEqual([`${index}`]);
  });

  if (fixture.harness.transactions !== undefined) userWriteTests(fixture, fixture.harness.transactions);
}

function userWriteTests(fixture: Fixture, user: TransactionHarness): void {
  const { test, expect } = fixture;

  async function isCommitted(value: string): Promise<boolean> {
    return (await user.committedValues()).includes(value);
  }

  test("the user's writes with the handle are committed with the batch", async () => {
    const worker = await fixture.registerWorker();
    const run = await fixture.startOwned(worker);
    const value = uniqueName("value");
    const transaction = await fixture.store.beginTransaction();
    await user.write(transaction.handle, value);
    const ends = transition(run.id, { events: [event("done")], next: finish() });
    expect(await transaction.commit(batch(worker, [ends]))).toMatchObject({ kind: "committed" });
    expect(await isCommitted(value)).toBe(true);
    expect(await fixture.run(run.id)).toMatchObject({ status: "completed" });
  });

  test("the user's writes are undone by a rollback", async () => {
    const value = uniqueName("value");
    const transaction = await fixture.store.beginTransaction();
    await user.write(transaction.handle, value);
    await transaction.rollback();
    expect(await isCommitted(value)).toBe(false);
  });

  test("a refused batch undoes the user's writes", async () => {
    const info = workerInfo();
    const stale = await fixture.store.registerWorker(info);
    const first = await fixture.startOwned(stale);
    const live = await fixture.store.registerWorker(info);
    await fixture.claimOne(live, routesOf(first));
    await fixture.commitTransition(live, transition(first.id, { events: [event("moved on")] }));
    const late = [transition(first.id, { events: [event("late")] })];
    for (const [fence, kind] of [
      [stale, "fenced"],
      [live, "conflict"],
      [null, "conflict"],
    ] as const) {
      const value = uniqueName("value");
      const transaction = await fixture.store.beginTransaction();
      await user.write(transaction.handle, value);
      expect(await transaction.commit(batch(fence, late))).toMatchObject({ kind });
      expect(await isCommitted(value)).toBe(false);
    }
    expect(eventTypes(await fixture.log(first.id))).toEqual(["moved on"]);
  });

  test("the user's writes are visible to other connections only after the commit", async () => {
    const worker = await fixture.registerWorker();
    const run = await fixture.startOwned(worker);
    const value = uniqueName("value");
    const transaction = await fixture.store.beginTransaction();
    await user.write(transaction.handle, value);
    expect(await isCommitted(value)).toBe(false);
    await transaction.commit(batch(worker, [transition(run.id, { events: [event("done")] })]));
    expect(await isCommitted(value)).toBe(true);
  });

  test("runs that are started on the caller's transaction exist when it commits, not before", async () => {
    const value = uniqueName("value");
    const run = newRun({ tags: ["tx"], startKey: "k", heroKey: uniqueName("hero") });
    const later = newRun({ workflow: run.workflow, due: { kind: "in", ms: 3_600_000 } });
    const own = await user.beginCallerTransaction();
    await user.write(own.tx, value);
    const { at, refused } = await fixture.store.startInTransaction(own.tx, [run, later]);
    expect(refused).toEqual([]);
    expect(await fixture.store.run(run.id)).toBeNull();
    await own.commit();
    expect(await isCommitted(value)).toBe(true);
    expect(await fixture.run(run.id)).toMatchObject({ status: "pending", createdAt: at, tags: ["tx"] });
    expect(await fixture.task(later.id)).toMatchObject({ state: "parked", dueAt: at + 3_600_000 });
    const worker = await fixture.registerWorker();
    expect(await fixture.claimOne(worker, routesOf(run))).toMatchObject({ run: { id: run.id }, isFresh: true });
  });

  test("runs that are started on the caller's transaction do not exist after it rolls back", async () => {
    const value = uniqueName("value");
    const keys = { startKey: "k", heroKey: uniqueName("hero") };
    const run = newRun(keys);
    const own = await user.beginCallerTransaction();
    await fixture.store.startInTransaction(own.tx, [run]);
    await user.write(own.tx, value);
    await own.rollback();
    expect(await isCommitted(value)).toBe(false);
    expect(await fixture.store.run(run.id)).toBeNull();
    expect(await fixture.task(run.id)).toBe(undefined);
    await fixture.start({ workflow: run.workflow, ...keys });
  });

  test("a start that is refused leaves the caller's transaction usable", async () => {
    const value = uniqueName("value");
    const heroKey = uniqueName("hero");
    const first = (await fixture.start({ startKey: "k", heroKey })) as NewRun;
    const { workflow } = first;
    const [byKey, byHero, fine] = [newRun({ workflow, startKey: "k" }), newRun({ heroKey }), newRun({ workflow })];
    const own = await user.beginCallerTransaction();
    const { refused } = await fixture.store.startInTransaction(own.tx, [byKey, first, byHero, fine]);
    const existing = await fixture.run(first.id);
    expect([...refused].sort((a, b) => (a.reason < b.reason ? 1 : -1))).toEqual([
      { runId: byKey.id, reason: "startKey", existing },
      { runId: byHero.id, reason: "heroKey", existing },
    ]);
    await user.write(own.tx, value);
    await own.commit();
    expect(await isCommitted(value)).toBe(true);
    expect(await fixture.run(fine.id)).toMatchObject({ status: "pending" });
    expect(await fixture.store.runsById([byKey.id, byHero.id])).toEqual([]);
  });

  test("two starts on one transaction see each other's keys", async () => {
    const [first, second] = [newRun({ startKey: "k" }), newRun({ startKey: "k" })];
    const own = await user.beginCallerTransaction();
    await fixture.store.startInTransaction(own.tx, [first]);
    const { refused } = await fixture.store.startInTransaction(own.tx, [{ ...second, workflow: first.workflow }]);
    expect(refused).toMatchObject([{ runId: second.id, reason: "startKey", existing: { id: first.id } }]);
    await own.commit();
    expect(await fixture.run(first.id)).toMatchObject({ status: "pending" });
    expect(await fixture.store.run(second.id)).toBeNull();
  });

  test("messages that are sent on the caller's transaction arrive when it commits, not before", async () => {
    const worker = await fixture.registerWorker();
    const run = await fixture.startOwned(worker);
    const parked = await fixture.startOwned(worker);
    await fixture.commit(batch(worker, [transition(parked.id, { next: park("waiting", { startedAt: "now" }) })]));
    const unknown = newRun();
    const own = await user.beginCallerTransaction();
    const messages = [
      newMessage(run.id, "a"),
      newMessage(run.id, "b"),
      newMessage(parked.id, "c"),
      newMessage(unknown.id, "d"),
    ];
    const sent = await fixture.store.sendInTransaction(own.tx, messages);
    expect(sent).toEqual({ undeliverable: [unknown.id], notStarted: [] });
    expect((await fixture.store.inbox([run.id])).get(run.id) ?? []).toEqual([]);
    await own.commit();
    const inbox = await fixture.store.inbox([run.id, parked.id]);
    expect(inbox.get(run.id)?.map(({ data }) => data)).toEqual([messages[0]?.data, messages[1]?.data]);
    expect(await fixture.task(run.id)).toMatchObject({ state: "owned", pendingMessages: 2 });
    expect(await fixture.task(parked.id)).toMatchObject({ state: "ready", pendingMessages: 1 });
  });

  test("messages that are sent on the caller's transaction do not arrive if it rolls back", async () => {
    const worker = await fixture.registerWorker();
    const run = await fixture.startOwned(worker);
    const own = await user.beginCallerTransaction();
    await fixture.store.sendInTransaction(own.tx, [newMessage(run.id, "a")]);
    await own.rollback();
    expect((await fixture.store.inbox([run.id])).get(run.id) ?? []).toEqual([]);
    expect(await fixture.task(run.id)).toMatchObject({ pendingMessages: 0 });
  });

  test("a run that is due later gets no message on a transaction: it would start before its time", async () => {
    const later = await fixture.start({ due: { kind: "in", ms: 3_600_000 } });
    const due = await fixture.start({});
    const own = await user.beginCallerTransaction();
    const sent = await fixture.store.sendInTransaction(own.tx, [newMessage(later.id, "a"), newMessage(due.id, "b")]);
    await own.commit();
    expect(sent).toEqual({ undeliverable: [], notStarted: [later.id] });
    expect(await fixture.task(later.id)).toMatchObject({ state: "parked", pendingMessages: 0 });
    expect(await fixture.task(due.id)).toMatchObject({ state: "ready", pendingMessages: 1 });
  });
}
