/** Many that change schedules at once: one succeeds for each revision, and no deadlock reaches a caller. */
import type { ScheduleRecord, ScheduleResult, Store } from "../../store/contract/store.js";
import { batch, newRuns, uniqueName } from "./builders.js";
import type { Fixture } from "./fixture.js";
import {
  creation,
  deletion,
  endOf,
  newOccurrence,
  runOf,
  runScheduleOf,
  type ScheduleFixture,
  scheduleApp,
  scheduleRow,
  update,
} from "./schedule-fixture.js";

const longTimeoutMs = 300_000;

const namesOf = (result: ScheduleResult): ReadonlySet<string> =>
  result.kind === "applied" ? result.names : new Set<string>();

export function scheduleConcurrencyTests(fixture: Fixture, schedules: ScheduleFixture): void {
  const { test, expect } = fixture;

  const openStores = async (): Promise<Store[]> => [fixture.store, await fixture.openAnother()];

  test(
    "of several that create one name, one succeeds, and the row never vanishes",
    async () => {
      const stores = await openStores();
      for (let round = 0; round < 10; round += 1) {
        const names = [uniqueName("contested"), uniqueName("contested")];
        const results = await Promise.all(
          Array.from({ length: 8 }, async (_, index) => {
            const store = stores[index % 2] as Store;
            const order = index % 3 === 0 ? names : names.toReversed();
            const rows = order.map((name) => scheduleRow({ name }));
            const changes = rows.map((row) => creation(row, { starts: [runOf(row.name)] }));
            const applied = namesOf(await store.schedules.apply({ changes }));
            expect(await store.schedules.byName(names), "the row stays").toHaveLength(2);
            return changes.map(({ name, row, starts }) => ({ row, run: starts[0], isApplied: applied.has(name) }));
          }),
        );
        for (const name of names) {
          const attempts = results.flat().filter(({ row }) => row?.name === name);
          const winners = attempts.filter(({ isApplied }) => isApplied);
          expect(winners).toHaveLength(1);
          expect(await schedules.read(name)).toEqual(winners[0]?.row);
          const runs = await fixture.store.runsById(attempts.map(({ run }) => run?.id as string));
          expect(runs.map(({ id }) => id)).toEqual([winners[0]?.run?.id]);
        }
      }
    },
    longTimeoutMs,
  );

  test(
    "of several that apply a change to one revision, one succeeds",
    async () => {
      const stores = await openStores();
      const row = await schedules.create();
      const won: number[] = [];
      const startedIds: string[] = [];
      const appliers = Array.from({ length: 6 }, async (_, number) => {
        const store = stores[number % 2] as Store;
        for (let round = 0; round < 15; round += 1) {
          const read = await schedules.read(row.name, store);
          const run = runOf(row.name);
          const occurrences = [newOccurrence(read, { id: run.id, scheduledFor: read.revision })];
          const change = update(read, { hash: `${read.revision}` }, { occurrences, starts: [run] });
          if (!namesOf(await store.schedules.apply({ changes: [change] })).has(row.name)) continue;
          won.push(read.revision);
          startedIds.push(run.id);
        }
      });
      await Promise.all(appliers);
      won.sort((a, b) => a - b);
      expect(won, "each revision has one successor").toEqual(won.map((_, index) => row.revision + index));
      expect((await schedules.read(row.name)).revision).toBe(row.revision + won.length);
      const ledger = await schedules.ledger(row.name);
      expect(ledger.map(({ id }) => id).toSorted()).toEqual(startedIds.toSorted());
      expect(await fixture.store.runsById(startedIds)).toHaveLength(won.length);
    },
    longTimeoutMs,
  );

  test("of several that put the set of an application, one succeeds for each revision", async () => {
    const stores = await openStores();
    const app = scheduleApp();
    for (let revision: number | null = null; revision === null || revision < 4; revision = (revision ?? 0) + 1) {
      const expectedRevision: number | null = revision;
      const results = await Promise.all(
        Array.from({ length: 6 }, (_, index) =>
          (stores[index % 2] as Store).schedules.apply({
            changes: [creation(scheduleRow())],
            app: { row: { ...app, sets: `[${index}]` }, expectedRevision },
          }),
        ),
      );
      expect(results.filter(({ kind }) => kind === "applied")).toHaveLength(1);
      expect(results.filter(({ kind }) => kind === "app changed")).toHaveLength(5);
      const sets = `[${results.findIndex(({ kind }) => kind === "applied")}]`;
      expect(await fixture.store.schedules.app(app.app)).toEqual({ ...app, sets, revision: (revision ?? 0) + 1 });
    }
  });

  test("a deletion and a change at once: one of them succeeds", async () => {
    const [one, other] = (await openStores()) as [Store, Store];
    for (let round = 0; round < 20; round += 1) {
      const row = await schedules.create();
      const [changed, deleted] = await Promise.all([
        one.schedules.apply({ changes: [update(row, { hash: "h2" })] }),
        other.schedules.apply({ changes: [deletion(row)] }),
      ]);
      expect(namesOf(changed).size + namesOf(deleted).size).toBe(1);
      expect((await schedules.find(row.name))?.hash).toBe(namesOf(changed).size === 1 ? "h2" : undefined);
    }
  });

  test(
    "changes of schedules and ends of their runs, in opposite orders, do not deadlock",
    async () => {
      const stores = await openStores();
      const stem = uniqueName("crossed");
      // U+FF5E and the emoji have opposite orders in bytes and in UTF-16.
      const rows = ["a", "b", "\uff5e", "🪝"].map((tail) => scheduleRow({ name: `${stem}${tail}`, setKey: "crossed" }));
      await schedules.apply(rows.map((row) => creation(row)));
      const names = rows.map(({ name }) => name);
      const rounds = fixture.rounds(120);
      let appliedCount = 0;
      const appliers = stores.map(async (store, number) => {
        for (let round = 0; round < rounds; round += 1) {
          const read = await store.schedules.byName(names);
          const order = (number + round) % 2 === 0 ? read : read.toReversed();
          const changes = order.map((row: ScheduleRecord) => {
            const run = runOf(row.name);
            return update(row, { nextAt: null }, { occurrences: [newOccurrence(row, { id: run.id })], starts: [run] });
          });
          const applied = namesOf(await store.schedules.apply({ changes }));
          appliedCount += applied.size;
        }
      });
      const finishers = stores.map(async (store, number) => {
        const worker = await fixture.registerWorker({}, store);
        for (let round = 0; round < rounds; round += 1) {
          const order = (number + round) % 2 === 0 ? names : names.toReversed();
          const runs = order.flatMap((name) => newRuns(1, { due: { kind: "owned" }, schedule: runScheduleOf(name) }));
          await fixture.startAll(runs, worker, store);
          const ends = runs.map(({ id }, index) => endOf(id, order[index] as string));
          expect(await store.commit(batch(worker, ends)), `round ${round}`).toMatchObject({ kind: "committed" });
        }
      });
      await Promise.all([...appliers, ...finishers]);
      const revisions = (await fixture.store.schedules.byName(names)).map(({ revision }) => revision);
      const expected = names.length * (1 + finishers.length * rounds) + appliedCount;
      expect(revisions.reduce((sum, revision) => sum + revision, 0)).toBe(expected);
      const ledgers = await Promise.all(names.map((name) => schedules.ledger(name)));
      expect(ledgers.flat()).toHaveLength(appliedCount);
    },
    longTimeoutMs,
  );

  test(
    "a schedule starts a run for the hero whose run is just ending, and no deadlock reaches a caller",
    async () => {
      const [one, other] = (await openStores()) as [Store, Store];
      const worker = await fixture.registerWorker({}, one);
      const row = await schedules.create();
      const heroKey = uniqueName("hero");
      for (let round = 0; round < 40; round += 1) {
        const [run] = newRuns(1, { due: { kind: "owned" }, schedule: runScheduleOf(row.name), heroKey });
        if (run === undefined) return;
        await fixture.startAll([run], worker, one);
        const read = await schedules.read(row.name, other);
        const next = runOf(row.name, { heroKey });
        const change = update(read, {}, { starts: [next] });
        const [ended, result] = await Promise.all([
          one.commit(batch(worker, [endOf(run.id, row.name)])),
          other.schedules.apply({ changes: [change] }),
        ]);
        expect(ended).toMatchObject({ kind: "committed" });
        expect(["applied", "refused"]).toContain(result.kind);
        if (!namesOf(result).has(row.name)) continue;
        await fixture.commit(batch(null, [endOf(next.id, row.name)]));
      }
    },
    longTimeoutMs,
  );
}
