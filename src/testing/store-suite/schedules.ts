/** Schedules: guarded changes of their rows, and the runs that begin with them. */
import type { NewRun, ScheduleRecord } from "../../store/contract/store.js";
import { batch, event, finish, newRun, newRuns, routesOf, transition, uniqueName } from "./builders.js";
import type { Fixture } from "./fixture.js";
import { scheduleConcurrencyTests } from "./schedule-concurrency.js";
import { scheduleEndingTests } from "./schedule-endings.js";
import {
  creation,
  deletion,
  newOccurrence,
  runOf,
  runScheduleOf,
  ScheduleFixture,
  scheduleApp,
  scheduleRow,
  update,
} from "./schedule-fixture.js";
import { scheduleLedgerTests } from "./schedule-ledger.js";
import { scheduleReadTests } from "./schedule-reads.js";

export function scheduleTests(fixture: Fixture): void {
  const { test, expect } = fixture;
  const schedules = new ScheduleFixture(fixture);

  test("a schedule is read as it was created, and a change replaces everything but its creation time", async () => {
    const row = scheduleRow({ app: uniqueName("app"), nextFor: 7_000, nextAt: 8_000, createdAt: 123 });
    const { names } = await schedules.apply([creation(row)]);
    expect(names).toEqual(new Set([row.name]));
    expect(await schedules.read(row.name)).toEqual(row);
    const changed: ScheduleRecord = {
      ...row,
      app: null,
      setKey: uniqueName("set"),
      hash: "h2",
      incarnation: "i2",
      status: "paused",
      nextFor: null,
      nextAt: null,
      workflow: "other",
      definition: "{}",
      state: '{"accepted":1,"failures":0}',
    };
    await schedules.apply([
      { ...creation({ ...changed, createdAt: 9, revision: 99 }), expectedRevision: row.revision },
    ]);
    expect(await schedules.read(row.name)).toEqual({ ...changed, createdAt: 123, revision: row.revision + 1 });
  });

  test("a schedule is deleted, and its ledger stays; the name can be used again", async () => {
    const row = scheduleRow();
    const [first, second] = [newOccurrence(row), newOccurrence(row)];
    await schedules.apply([creation(row, { occurrences: [first] })]);
    await schedules.apply([deletion(row, { occurrences: [second] })]);
    expect(await schedules.find(row.name)).toBe(undefined);
    expect(await schedules.ledger(row.name)).toHaveLength(2);
    const again = scheduleRow({ name: row.name, createdAt: 2_000, revision: 50 });
    await schedules.apply([creation(again)]);
    expect(await schedules.read(row.name)).toEqual(again);
  });

  test("a change with a wrong revision is left out with its occurrences and runs, and the others are written", async () => {
    const [changed, stale, gone] = [await schedules.create(), await schedules.create(), scheduleRow()];
    const taken = await schedules.create();
    await schedules.apply([update(stale, { hash: "newer" })]);
    const isNew = scheduleRow();
    const changes = [
      update(stale, { hash: "older" }),
      creation({ ...taken, incarnation: "another", hash: "older" }),
      update(gone),
      update(changed, { hash: "h2" }),
      creation(isNew),
    ].map((change) => {
      const row = scheduleRow({ name: change.name });
      return { ...change, occurrences: [newOccurrence(row)], starts: [runOf(change.name)] };
    });
    const result = await fixture.store.schedules.apply({ changes });
    expect(result).toMatchObject({ kind: "applied", names: new Set([changed.name, isNew.name]) });
    expect(await schedules.read(stale.name)).toMatchObject({ hash: "newer", revision: stale.revision + 1 });
    expect(await schedules.read(taken.name)).toEqual(taken);
    expect(await schedules.find(gone.name)).toBe(undefined);
    expect(await schedules.read(changed.name)).toMatchObject({ hash: "h2", revision: changed.revision + 1 });
    const isWritten = changes.map(({ name }) => [changed.name, isNew.name].includes(name));
    for (const [index, { name, starts }] of changes.entries()) {
      expect(await schedules.ledger(name)).toHaveLength(isWritten[index] ? 1 : 0);
      expect(await fixture.store.runsById(starts.map(({ id }) => id))).toHaveLength(isWritten[index] ? 1 : 0);
    }
  });

  test("a deletion with a wrong revision, and of an unknown name, is left out", async () => {
    const row = await schedules.create();
    await schedules.apply([update(row)]);
    const changes = [deletion(row), deletion(scheduleRow()), { ...deletion(scheduleRow()), expectedRevision: null }];
    const withLedger = changes.map((change) => ({
      ...change,
      occurrences: [newOccurrence(scheduleRow({ name: change.name }))],
    }));
    const result = await fixture.store.schedules.apply({ changes: withLedger });
    expect(result).toMatchObject({ kind: "applied", names: new Set() });
    for (const { name } of changes) expect(await schedules.ledger(name)).toEqual([]);
    expect(await schedules.read(row.name)).toMatchObject({ revision: row.revision + 1 });
  });

  test("an empty batch is applied, at the store's time", async () => {
    const before = await fixture.store.now();
    const result = await schedules.apply([]);
    expect(result.at).toBeGreaterThanOrEqual(before);
    expect(result.at).toBeLessThanOrEqual(await fixture.store.now());
  });

  test("names differ in case, quotes, emoji, accents and trailing spaces", async () => {
    const stem = uniqueName("Nightly");
    const tails = ["", " ", "  ", "'", '"', "''", "`", "\\", "🪝", "\uff5e", "%", "_", "é", "e\u0301", "?", "$1", "\n"];
    const names = [...tails.map((tail) => stem + tail), stem.toLowerCase(), stem.toUpperCase()];
    const rows = names.map((name, index) => scheduleRow({ name, hash: `${index}` }));
    await schedules.apply(rows.map((row) => creation(row, { occurrences: [newOccurrence(row)] })));
    const found = await fixture.store.schedules.byName(names);
    expect(new Map(found.map(({ name, hash }) => [name, hash]))).toEqual(
      new Map(rows.map(({ name, hash }) => [name, hash])),
    );
    for (const row of rows) {
      expect(await schedules.ledger(row.name)).toMatchObject([{ schedule: row.name, incarnation: row.incarnation }]);
      const run = await schedules.startRunOf(row.name);
      const ends = transition(run.id, {
        events: [event("end")],
        next: finish("completed", { scheduleName: row.name }),
      });
      await fixture.commitTransition(null, ends);
    }
    const revisions = (await fixture.store.schedules.byName(names)).map(({ revision }) => revision);
    expect(revisions, "each end changed one schedule").toEqual(names.map(() => 2));
  });

  test("the row of an application guards the batch", async () => {
    const app = scheduleApp();
    const apply = async (expectedRevision: number | null, sets: string) => {
      const row = scheduleRow();
      const change = creation(row, { occurrences: [newOccurrence(row)], starts: [runOf(row.name)] });
      const result = await fixture.store.schedules.apply({
        changes: [change],
        app: { row: { ...app, setKey: sets, sets }, expectedRevision },
      });
      const isWritten = result.kind === "applied";
      expect((await schedules.find(row.name)) !== undefined).toBe(isWritten);
      expect(await schedules.ledger(row.name)).toHaveLength(isWritten ? 1 : 0);
      expect(await fixture.store.runsById(change.starts.map(({ id }) => id))).toHaveLength(isWritten ? 1 : 0);
      return result.kind;
    };
    expect(await fixture.store.schedules.app(app.app)).toBeNull();
    expect(await apply(1, "none"), "it does not exist").toBe("app changed");
    expect(await fixture.store.schedules.app(app.app)).toBeNull();
    expect(await apply(null, "one")).toBe("applied");
    expect(await fixture.store.schedules.app(app.app)).toEqual({ ...app, setKey: "one", sets: "one", revision: 1 });
    expect(await apply(null, "two"), "it exists").toBe("app changed");
    expect(await apply(2, "two"), "it has another revision").toBe("app changed");
    expect(await apply(1, "two")).toBe("applied");
    expect(await apply(1, "three")).toBe("app changed");
    expect(await fixture.store.schedules.app(app.app)).toEqual({ ...app, setKey: "two", sets: "two", revision: 2 });
    const inForce = await fixture.store.schedules.setKeysInForce();
    expect(inForce).toContain("two");
    expect(inForce).not.toContain("one");
  });

  test("runs begin with the change of their schedule", async () => {
    const row = scheduleRow();
    const later = (await fixture.store.now()) + 3_600_000;
    const runs = [
      runOf(row.name, { priority: 3, heroType: "user", heroId: "7", tags: ["nightly"] }),
      runOf(row.name, { due: { kind: "at", ms: later } }),
      newRun(),
    ];
    const { at } = await schedules.apply([creation(row, { starts: runs })]);
    const [first, second, third] = await Promise.all(runs.map(({ id }) => fixture.run(id)));
    expect(first).toMatchObject({
      status: "pending",
      priority: 3,
      heroId: "7",
      tags: ["nightly"],
      schedule: runs[0]?.schedule,
    });
    expect(first?.createdAt).toBeGreaterThanOrEqual(at);
    expect(second).toMatchObject({ schedule: runs[1]?.schedule });
    expect(third?.schedule).toBe(undefined);
    expect(await fixture.tasks(runs[0] as NewRun)).toMatchObject([{ state: "ready" }]);
    expect(await fixture.tasks(runs[1] as NewRun)).toMatchObject([{ state: "parked", dueAt: later }]);
    const worker = await fixture.registerWorker();
    const claimed = await fixture.claimOne(worker, routesOf(runs[0] as NewRun));
    expect(claimed).toMatchObject({ run: { id: runs[0]?.id, schedule: runs[0]?.schedule } });
  });

  test("a start with a key that an open run holds is refused, and nothing is written", async () => {
    for (const key of [{ heroKey: uniqueName("hero") }, { startKey: "same", workflow: uniqueName("keyed") }]) {
      const holder = await fixture.start(key);
      const [row, changed] = [scheduleRow(), await schedules.create()];
      const [free, taken] = [runOf(row.name), runOf(row.name, key)];
      const app = scheduleApp();
      const result = await fixture.store.schedules.apply({
        changes: [
          creation(row, { occurrences: [newOccurrence(row)], starts: [free] }),
          update(changed, { hash: "h2" }, { occurrences: [newOccurrence(changed)], starts: [taken] }),
        ],
        app: { row: app, expectedRevision: null },
      });
      const reason = "heroKey" in key ? "heroKey" : "startKey";
      expect(result).toMatchObject({
        kind: "refused",
        refused: [{ runId: taken.id, reason, existing: { id: holder.id } }],
      });
      expect(await schedules.find(row.name)).toBe(undefined);
      expect(await schedules.read(changed.name)).toEqual(changed);
      expect([...(await schedules.ledger(row.name)), ...(await schedules.ledger(changed.name))]).toEqual([]);
      expect(await fixture.store.runsById([free.id, taken.id])).toEqual([]);
      expect(await fixture.store.tasks([free.id, taken.id])).toEqual([]);
      expect(await fixture.store.schedules.app(app.app)).toBeNull();
      await schedules.apply([creation(row, { starts: [free] })]);
      const worker = await fixture.registerWorker();
      expect((await fixture.claimOne(worker, routesOf(free))).run.id).toBe(free.id);
    }
  });

  test("two starts with one hero in a batch are refused, and the hero is free afterwards", async () => {
    const row = scheduleRow();
    const heroKey = uniqueName("hero");
    const [first, second] = [runOf(row.name, { heroKey }), runOf(row.name, { heroKey })];
    const result = await fixture.store.schedules.apply({ changes: [creation(row, { starts: [first, second] })] });
    expect(result).toMatchObject({ kind: "refused" });
    const refused = "refused" in result ? result.refused.map(({ runId, reason }) => ({ runId, reason })) : [];
    expect(refused).toHaveLength(1);
    expect([first.id, second.id]).toContain(refused[0]?.runId);
    expect(refused[0]?.reason).toBe("heroKey");
    expect(await schedules.find(row.name)).toBe(undefined);
    expect(await fixture.store.runsById([first.id, second.id])).toEqual([]);
    await schedules.apply([creation(row, { starts: [second] })]);
    expect(await fixture.run(second.id)).toMatchObject({ status: "pending" });
  });

  test("a hero whose run has ended is free for the next run of the schedule", async () => {
    const row = await schedules.create();
    const heroKey = uniqueName("hero");
    const run = await schedules.startRunOf(row.name, { heroKey });
    await fixture.commitTransition(null, transition(run.id, { events: [event("end")], next: finish() }));
    const next = runOf(row.name, { heroKey });
    await schedules.apply([update(row, {}, { starts: [next] })]);
    expect(await fixture.run(next.id)).toMatchObject({ status: "pending" });
  });

  test("a run that exists already is no refusal, and stays as it is", async () => {
    const row = await schedules.create();
    const run = await schedules.startRunOf(row.name, { input: "1", heroKey: uniqueName("hero") });
    await schedules.apply([update(row, { hash: "h2" }, { starts: [{ ...run, input: "2" }, runOf(row.name)] })]);
    expect(await fixture.run(run.id)).toMatchObject({ input: "1" });
    expect(await schedules.read(row.name)).toMatchObject({ hash: "h2", revision: row.revision + 1 });
  });

  test("two hundred runs start with one change", async () => {
    const row = scheduleRow();
    const runs = newRuns(200, { schedule: runScheduleOf(row.name) });
    await schedules.apply([creation(row, { starts: runs })]);
    const ids = runs.map(({ id }) => id);
    const stored = await fixture.store.runsById(ids);
    expect(stored).toHaveLength(200);
    expect(stored.every(({ schedule }) => schedule === runs[0]?.schedule)).toBe(true);
    expect(await fixture.store.tasks(ids)).toHaveLength(200);
  });

  test("six hundred changes and three thousand occurrences are one batch", async () => {
    const rows = Array.from({ length: 600 }, () => scheduleRow({ setKey: "many" }));
    const changes = rows.map((row) => {
      const instants = [1, 2, 3, 4, 5].map((index) => 5_000_000 + index);
      return creation(row, { occurrences: instants.map((scheduledFor) => newOccurrence(row, { scheduledFor })) });
    });
    await schedules.apply(changes);
    const names = rows.map(({ name }) => name);
    const read = await fixture.store.schedules.byName(names);
    expect(read).toHaveLength(600);
    const ids = changes.flatMap(({ occurrences }) => occurrences.map(({ id }) => id));
    expect(await fixture.store.schedules.occurrencesById(ids)).toHaveLength(3_000);
    await schedules.apply(read.map((row) => update(row, { hash: "h2" })));
    const changed = await fixture.store.schedules.byName(names);
    expect(changed.filter(({ hash, revision }) => hash === "h2" && revision === 2)).toHaveLength(600);
    await schedules.apply(changed.map((row) => deletion(row)));
    expect(await fixture.store.schedules.byName(names)).toEqual([]);
  });

  test("rows that are large together are one batch", async () => {
    const definition = JSON.stringify("ü".repeat(300_000));
    const rows = Array.from({ length: 60 }, () => scheduleRow({ definition, setKey: "large" }));
    const withLedger = rows.map((row) =>
      creation(row, { occurrences: [newOccurrence(row, { detail: { error: definition } })] }),
    );
    await schedules.apply(withLedger);
    for (const row of rows.slice(-1)) {
      expect(await schedules.read(row.name)).toEqual(row);
      expect(await schedules.ledger(row.name)).toMatchObject([{ detail: { error: definition } }]);
    }
    await schedules.apply(rows.map((row) => deletion(row)));
  });

  test("a run keeps its schedule wherever it is read, and other runs have none", async () => {
    const worker = await fixture.registerWorker();
    const schedule = runScheduleOf('a "quoted" 🪝');
    const workflow = uniqueName("scheduled");
    const run = await fixture.start({ workflow, schedule });
    const plain = await fixture.start({ workflow });
    await fixture.startAll([
      ...newRuns(1, { workflow, schedule, startedBy: '{"by":"ada"}' }),
      ...newRuns(1, { workflow, startedBy: '{"by":"ada"}' }),
      ...newRuns(1, { workflow }),
    ]);
    expect(await fixture.run(run.id)).toMatchObject({ schedule });
    expect("schedule" in (await fixture.run(plain.id))).toBe(false);
    const listed = await fixture.store.runs({ workflow, limit: 10 });
    const origins = listed.map((record) => `${record.schedule} ${record.startedBy}`);
    expect(origins.toSorted()).toEqual(
      [
        `${schedule} undefined`,
        "undefined undefined",
        `${schedule} {"by":"ada"}`,
        'undefined {"by":"ada"}',
        "undefined undefined",
      ].toSorted(),
    );
    const { tasks } = await fixture.claim(worker, [{ workflow, version: "" }]);
    expect(tasks.filter((task) => task.run.schedule === schedule)).toHaveLength(2);
    const child = newRuns(1, { parentId: run.id, parentNode: "child" });
    await fixture.commit(batch(worker, [transition(run.id, { events: [event("fan")], newChildren: child })]));
    expect("schedule" in (await fixture.run(child[0]?.id as string))).toBe(false);
  });

  scheduleReadTests(fixture, schedules);
  scheduleLedgerTests(fixture, schedules);
  scheduleEndingTests(fixture, schedules);
  scheduleConcurrencyTests(fixture, schedules);
}
