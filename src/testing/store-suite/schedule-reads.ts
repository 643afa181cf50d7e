/** Reading schedules: those that are due, by name, in pages, and what a heartbeat tells about them. */
import { systemRuntime } from "../../runtime/system.js";
import type { ScheduleRecord, Store } from "../../store/contract/store.js";
import { uniqueName } from "./builders.js";
import type { Fixture } from "./fixture.js";
import { creation, deletion, type ScheduleFixture, scheduleApp, scheduleRow, update } from "./schedule-fixture.js";

const hourMs = 3_600_000;

export function scheduleReadTests(fixture: Fixture, schedules: ScheduleFixture): void {
  const { test, expect } = fixture;

  const namesOf = (rows: readonly ScheduleRecord[]) => rows.map(({ name }) => name);

  test("due schedules are those of the sets whose instant has come, the longest waiting first", async () => {
    const { store } = fixture;
    const [setKey, otherSet] = [uniqueName("set"), uniqueName("set")];
    const now = await store.now();
    const stem = uniqueName("due");
    const rowAt = (name: string, nextAt: number | null, key = setKey) =>
      scheduleRow({ name: `${stem}/${name}`, nextAt, setKey: key });
    const rows = {
      third: rowAt("b", now - 1_000),
      second: rowAt("a", now - 1_000),
      first: rowAt("c", now - 2_000),
      later: rowAt("d", now + hourMs),
      never: rowAt("e", null),
      ofOther: rowAt("f", now - 1_500, otherSet),
      ofNone: rowAt("g", now - hourMs, uniqueName("set")),
    };
    await schedules.apply(Object.values(rows).map((row) => creation(row)));
    const due = await store.schedules.due({ setKeys: [setKey, otherSet], limit: 10 });
    expect(due?.schedules).toEqual([rows.first, rows.ofOther, rows.second, rows.third]);
    expect(due?.now).toBeGreaterThanOrEqual(now);
    expect(due?.now).toBeLessThanOrEqual(await store.now());
    const limited = await store.schedules.due({ setKeys: [setKey], limit: 2 });
    expect(namesOf(limited?.schedules ?? [])).toEqual(namesOf([rows.first, rows.second]));
    expect(await store.schedules.due({ setKeys: [uniqueName("set")], limit: 10 })).toBeNull();
    expect(await store.schedules.due({ setKeys: [], limit: 10 })).toBeNull();
  });

  test("schedules become due by the virtual clock alone", async () => {
    const start = systemRuntime.now() + 50 * 365 * 24 * hourMs;
    const time = { now: start };
    const store = await fixture.open({ clock: () => time.now });
    const row = scheduleRow({ nextAt: start + 1_000 });
    expect((await schedules.apply([creation(row)], store)).at).toBe(start);
    const due = () => store.schedules.due({ setKeys: [row.setKey], limit: 1 });
    expect(await due()).toBeNull();
    time.now += 999;
    expect(await due()).toBeNull();
    time.now += 1;
    expect(await due()).toEqual({ now: start + 1_000, schedules: [row] });
  });

  test("the next instant of one or two sets is the earliest of any status", async () => {
    const { store } = fixture;
    const [one, two, empty] = [uniqueName("set"), uniqueName("set"), uniqueName("set")];
    await schedules.create({ setKey: one, nextAt: 5_000 });
    await schedules.create({ setKey: one, nextAt: 3_000, status: "paused" });
    await schedules.create({ setKey: one, nextAt: null });
    const first = await schedules.create({ setKey: two, nextAt: 2_000 });
    await schedules.create({ setKey: empty, nextAt: null });
    expect(await store.schedules.nextAt([one])).toBe(3_000);
    expect(await store.schedules.nextAt([one, two])).toBe(2_000);
    expect(await store.schedules.nextAt([two, one])).toBe(2_000);
    expect(await store.schedules.nextAt([empty, one])).toBe(3_000);
    expect(await store.schedules.nextAt([empty])).toBeNull();
    expect(await store.schedules.nextAt([empty, uniqueName("set")])).toBeNull();
    await schedules.apply([update(first, { nextAt: null })]);
    expect(await store.schedules.nextAt([one, two])).toBe(3_000);
  });

  test("schedules are read by name and in pages, ordered by name, also of one application", async () => {
    const { store } = fixture;
    const app = uniqueName("app");
    const stem = uniqueName("page");
    // U+FF5E comes before the emoji in bytes, and after it in UTF-16.
    const tails = ["", " ", "A", "Z", "a", "b", "é", "\uff5e", "🪝"];
    const rows = tails.map((tail, index) =>
      scheduleRow({ name: stem + tail, app: index % 2 === 0 ? app : uniqueName("app") }),
    );
    await schedules.apply(rows.toReversed().map((row) => creation(row)));
    const shuffled = [rows[3], rows[0], rows[8], rows[7], rows[1]] as ScheduleRecord[];
    const byName = await store.schedules.byName([...namesOf(shuffled), uniqueName("none"), stem]);
    expect(byName).toEqual([rows[0], rows[1], rows[3], rows[7], rows[8]]);
    expect(await store.schedules.byName([])).toEqual([]);

    const readPages = async (ofApp: { readonly app?: string }) => {
      const names: string[] = [];
      for (let after: string | null = null; ; ) {
        const page: readonly ScheduleRecord[] = await store.schedules.list({ after, limit: 2, ...ofApp });
        names.push(...namesOf(page));
        if (page.length < 2) return names;
        after = page.at(-1)?.name as string;
      }
    };
    expect(await readPages({ app })).toEqual(namesOf(rows.filter((row) => row.app === app)));
    const all = await readPages({});
    expect(all.filter((name) => name.startsWith(stem))).toEqual(namesOf(rows));
    expect(new Set(all).size).toBe(all.length);
    expect(await store.schedules.list({ after: null, limit: 2, app: uniqueName("app") })).toEqual([]);
  });

  test("a heartbeat tells when the next schedule of the worker and of the API is due, and which set is in force", async () => {
    const time = { now: systemRuntime.now() + hourMs };
    const store: Store = await fixture.open({ clock: () => time.now });
    const [setKey, otherSet] = [uniqueName("set"), uniqueName("set")];
    const fence = await fixture.registerWorker({ scheduleSet: setKey }, store);
    const app = scheduleApp({ setKey });
    const interest = { app: app.app, setKey };
    const heartbeat = async (schedules?: { app: string | null; setKey: string }) => {
      const { nextScheduleInMs, scheduleSetInForce } = await store.heartbeat(fence, undefined, schedules);
      return [nextScheduleInMs, scheduleSetInForce];
    };
    expect(await heartbeat(interest)).toEqual([null, null]);
    expect(await heartbeat()).toEqual([null, null]);
    await store.schedules.apply({ changes: [], app: { row: app, expectedRevision: null } });
    expect(await heartbeat(interest)).toEqual([null, setKey]);
    const rows = [
      scheduleRow({ setKey, nextAt: time.now + 5_000 }),
      scheduleRow({ setKey, nextAt: null }),
      scheduleRow({ setKey: otherSet, nextAt: time.now - hourMs }),
    ];
    await schedules.apply(
      rows.map((row) => creation(row)),
      store,
    );
    expect(await heartbeat(interest)).toEqual([5_000, setKey]);
    expect(await heartbeat()).toEqual([null, null]);
    const ofApi = scheduleRow({ setKey: "", nextAt: time.now + 2_000 });
    await schedules.apply([creation(ofApi)], store);
    expect(await heartbeat(interest)).toEqual([2_000, setKey]);
    expect(await heartbeat({ app: null, setKey: "" })).toEqual([2_000, null]);
    expect(await heartbeat()).toEqual([2_000, null]);
    expect(await heartbeat({ app: uniqueName("app"), setKey: otherSet })).toEqual([-hourMs, null]);
    time.now += 3_000;
    expect(await heartbeat(interest)).toEqual([-1_000, setKey]);
    await schedules.apply([deletion(ofApi)], store);
    expect(await heartbeat(interest)).toEqual([2_000, setKey]);
    await store.deregisterWorker(fence);
    expect(await heartbeat(interest)).toEqual([null, null]);
  });

  test("a heartbeat counts by the store's own clock", async () => {
    const fence = await fixture.registerWorker();
    const row = await schedules.create({ nextAt: (await fixture.store.now()) + 24 * hourMs });
    const { nextScheduleInMs } = await fixture.store.heartbeat(fence, undefined, { app: null, setKey: row.setKey });
    expect(nextScheduleInMs).toBeLessThanOrEqual(24 * hourMs);
    expect(nextScheduleInMs).toBeGreaterThan(23 * hourMs);
  });
}
