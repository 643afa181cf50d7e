import { workflow } from "pawl";
import { expect, onTestFinished, test } from "vitest";
import { testDatabase } from "../support/databases.js";
import { forMemoryAnd } from "../support/effort.js";
import { start, world } from "../support/virtual-worlds.js";
import { errorOf } from "../support/waiting.js";

const odd = [
  "/",
  "%",
  "'",
  '"',
  "`",
  "\\",
  "a/b/../c",
  "100%_",
  "'; DROP TABLE pawl_runs; --",
  "🐴",
  "é",
  "e\u0301",
  "名前",
  "a b",
  "__proto__",
  "constructor",
  "toString",
  "x".repeat(200),
  "🐴".repeat(50),
  "signal:x",
  "patch:x",
  "pause",
  "$1",
  "?",
  "NULL",
];
const wrong: unknown[] = [
  "",
  " ",
  " a",
  "a ",
  "x".repeat(201),
  "🐴".repeat(51),
  "a\u0000b",
  "a\nb",
  "\ud800",
  5,
  null,
  {},
  ["a"],
];

forMemoryAnd("mysql", (kind) => {
  test("unusual names are accepted for workflows, steps, signals, sleeps, branches, keys, heroes, tags and queues", async () => {
    const database = await testDatabase(kind);
    onTestFinished(() => database.drop());
    const w = await world(kind, database.url);
    const definitions = odd.map((name) =>
      workflow(name, { queue: name, tags: [name] }, async (ctx) => {
        const step = await ctx.step(name, () => name);
        const again = await ctx.step(name, () => name);
        await ctx.sleep(name, "1h");
        const signal = await ctx.waitForSignal(name);
        const branch = await ctx.branch(name, () => name, { [name]: () => name });
        return [step, again, signal, branch, ctx.patched(name)];
      }),
    );
    const worker = await w.worker(definitions);
    const runs = [];
    for (const [index, definition] of definitions.entries()) {
      const name = odd[index] as string;
      const run = await w.pawl.start(definition, undefined, {
        idempotencyKey: name,
        hero: { type: name, id: name },
        tags: [name],
      });
      await run.signal(name, name, { key: name });
      await run.signal(name, "twice", { key: name });
      runs.push(run);
    }
    for (let due = await worker.settle(); due !== null; due = await worker.settle()) w.clock.moveTo(due);
    for (const [index, run] of runs.entries()) {
      const name = odd[index] as string;
      expect(await run.result({ timeout: "100s" }), name).toEqual([name, name, name, name, true]);
      expect(await run.get()).toMatchObject({
        workflow: name,
        queue: name,
        idempotencyKey: name,
        hero: { type: name, id: name },
      });
      for (const filter of [{ workflow: name }, { tag: name }, { hero: { type: name, id: name } }]) {
        expect(
          (await w.pawl.runs(filter)).runs.map(({ id }) => id),
          JSON.stringify(filter),
        ).toEqual([run.id]);
      }
      expect(
        (await w.pawl.start(definitions[index] as (typeof definitions)[number], undefined, { idempotencyKey: name }))
          .id,
      ).toBe(run.id);
    }
    expect((await w.pawl.verify()).differences).toEqual([]);
  });

  test("names of maximum length leave room for the suffixes that Pawl appends", async () => {
    const database = await testDatabase(kind);
    onTestFinished(() => database.drop());
    const w = await world(kind, database.url);
    const names = Array.from({ length: 8 }, (_, index) => `${index}`.padEnd(200, "x"));
    const long = workflow("w".repeat(200), async (ctx) => {
      for (let time = 0; time < 12; time += 1) await ctx.step("s".repeat(200), () => time);
      const any = await ctx.waitForAny(names);
      const all = await ctx.waitForAll(names.slice(0, 6));
      return [any?.name, Object.keys(all ?? {}).length, ctx.patched("p".repeat(200))];
    });
    const worker = await w.worker([long]);
    const run = await w.pawl.start(long);
    await run.signal(names[7] as string, 1);
    for (const name of names.slice(0, 6)) await run.signal(name, 1);
    await worker.settle();
    expect(await run.result({ timeout: "100s" })).toEqual([names[7], 6, true]);
  });
});

test.each(wrong)("the name %o is refused everywhere, and nothing changes", async (name) => {
  const given = name as string;
  const invalid = { code: "INVALID_INPUT" };
  expect(() => workflow(given, async () => 1)).toThrow(expect.objectContaining(invalid));
  expect(() => workflow("x", { queue: given }, async () => 1)).toThrow(expect.objectContaining(invalid));
  expect(() => workflow("x", { tags: [given] }, async () => 1)).toThrow(expect.objectContaining(invalid));
  const codes = workflow("codes", async (ctx) => {
    const code = async (call: () => unknown) => {
      try {
        await call();
        return "accepted";
      } catch (error) {
        return (error as { code: string }).code;
      }
    };
    return [
      await code(() => ctx.step(given, () => 1)),
      await code(() => ctx.sleep(given, 1)),
      await code(() => ctx.sleepUntil(given, 1)),
      await code(() => ctx.waitForSignal(given)),
      await code(() => ctx.waitForAny([given])),
      await code(() => ctx.branch(given, () => "a", { a: () => 1 })),
      await code(() => ctx.patched(given)),
      await code(() => ctx.run(given, 1)),
    ];
  });
  const t = await start(codes);
  const run = await t.pawl.start(codes);
  await t.speedrun(run);
  expect(new Set(await run.result())).toEqual(new Set(["INVALID_INPUT"]));
  for (const call of [
    () => t.pawl.start(codes, undefined, { idempotencyKey: given }),
    () => t.pawl.start(codes, undefined, { hero: { type: given, id: "1" } }),
    () => t.pawl.start(codes, undefined, { hero: { type: "User", id: given } }),
    () => t.pawl.start(codes, undefined, { tags: [given] }),
    () => t.pawl.createWorkflow(given),
    async () => t.pawl.workflow(given).trigger(undefined),
  ]) {
    expect(await errorOf(call())).toMatchObject(invalid);
  }
  expect((await t.pawl.runs()).runs).toHaveLength(1);
});
