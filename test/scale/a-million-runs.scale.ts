/**
 * `npm run test:scale`: with a million finished and 100,000 open runs, each question touches as much as with a tenth of
 * them, and no more than its bound.
 */
import { expect, test } from "vitest";
import { emptyDatabase, isLeftOut, openStore } from "../support/databases.js";
import { boundOf } from "./bounds.js";
import { type Cost, measureQuestions } from "./measure.js";
import { seedRuns } from "./seed.js";
import type { SeededKind } from "./seed-dialects.js";

/** Of 11 runs one is open. */
const allRuns = Number(process.env.PAWL_SCALE_RUNS ?? 1_100_000);
const timeout = 3_600_000;

type Costs = ReadonlyMap<string, Cost>;

const units = { postgres: "pages", mysql: "rows" } as const;

for (const kind of ["postgres", "mysql"] as const) {
  test.skipIf(isLeftOut(kind))(`on ${kind}, no question exceeds its bound`, { timeout }, async () => {
    const database = await emptyDatabase(kind);
    try {
      await migrate(kind, database.url);
      const few = await seedRuns(kind, database.url, allRuns / 10);
      const before = await measureQuestions(kind, database.url, few);
      const many = await seedRuns(kind, database.url, allRuns, few);
      const after = await measureQuestions(kind, database.url, many);
      const pooled = kind === "postgres" ? await measureQuestions(kind, database.url, many, { isPooled: true }) : null;
      console.log(tableOf(kind, before, after, pooled));
      expect(violationsOf(kind, after)).toEqual([]);
      if (pooled !== null) expect(violationsOf(kind, pooled), "behind a pooler").toEqual([]);
    } finally {
      await database.drop();
    }
  });
}

async function migrate(kind: SeededKind, url: string): Promise<void> {
  const store = await openStore(kind, url);
  await store.migrate();
  await store.close();
}

function violationsOf(kind: keyof typeof units, costs: Costs): string[] {
  return [...costs].flatMap(([question, { touched, details }]) => {
    const bound = boundOf(question)[units[kind]];
    return touched <= bound
      ? []
      : [`${question} touches ${touched} ${units[kind]} instead of ${bound}:\n${details.slice(0, 3).join("\n")}`];
  });
}

function tableOf(kind: keyof typeof units, before: Costs, after: Costs, pooled: Costs | null): string {
  const number = (value: number) => value.toLocaleString("en").padStart(9);
  const count = (runs: number) => `${Math.round(runs / 1_000).toLocaleString("en")}k`.padStart(9);
  const head = [
    `${units[kind]} on ${kind}`.padEnd(46),
    "statements",
    count(allRuns / 10),
    count(allRuns),
    ...(pooled === null ? [] : ["   pooled"]),
    "    bound",
  ];
  const rows = [...after].map(([question, cost]) => [
    question.padEnd(46),
    String(cost.statements).padStart(10),
    number(before.get(question)?.touched ?? Number.NaN),
    number(cost.touched),
    ...(pooled === null ? [] : [number(pooled.get(question)?.touched ?? Number.NaN)]),
    number(boundOf(question)[units[kind]]),
  ]);
  return [head, ...rows].map((cells) => cells.join("  ")).join("\n");
}
