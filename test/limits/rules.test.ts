/** Rules of limits that no other file of this folder is named after, on every store. docs/specification.md lists the tests of all rules. */
import { randomUUID } from "node:crypto";
import { limit, workflow } from "pawl";
import { describe, expect, onTestFinished, test } from "vitest";
import { captureStatements } from "../scale/statement-capture.js";
import { everyStore, forEachStore, testDatabase } from "../support/databases.js";
import { databaseFor, keepWorking, world } from "../support/virtual-worlds.js";
import { gate, until } from "../support/waiting.js";

forEachStore((kind) => {
  const database = databaseFor(kind);
  /** The tests of one store share a database, and a limit belongs to its name. */
  const named = (name: string) => `${name} ${randomUUID()}`;

  test("keys are paths over input, hero and tags, or functions, and what is missing is the empty key", async () => {
    const keys = {
      input: "input.customer.id",
      list: "input.names.1",
      hero: "hero.id",
      type: "hero.type",
      tag: "tags.1",
      function: ({ input }: { readonly input: { readonly names: readonly string[] } }) => input.names.join("+"),
      missing: "input.nothing.at.all",
    } as const;
    const limits = Object.entries(keys).map(([name, key]) => limit(named(name), { key, concurrency: 5 }));
    const { open, opened } = gate();
    onTestFinished(() => open());
    const wf = workflow(named("wf"), { limits }, async (ctx, _: { customer: { id: number }; names: string[] }) => {
      await ctx.step("hold", () => opened);
    });
    const w = await database.world();
    keepWorking(await w.worker([wf]));
    const input = { customer: { id: 7 }, names: ["x", "y"] };
    const run = await w.pawl.start(wf, input, { hero: { type: "user", id: "ada" }, tags: ["red", "blue"] });
    await until(async () => (await run.status()) === "running");
    const found = await Promise.all(
      limits.map(async ({ name }) => (await w.pawl.limits.get(name))?.lanes.map(({ key }) => key)),
    );
    expect(found).toEqual([["7"], ["y"], ["ada"], ["user"], ["blue"], ["x+y"], [""]]);
    open();
    await run.result();
  });

  test("a run with limits is not begun by the process that starts it: it waits for its slot", async () => {
    const one = limit(named("one"), { concurrency: 1 });
    const { open, opened } = gate();
    onTestFinished(() => open());
    const begun: string[] = [];
    const wf = workflow(named("wf"), { limits: [one] }, (ctx, name: string) =>
      ctx.step("hold", async () => {
        begun.push(name);
        await opened;
      }),
    );
    const w = await database.world();
    const workers = [await w.worker([wf]), await w.worker([wf])];
    keepWorking(...workers);
    const starts = workers.flatMap(({ pawl }) => ["first", "second"].map((name) => pawl.start(wf, name)));
    const runs = await Promise.all(starts);
    await until(async () => (await Promise.all(runs.map((run) => run.explain()))).filter(isLimited).length === 3);
    expect(begun).toHaveLength(1);
    expect((await w.pawl.limits.get(one.name))?.lanes.map(({ inUse, waiting }) => [inUse, waiting])).toEqual([[1, 3]]);
    open();
    await Promise.all(runs.map((run) => run.result()));
  });

  test("a step that has failed and waits for its next attempt holds no slot meanwhile", async () => {
    const one = limit(named("one"), { concurrency: 1 });
    const attempts: string[] = [];
    const wf = workflow(named("wf"), (ctx, name: string) =>
      ctx.step(
        "call",
        ({ attempt }) => {
          attempts.push(`${name} ${attempt}`);
          if (name === "flaky" && attempt === 1) throw new Error("not now");
        },
        { limit: one, retry: { attempts: 2, initial: "1h", jitter: false } },
      ),
    );
    const w = await database.world();
    const { settle } = await w.worker([wf]);
    const flaky = await w.pawl.start(wf, "flaky");
    await settle();
    const other = await w.pawl.start(wf, "other");
    await settle();
    expect(await other.status()).toBe("completed");
    expect(attempts).toEqual(["flaky 1", "other 1"]);
    w.clock.moveTo(w.clock.read() + 3_600_000);
    await settle();
    await flaky.result();
    expect(attempts).toEqual(["flaky 1", "other 1", "flaky 2"]);
  });
}, everyStore);

const isLimited = ({ because }: { readonly because: string }) => because === "limited";

describe("a workflow without limits", () => {
  forEachStore(
    (kind) => {
      test("sends no statement about limits, although other workflows have some", async () => {
        const { url, drop } = await testDatabase(kind);
        onTestFinished(drop);
        const w = await world(kind, url);
        const plain = workflow("plain", async (ctx) => {
          await ctx.step("one", () => 1);
          await ctx.waitForSignal("go");
          return ctx.step("two", () => 2);
        });
        const limited = workflow("limited", { limits: [limit("one", { concurrency: 1 })] }, async () => "ran");
        const other = await w.worker([limited]);
        await w.pawl.start(limited);
        await other.settle();
        await other.worker.stop();
        const { settle } = await w.worker([plain]);
        const sent = await captureStatements(kind, async () => {
          const run = await w.pawl.start(plain);
          await settle();
          await run.signal("go");
          await settle();
          expect(await run.result()).toBe(2);
        });
        const written = sent.filter(({ sql }) => /INSERT|UPDATE|DELETE|SELECT/i.test(sql));
        expect(written.length).toBeGreaterThan(3);
        expect(written.filter(({ sql }) => /pawl_(slots|lanes|classes|limits)/.test(sql))).toEqual([]);
      });
    },
    ["sqlite", "postgres", "mysql"],
  );
});
