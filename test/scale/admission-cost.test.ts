/** What an admission touches does not grow with the number of runs that wait for slots; `npm run test:scale` has 100,000. */
import { expect, onTestFinished, test } from "vitest";
import { forEachStore, testDatabase } from "../support/databases.js";
import { admissionCosts, allowedGrowth } from "./admission-cost.js";
import type { SeededKind } from "./seed-dialects.js";

const [few, many] = [100, 5_000];

const kinds: readonly SeededKind[] = ["postgres", "mysql", "sqlite"];
// The pages that SQLite reads are counted by Linux.
const countedKinds = kinds.filter((kind) => kind !== "sqlite" || process.platform === "linux");

forEachStore<SeededKind>((kind) => {
  test(`an admission beside ${many} blocked runs touches no more than beside ${few}`, async () => {
    const { url, drop } = await testDatabase(kind);
    onTestFinished(drop);
    const [before, after] = await admissionCosts(kind, url, [few, many]);
    if (before === undefined || after === undefined) throw new Error("Nothing was counted.");
    expect(after.touched, after.details.join("\n")).toBeLessThanOrEqual(before.touched + allowedGrowth);
    expect(after.statements).toBeLessThanOrEqual(before.statements);
  });
}, countedKinds);
