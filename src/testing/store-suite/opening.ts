/** Opening, migrating (repeatedly, and by many processes at once) and closing. */
import type { Store } from "../../store/contract/store.js";
import { batch, event, finish, newRuns, transition } from "./builders.js";
import type { Fixture } from "./fixture.js";

export function openingTests(fixture: Fixture): void {
  const { test, expect } = fixture;

  test("a migrated store has nothing pending, and may be migrated again", async () => {
    const run = await fixture.start();
    await fixture.store.migrate();
    expect(await fixture.store.pendingMigrations()).toEqual([]);
    expect(await fixture.run(run.id)).toMatchObject({ status: "pending" });
  });

  test("a store has a description and no password in it", async () => {
    expect(fixture.store.description.length).toBeGreaterThan(0);
    expect(/:\/\/[^/]*:[^/]*@/.test(fixture.store.description)).toBe(false);
  });

  if (fixture.harness.sharesAcrossInstances) {
    test("closing waits for the calls in flight, and loses none of them", async () => {
      const store = await fixture.harness.open();
      const runs = newRuns(20);
      const commits = Promise.allSettled(runs.map((run) => store.commit(batch(null, [], [run]))));
      const reads = Promise.allSettled(runs.map(({ id }) => store.run(id)));
      await store.close();
      for (const result of await commits) expect(result).toMatchObject({ value: { kind: "committed" } });
      for (const result of await reads) expect(result).toMatchObject({ status: "fulfilled" });
      expect(await fixture.store.runsById(runs.map(({ id }) => id))).toHaveLength(20);
    });

    test("an instance reads at once what another has written", async () => {
      const other = await fixture.openAnother();
      for (let round = 0; round < 10; round += 1) {
        const run = await fixture.start();
        expect(await fixture.run(run.id, other)).toMatchObject({ status: "pending" });
        await fixture.commitTransition(null, transition(run.id, { events: [event("end")], next: finish() }), other);
        expect(await fixture.run(run.id)).toMatchObject({ status: "completed" });
      }
    });
  }

  if (!fixture.harness.hasMigrations) return;

  test("eight instances migrate an empty database at once", async () => {
    await fixture.tearDown();
    await fixture.harness.fresh();
    const stores: Store[] = await Promise.all(Array.from({ length: 8 }, () => fixture.harness.open()));
    try {
      const pending = await (stores[0] as Store).pendingMigrations();
      expect(pending.length).toBeGreaterThan(0);
      expect(pending).toEqual([...pending].sort((a, b) => a - b));
      await Promise.all(stores.map((store) => store.migrate()));
      for (const store of stores) expect(await store.pendingMigrations()).toEqual([]);
      await Promise.all(stores.map((store) => fixture.start({}, store)));
    } finally {
      await Promise.all(stores.map((store) => store.close()));
    }
    await fixture.setUp();
  });
}
