/**
 * The cost of no question grows with the tables: a short form of `npm run test:scale`, with limits that are lowered so that
 * a small table is enough to reach them. A missing index makes a question read thousands of rows here.
 */
import { afterAll, beforeAll, expect, test } from "vitest";
import { emptyDatabase, forEachStore, openStore, type TestDatabase } from "../support/databases.js";
import { type Cost, measureQuestions } from "./measure.js";
import { seedRuns } from "./seed.js";
import type { SeededKind } from "./seed-dialects.js";

const [fewRuns, manyRuns] = [6_600, 33_000];
/** Instead of 10,000. */
const maxExamined = 60;
/**
 * Indexes become a level deeper, and of some statuses there are fewer than 60 runs in the small table. Each run that is
 * looked up costs up to eight pages.
 */
const allowedGrowth = 400;

const kinds: readonly SeededKind[] = ["postgres", "mysql", "sqlite"];
// The pages that SQLite reads are counted by Linux.
const countedKinds = kinds.filter((kind) => kind !== "sqlite" || process.platform === "linux");

forEachStore<SeededKind>((kind) => {
  let database: TestDatabase;
  let before: ReadonlyMap<string, Cost>;
  let after: ReadonlyMap<string, Cost>;

  beforeAll(async () => {
    database = await emptyDatabase(kind);
    const store = await openStore(kind, database.url);
    await store.migrate();
    await store.close();
    // Two days of figures are more than the tables contain.
    const options = { maxExamined, only: (question: string) => question !== "figures(), two days" };
    const few = await seedRuns(kind, database.url, fewRuns);
    before = await measureQuestions(kind, database.url, few, options);
    const many = await seedRuns(kind, database.url, manyRuns, few);
    after = await measureQuestions(kind, database.url, many, options);
  });
  afterAll(() => database.drop());

  test(`no question touches more when there are ${manyRuns / fewRuns} times as many runs`, () => {
    const grown = [...after].flatMap(([question, { touched, details }]) => {
      const touchedBefore = before.get(question)?.touched ?? 0;
      return touched <= touchedBefore + allowedGrowth
        ? []
        : [`${question}: ${touchedBefore} → ${touched}\n${details.slice(0, 2).join("\n")}`];
    });
    expect(grown).toEqual([]);
    expect(after.size).toBeGreaterThan(60);
  });

  test("no question touches thousands of pages or rows", () => {
    const expensive = [...after].filter(([, { touched }]) => touched > 3_000);
    expect(expensive.map(([question, { touched }]) => `${question}: ${touched}`)).toEqual([]);
  });

  test("no question sends more statements when there are more runs", () => {
    for (const [question, { statements }] of after)
      expect(statements, question).toBeLessThanOrEqual((before.get(question)?.statements ?? 0) + 4);
  });
}, countedKinds);
