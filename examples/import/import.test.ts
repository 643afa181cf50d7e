import { isDeepStrictEqual } from "node:util";
import { type TestPawl, testPawl } from "pawl/testing";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { type TestDatabase, testDatabase } from "../../test/support/databases.js";
import { forMemoryAnd, isAmong, sized } from "../../test/support/effort.js";
import { crashAndVerify, historyOf, storyOf } from "../harness.js";
import { type Import, importWorkflows } from "./import.js";
import { Crm, Files, Mail } from "./office.js";

/** A thousand customers, and a few invalid rows among them. */
const badRows = [7, 500, 999];
const thousand = Array.from({ length: 1_000 }, (_, index) => (badRows.includes(index) ? "nobody" : rowOf(index)));
const small = [rowOf(0), "nobody", ...[2, 3, 4, 5, 6].map(rowOf)];

function rowOf(index: number): string {
  return `c${index}@example.com,Customer ${index}`;
}

forMemoryAnd("postgres", (kind) => {
  const files = new Files();
  const crm = new Crm();
  const mail = new Mail();
  const { importFile, importRow } = importWorkflows({ files, crm, mail });
  const workflows = [importFile, importRow];
  let database: TestDatabase;
  let t: TestPawl | undefined;

  files.write("thousand.csv", thousand);
  files.write("hundred.csv", thousand.slice(0, 100));
  files.write("small.csv", small);

  beforeAll(async () => {
    database = await testDatabase(kind);
  });
  beforeEach(() => empty());
  afterEach(async () => {
    await t?.close();
    t = undefined;
  });
  afterAll(() => database.drop());

  function empty(refuseEvery?: number): void {
    crm.reset(refuseEvery);
    mail.effects.forget();
  }

  async function begin(input: Import) {
    t = await testPawl({ workflows, store: database.url });
    return { t, run: await t.pawl.start(importFile, input) };
  }

  test("a file with more bad rows than tolerated is refused, and its remaining rows are never imported", async () => {
    const { t, run } = await begin({ file: "hundred.csv", owner: "ada", tolerate: 0 });
    await t.speedrun(run);
    await t.settle();
    await expect(run.result()).rejects.toMatchObject({ code: "RUN_FAILED", cause: { code: "PERMANENT_ERROR" } });
    expect(mail.effects.all).toEqual([]);
    // Fifty at a time: the bad row is among the first.
    expect(crm.effects.all.length).toBeLessThan(100);
    expect((await t.pawl.runs({ workflow: importRow, active: true })).runs).toEqual([]);
    expect((await t.pawl.runs({ workflow: importRow, status: "canceled" })).runs).not.toEqual([]);
    expect((await t.pawl.verify()).differences).toEqual([]);
  });

  test("a row's own history shows how it was imported", async () => {
    const { t, run } = await begin({ file: "small.csv", owner: "ada" });
    await t.speedrun(run);
    const { runs } = await t.pawl.runs({ workflow: importRow, limit: small.length });
    const stories = await Promise.all(runs.map(async ({ id, status }) => [status, ...(await storyOf(t.pawl.run(id)))]));
    expect(runs.map(({ parentId }) => parentId)).toEqual(small.map(() => run.id));
    expect(stories.sort()).toEqual([
      ...Array.from({ length: 6 }, () => [
        "completed",
        "run.started",
        "step.completed parse",
        "step.completed save",
        "run.completed",
      ]),
      ["failed", "run.started", "step.failed parse", "run.failed"],
    ]);
  });

  test("a small import has the same result wherever its worker dies", async () => {
    const { verification } = await crashAndVerify(
      importFile,
      { file: "small.csv", owner: "ada" },
      {
        store: database.url,
        workflows,
        points: kind === "memory" ? "all" : sized(4, 8),
        setup: () => empty(4),
        compare: (undisturbed, crashed) => {
          expect(crm.effects.all.map(({ email }) => email).sort()).toEqual(
            [0, 2, 3, 4, 5, 6].map((n) => `c${n}@example.com`),
          );
          expect(mail.effects.all.length).toBe(1);
          expect(crm.effects.repeats + mail.effects.repeats).toBeLessThanOrEqual(small.length);
          return isDeepStrictEqual(undisturbed, crashed);
        },
      },
    );
    expect(verification.differences).toEqual([]);
  });

  // What is about many rows is the same on every store; these stand for those with and without a server.
  if (!isAmong(kind, "memory", "postgres")) return;

  test("a thousand rows are imported, and the summary lists the bad ones", async () => {
    empty(100);
    const { t, run } = await begin({ file: "thousand.csv", owner: "ada" });
    await t.settle();
    // The rows that the CRM refused wait for ten minutes; everything else is done.
    const { waitingFor } = await run.get();
    expect(waitingFor).toMatchObject([{ kind: "map", name: "import_row", count: 1_000 }]);
    expect(waitingFor).toMatchObject([{ settled: crm.effects.all.length + badRows.length }]);
    expect(crm.effects.all.length).toBeGreaterThan(900);
    expect(crm.effects.all.length).toBeLessThan(997);
    expect(await run.progress()).toMatchObject([{ node: "", done: 0, total: 1_000, message: "importing" }]);

    await t.speedrun(run);
    const summary = await run.result();
    expect(summary).toEqual({
      rows: 1_000,
      imported: 997,
      refused: badRows.map((index) => ({ row: index + 1, why: '"nobody" is not an address.' })),
    });
    expect(new Set(crm.effects.all.map(({ email }) => email)).size).toBe(997);
    expect(crm.effects.all.length).toBe(997);
    expect(crm.effects.repeats).toBe(0);
    expect(mail.effects.all.map(({ to, text }) => [to, text.split("\n")[0]])).toEqual([
      ["ada", "997 of 1000 customers were imported."],
    ]);
    expect(await run.progress()).toMatchObject([{ node: "", done: 1_000, total: 1_000, message: "imported" }]);

    const story = await storyOf(run);
    expect(story.slice(0, 3)).toEqual(["run.started", "step.completed read_file", "map.started import_row"]);
    expect(story.slice(-2)).toEqual(["step.completed send_summary", "run.completed"]);
    const settled = (await historyOf(run))
      .filter(({ type }) => type === "map.settled")
      .flatMap(({ data }) => indexesOf(data));
    expect(settled.sort((a, b) => a - b)).toEqual(thousand.map((_, index) => index));
    expect((await t.pawl.verify()).differences).toEqual([]);
  });

  test("an import of a thousand rows has the same result although its worker dies", async () => {
    const { output, verification } = await crashAndVerify(
      importFile,
      { file: "thousand.csv", owner: "ada" },
      {
        store: database.url,
        workflows,
        points: sized(1, 2),
        setup: () => empty(100),
        compare: (undisturbed, crashed) => {
          expect(crm.effects.all.length).toBe(997);
          expect(mail.effects.all.length).toBe(1);
          // Fifty rows at a time, so no more than that can have been in flight.
          expect(crm.effects.repeats).toBeLessThanOrEqual(50);
          return isDeepStrictEqual(undisturbed, crashed);
        },
      },
    );
    expect(output.imported).toBe(997);
    expect(verification.differences).toEqual([]);
  }, 300_000);
});

function indexesOf(settled: Record<string, unknown>): number[] {
  const { completed, failed } = settled as { completed: [number, number][]; failed: [number, number][] };
  return [...completed, ...failed].flatMap(([first, last]) =>
    Array.from({ length: last - first + 1 }, (_, offset) => first + offset),
  );
}
