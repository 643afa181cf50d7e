import { connect } from "pawl";
import { expect, test } from "vitest";
import { emptyDatabase, forEachStore } from "../support/databases.js";
import { longRun, seedRuns } from "./seed.js";
import type { SeededKind } from "./seed-dialects.js";

const kinds: readonly SeededKind[] = ["postgres", "mysql", "sqlite"];

forEachStore<SeededKind>((kind) => {
  test("the seeded rows are like those of real runs: verify finds no difference", { timeout: 300_000 }, async () => {
    const database = await emptyDatabase(kind);
    const pawl = await connect(database.url, { notify: false });
    try {
      const seeded = await seedRuns(kind, database.url, 2_200);
      const { runs, differences } = await pawl.verify();
      expect(differences.slice(0, 5)).toEqual([]);
      expect(runs).toBeGreaterThan(2_200 + longRun.children);
      expect(await pawl.run(seeded.longRunId).status()).toBe("waiting");
    } finally {
      await pawl.close();
      await database.drop();
    }
  });
}, kinds);
