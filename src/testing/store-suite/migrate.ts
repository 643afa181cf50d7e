/** Migrations: many processes at once, again and again, on an empty database and on one that is up to date. */
import type { Store } from "../../store/store.js";
import type { Fixture } from "./fixture.js";

export function migrateTests(fixture: Fixture): void {
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
