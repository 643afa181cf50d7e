/** The end of a run makes its schedule due, in the same commit. */
import type { Fence, NewRun, ScheduleRecord } from "../../store/contract/store.js";
import { batch, event, finish, newMessage, park, transition, uniqueName } from "./builders.js";
import type { Fixture } from "./fixture.js";
import { endedBatch, endOf, runOf, runScheduleOf, type ScheduleFixture, update } from "./schedule-fixture.js";

export function scheduleEndingTests(fixture: Fixture, schedules: ScheduleFixture): void {
  const { test, expect } = fixture;

  const startOwnedOf = (fence: Fence, { name }: ScheduleRecord): Promise<NewRun> =>
    fixture.startOwned(fence, { schedule: runScheduleOf(name) });

  const expectDue = async (before: ScheduleRecord, nextAt: number) => {
    const row = await schedules.read(before.name);
    expect(row.revision).toBeGreaterThan(before.revision);
    expect(row, "nothing else has changed").toEqual({ ...before, nextAt, revision: row.revision });
  };

  test("a run that a worker or a client ends makes its schedule due and raises its revision", async () => {
    const worker = await fixture.registerWorker();
    const future = (await fixture.store.now()) + 3_600_000;
    for (const nextAt of [null, future, 1_000]) {
      for (const fence of [worker, null]) {
        for (const status of ["completed", "failed", "canceled"] as const) {
          const row = await schedules.create({ nextFor: future, nextAt });
          const run = fence === null ? await schedules.startRunOf(row.name) : await startOwnedOf(fence, row);
          const next = finish(status, { scheduleName: row.name });
          const { at } = await fixture.commitTransition(fence, transition(run.id, { events: [event("end")], next }));
          await expectDue(row, nextAt === 1_000 ? 1_000 : at);
          expect(await fixture.run(run.id)).toMatchObject({ status, schedule: run.schedule });
          expect(await schedules.find(`${row.name} `)).toBe(undefined);
        }
      }
    }
  });

  test("a worker that has read the schedule before its run ended cannot change it", async () => {
    const row = await schedules.create();
    const run = await schedules.startRunOf(row.name);
    await fixture.commit(endedBatch(run.id, row.name));
    const change = update(row, { nextAt: null }, { starts: [runOf(row.name)] });
    expect(await fixture.store.schedules.apply({ changes: [change] })).toMatchObject({ names: new Set() });
    expect((await schedules.read(row.name)).nextAt).not.toBeNull();
  });

  test("several runs of one schedule, and of several, end in one commit", async () => {
    const worker = await fixture.registerWorker();
    const rows = [await schedules.create(), await schedules.create(), await schedules.create()];
    const untouched = await schedules.create();
    const pairs = [0, 1, 1, 2, 1, 0].map((index) => rows[index] as ScheduleRecord);
    for (const fence of [worker, null]) {
      const before = await fixture.store.schedules.byName(rows.map(({ name }) => name));
      const runs: NewRun[] = [];
      for (const row of pairs)
        runs.push(fence === null ? await schedules.startRunOf(row.name) : await startOwnedOf(fence, row));
      const plain = fence === null ? await fixture.start() : await fixture.startOwned(fence);
      const kept = fence === null ? await fixture.start() : await fixture.startOwned(fence);
      const ends = runs.map(({ id }, index) => endOf(id, (pairs[index] as ScheduleRecord).name));
      const others = [
        transition(plain.id, { events: [event("end")], next: finish() }),
        transition(kept.id, { events: [event("wait")], next: park() }),
      ];
      const { at } = await fixture.commit(batch(fence, [...others, ...ends]));
      for (const row of before) await expectDue(row, row.nextAt ?? at);
    }
    expect(await schedules.read(untouched.name)).toEqual(untouched);
  });

  test("the schedule of a run may have been deleted", async () => {
    const worker = await fixture.registerWorker();
    const row = await schedules.create();
    const gone = uniqueName("gone");
    const [first, second] = [await startOwnedOf(worker, row), await startOwnedOf(worker, row)];
    const { at } = await fixture.commit(batch(worker, [endOf(first.id, gone), endOf(second.id, row.name)]));
    expect(await fixture.run(first.id)).toMatchObject({ status: "completed" });
    expect(await schedules.find(gone)).toBe(undefined);
    await expectDue(row, at);
    const third = await schedules.startRunOf(gone);
    await fixture.commit(endedBatch(third.id, gone));
    expect(await fixture.run(third.id)).toMatchObject({ status: "completed" });
  });

  test("a refused commit leaves the schedule unchanged", async () => {
    const [worker, dead] = [await fixture.registerWorker(), await fixture.registerWorker()];
    const row = await schedules.create();
    const [owned, ofDead] = [await startOwnedOf(worker, row), await startOwnedOf(dead, row)];
    await fixture.store.deregisterWorker(dead);
    const refusals = [
      await fixture.store.commit(batch(dead, [endOf(ofDead.id, row.name)])),
      await fixture.store.commit(batch(worker, [{ ...endOf(owned.id, row.name), afterSeq: 5 }])),
      await fixture.store.commit(batch(null, [endOf(owned.id, row.name)])),
      await fixture.store.commit(batch(worker, [endOf(ofDead.id, row.name)])),
    ];
    expect(refusals.map(({ kind }) => kind)).toEqual(["fenced", "conflict", "conflict", "conflict"]);
    await fixture.store.send([newMessage(owned.id, "unread")]);
    const withUnread = await fixture.store.commit(batch(worker, [endOf(owned.id, row.name)]));
    expect(withUnread).toMatchObject({ kind: "conflict", hasUnreadMessages: true });
    const free = await startOwnedOf(worker, row);
    const partly = batch(worker, [endOf(free.id, row.name), { ...endOf(owned.id, row.name), afterSeq: 7 }]);
    expect(await fixture.store.commit(partly)).toMatchObject({ kind: "conflict", runId: owned.id });
    expect(await schedules.read(row.name)).toEqual(row);
    expect(await fixture.run(free.id)).toMatchObject({ status: "running" });
  });

  test("the transaction of a step that is the last ends its run and makes the schedule due", async () => {
    const worker = await fixture.registerWorker();
    const [row, unchanged] = [await schedules.create(), await schedules.create()];
    const [run, other] = [await startOwnedOf(worker, row), await startOwnedOf(worker, unchanged)];
    const transaction = await fixture.store.beginTransaction();
    const result = await transaction.commit(batch(worker, [endOf(run.id, row.name)]));
    expect(result).toMatchObject({ kind: "committed" });
    await expectDue(row, (result as { at: number }).at);
    const refused = await fixture.store.beginTransaction();
    const wrong = batch(worker, [{ ...endOf(other.id, unchanged.name), afterSeq: 3 }]);
    expect(await refused.commit(wrong)).toMatchObject({ kind: "conflict" });
    expect(await schedules.read(unchanged.name)).toEqual(unchanged);
  });
}
