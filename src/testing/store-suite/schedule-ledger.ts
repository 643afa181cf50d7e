/** The ledger of schedules: its rows, its pages, and what is pending. */
import type { OccurrencePosition, OccurrenceRecord } from "../../store/contract/store.js";
import { byId, newId, uniqueName } from "./builders.js";
import type { Fixture } from "./fixture.js";
import { creation, newOccurrence, type ScheduleFixture, scheduleRow, update } from "./schedule-fixture.js";

const newestFirst = (a: OccurrencePosition, b: OccurrencePosition) =>
  b.scheduledFor - a.scheduledFor || (a.id < b.id ? 1 : -1);

export function scheduleLedgerTests(fixture: Fixture, schedules: ScheduleFixture): void {
  const { test, expect } = fixture;

  test("an occurrence is read as it was written, and written again it replaces what has changed", async () => {
    const row = await schedules.create();
    const occurrence = newOccurrence(row, {
      scheduledFor: 4_102_444_800_000,
      scheduledUntil: 4_102_444_900_000,
      count: 1_000_000,
      outcome: "buffered",
      pending: "waiting",
      detail: { missed: 3, latenessMs: 12, error: "ü 🪝", manual: true },
    });
    await schedules.apply([update(row, {}, { occurrences: [occurrence] })]);
    expect(await schedules.ledger(row.name)).toEqual([occurrence]);
    const ran: OccurrenceRecord = {
      ...occurrence,
      scheduledUntil: 4_102_444_900_001,
      count: 2,
      outcome: "ran",
      pending: "open",
      at: 77_000_000,
      detail: {},
    };
    const read = await schedules.read(row.name);
    await schedules.apply([update(read, {}, { occurrences: [ran, newOccurrence(row)] })]);
    expect((await schedules.ledger(row.name))[0]).toEqual(ran);
    expect(await schedules.ledger(row.name)).toHaveLength(2);
    await schedules.apply([update(await schedules.read(row.name), {}, { occurrences: [{ ...ran, pending: null }] })]);
    expect((await schedules.ledger(row.name))[0]).toEqual({ ...ran, pending: null });
  });

  test("the identity of an occurrence never changes", async () => {
    const row = await schedules.create();
    const occurrence = newOccurrence(row);
    await schedules.apply([update(row, {}, { occurrences: [occurrence] })]);
    const moved = { ...occurrence, schedule: uniqueName("other"), incarnation: "other", scheduledFor: 1, count: 9 };
    await schedules.apply([update(await schedules.read(row.name), {}, { occurrences: [moved] })]);
    expect(await schedules.ledger(row.name)).toEqual([{ ...occurrence, count: 9 }]);
    expect(await schedules.ledger(moved.schedule)).toEqual([]);
  });

  test("the ledger is read in pages of any size from the newest to the oldest, also within one instant", async () => {
    const row = scheduleRow();
    const other = scheduleRow();
    const occurrences = [3_000_000, 1_000_000, 2_000_000, 2_000_000, 2_000_000, 2_000_000, 1_000_000].map(
      (scheduledFor) => newOccurrence(row, { scheduledFor }),
    );
    // The instants and the ids are in opposite orders for some of them.
    await schedules.apply([
      creation(row, { occurrences: occurrences.toReversed() }),
      creation(other, { occurrences: [newOccurrence(other, { scheduledFor: 2_000_000 })] }),
    ]);
    const expected = occurrences.toSorted(newestFirst);
    for (const limit of [1, 2, 3, 7, 100]) {
      const read: OccurrenceRecord[] = [];
      for (let before: OccurrencePosition | null = null; ; ) {
        const page: readonly OccurrenceRecord[] = await fixture.store.schedules.occurrences({
          ...{ schedule: row.name, before, limit },
        });
        read.push(...page);
        const last = page.at(-1);
        if (last === undefined) break;
        before = { scheduledFor: last.scheduledFor, id: last.id };
      }
      expect(read, `pages of ${limit}`).toEqual(expected);
    }
    const before = { scheduledFor: 2_000_000, id: "ffffffff-ffff-ffff-ffff-ffffffffffff" };
    const fromInstant = await fixture.store.schedules.occurrences({ schedule: row.name, before, limit: 1 });
    expect(fromInstant).toEqual([expected[1]]);
  });

  test("pending occurrences are read by kind, the oldest of each schedule first, and counted", async () => {
    const stem = uniqueName("pending");
    const [first, second] = [scheduleRow({ name: `${stem}/a` }), scheduleRow({ name: `${stem}/b` })];
    const kinds = ["waiting", "open", null, "backfill_waiting", "waiting", "backfill_open", "waiting"] as const;
    const instants = [5, 3, 1, 2, 4, 6, 4].map((n) => n * 1_000_000);
    const ofSchedule = (row: typeof first) =>
      kinds.map((pending, index) => newOccurrence(row, { pending, scheduledFor: instants[index] as number }));
    const [ofFirst, ofSecond] = [ofSchedule(first), ofSchedule(second)];
    await schedules.apply([
      creation(second, { occurrences: ofSecond }),
      creation(first, { occurrences: ofFirst.toReversed() }),
    ]);
    const oldestFirst = (rows: readonly OccurrenceRecord[], wanted: readonly (string | null)[]) =>
      rows.filter(({ pending }) => pending !== null && wanted.includes(pending)).toSorted((a, b) => newestFirst(b, a));
    const read = (names: readonly string[], wanted: readonly NonNullable<OccurrenceRecord["pending"]>[], limit = 100) =>
      fixture.store.schedules.pending({ names, kinds: wanted, limit });
    expect(await read([first.name], ["waiting"])).toEqual(oldestFirst(ofFirst, ["waiting"]));
    const both = [...oldestFirst(ofFirst, ["open", "waiting"]), ...oldestFirst(ofSecond, ["open", "waiting"])];
    expect(await read([second.name, first.name], ["waiting", "open"])).toEqual(both);
    expect(await read([second.name, first.name], ["waiting", "open"], 5)).toEqual(both.slice(0, 5));
    expect(await read([second.name], ["backfill_open"])).toEqual(oldestFirst(ofSecond, ["backfill_open"]));
    expect(await read([], ["open"])).toEqual([]);
    expect(await read([first.name], [])).toEqual([]);
    expect(await read([uniqueName("none")], ["open"])).toEqual([]);
    const counts = (schedule: string) => [
      { schedule, pending: "backfill_open", count: 1 },
      { schedule, pending: "backfill_waiting", count: 1 },
      { schedule, pending: "open", count: 1 },
      { schedule, pending: "waiting", count: 3 },
    ];
    const counted = await fixture.store.schedules.pendingCounts([second.name, first.name, uniqueName("none")]);
    expect(counted).toEqual([...counts(first.name), ...counts(second.name)]);
    expect(await fixture.store.schedules.pendingCounts([])).toEqual([]);
  });

  test("occurrences are found by their ids, also among ids that are none", async () => {
    const [row, other] = [scheduleRow(), scheduleRow()];
    const found = [newOccurrence(row), newOccurrence(other)];
    await schedules.apply([
      creation(row, { occurrences: [found[0] as OccurrenceRecord, newOccurrence(row)] }),
      creation(other, { occurrences: [found[1] as OccurrenceRecord] }),
    ]);
    const ids = found.map(({ id }) => id);
    const read = await fixture.store.schedules.occurrencesById([...ids, ids[0] as string, newId(), "x'y", ""]);
    expect(byId(read)).toEqual(byId(found));
    expect(await fixture.store.schedules.occurrencesById([])).toEqual([]);
    expect(await fixture.store.schedules.occurrencesById(["not an id"])).toEqual([]);
  });

  test("old occurrences that are not pending are deleted, the oldest first", async () => {
    const row = scheduleRow();
    // Other tests write later ones.
    const occurrences = [30, 10, 20, 40, 50].map((at) => newOccurrence(row, { at }));
    const pending = newOccurrence(row, { at: 5, pending: "waiting" });
    await schedules.apply([creation(row, { occurrences: [...occurrences, pending] })]);
    const remaining = async () => (await schedules.ledger(row.name)).map(({ at }) => at).toSorted((a, b) => a - b);
    const { schedules: stored } = fixture.store;
    expect(await stored.deleteOccurrences({ before: 10, limit: 10 })).toBe(0);
    expect(await stored.deleteOccurrences({ before: 50, limit: 2 })).toBe(2);
    expect(await remaining()).toEqual([5, 30, 40, 50]);
    expect(await stored.deleteOccurrences({ before: 50, limit: 100 })).toBe(2);
    expect(await remaining()).toEqual([5, 50]);
    expect(await stored.deleteOccurrences({ before: 51, limit: 100 })).toBe(1);
    expect(await remaining()).toEqual([5]);
    expect(await stored.deleteOccurrences({ before: 51, limit: 100 })).toBe(0);
  });
}
