/** The output of an input schema is recorded once and is the same on every replay. */
import { randomUUID } from "node:crypto";
import { graph, type StepContext, step, Workflow, workflow } from "pawl";
import { describe, expect, onTestFinished, test } from "vitest";
import type { StandardSchemaV1 } from "../../src/define/standard-schema.js";
import { testDatabase } from "../support/databases.js";
import { forMemoryAnd } from "../support/effort.js";
import { accepting, making, refusing, schema } from "../support/standard-schemas.js";
import { start, world } from "../support/virtual-worlds.js";
import { errorOf, gate, until } from "../support/waiting.js";

/** A schema whose default value differs each time. */
const stamped = () => making((value: object) => ({ ...value, id: randomUUID(), at: new Date() }));

interface Stamped {
  readonly id: string;
  readonly at: Date;
}

const styles = {
  function: () => {
    const seen: Stamped[] = [];
    const made = workflow("made", { input: stamped() }, async (ctx, input) => {
      seen.push(input);
      await ctx.sleep("night", "1 day");
      await ctx.step("after", () => 1);
    });
    return { made, seen };
  },
  class: () => {
    const seen: Stamped[] = [];
    class Made extends Workflow<unknown, object> {
      static {
        this.options({ name: "made", input: stamped() });
        this.step("s", async (w) => {
          seen.push(w.input as Stamped);
          await w.sleep("night", "1 day");
        });
        this.step("after", { wait: "1 day" }, (w) => void seen.push(w.input as Stamped));
      }
    }
    return { made: Made, seen };
  },
  graph: () => {
    const seen: Stamped[] = [];
    const first = step("first", async (ctx: StepContext<object>) => {
      seen.push(ctx.input as Stamped);
      await ctx.sleep("night", "1 day");
    });
    const after = step("after", (ctx) => void seen.push(ctx.input as Stamped));
    return { made: graph("made", [first, after.after(first)], { input: stamped() }), seen };
  },
};

forMemoryAnd("mysql", (kind) => {
  async function fresh() {
    const database = await testDatabase(kind);
    onTestFinished(() => database.drop());
    return world(kind, database.url);
  }

  test.each(Object.entries(styles))(
    "a %s gets the same parsed input on every replay and after a crash",
    async (_style, define) => {
      const { made, seen } = define();
      const w = await fresh();
      const first = await w.worker([made]);
      await w.pawl.createWorkflow("made");
      const run = await w.pawl.workflow("made").trigger({ n: 1 });
      let due = await first.settle();
      await first.kill();
      const second = await w.worker([made]);
      for (; due !== null; due = await second.settle()) w.clock.moveTo(due);
      expect(await run.status()).toBe("completed");
      expect(seen.length).toBeGreaterThan(1);
      expect(seen[0]?.at).toBeInstanceOf(Date);
      for (const one of seen) expect(one).toEqual(seen[0]);
      expect((await run.get()).input).toEqual({ n: 1 });
      const [started] = await run.history();
      expect(started).toMatchObject({ type: "run.started", data: { checked: true, input: seen[0] } });
      expect((await w.pawl.verify()).differences).toEqual([]);
    },
  );

  test("the parsed input is durable before user code sees it", async () => {
    const w = await fresh();
    const charged: string[] = [];
    const inBody = gate();
    const pay = workflow("pay", { input: stamped() }, (ctx, { id }) =>
      ctx.step("charge", () => {
        charged.push(id);
        inBody.open();
        return charged.length === 1 ? new Promise(() => {}) : id;
      }),
    );
    const first = await w.worker([pay]);
    const run = w.pawl.run(pay, (await first.pawl.start(pay, {})).id);
    await inBody.opened;
    await first.kill();
    const second = await w.worker([pay]);
    await second.settle();
    expect(await run.result({ timeout: "100s" })).toBe(charged[0]);
    expect(charged).toEqual([charged[0], charged[0]]);
  });
});

test("nothing is recorded when the schema returns the input unchanged, and the schema is not called again", async () => {
  let schemaCalls = 0;
  const counting = schema((value) => {
    schemaCalls += 1;
    return { value: { ...value } };
  });
  const plain = workflow("plain", { input: counting }, async (ctx, input: { n: number }) => {
    await ctx.sleep("a", "1 day");
    await ctx.sleep("b", "1 day");
    return input;
  });
  const t = await start(plain);
  const run = await t.pawl.start(plain, { n: 1 });
  await t.speedrun(run);
  expect(await run.result({ timeout: "100s" })).toEqual({ n: 1 });
  // start() calls the schema once for its caller, and the worker calls it once.
  expect(schemaCalls).toBe(2);
  const [started] = await run.history();
  expect(started?.data).toMatchObject({ checked: true });
  expect(started?.data).not.toHaveProperty("input");
});

test("an input whose parsed value cannot be stored is refused", async () => {
  const functions = workflow("functions", { input: making(() => ({ call: () => {} })) }, () => "ran");
  const t = await start(functions);
  const run = await t.pawl.start(functions, {});
  await t.settle();
  expect(await run.status()).toBe("failed");
  expect((await errorOf(run.result({ timeout: "100s" }))).cause).toMatchObject({ name: "InvalidInputError" });
});

test("a child gets its parsed input, and so does the retry of a failed run", async () => {
  const seen: string[] = [];
  let fails = true;
  const child = workflow("child", { input: stamped() }, async (ctx, input) => {
    seen.push(input.id);
    await ctx.sleep("night", "1 day");
    if (fails) throw new Error("not yet");
    return input.id;
  });
  const parent = workflow("parent", (ctx) => ctx.run(child, {}));
  const t = await start(child, parent);
  const run = await t.pawl.start(child, {});
  await t.speedrun(run);
  expect(await run.status()).toBe("failed");
  fails = false;
  const again = await run.retry();
  await t.speedrun(again);
  expect(await again.result({ timeout: "100s" })).toBe(seen[0]);
  expect(new Set(seen).size).toBe(1);

  const whole = await t.pawl.start(parent);
  await t.speedrun(whole);
  expect(await whole.result({ timeout: "100s" })).toBe(seen.at(-1));
});

test("the retry of a run whose input was refused is refused as well, until the schema accepts the input", async () => {
  let accepts = false;
  const strict = workflow(
    "strict",
    { input: schema((value) => (accepts ? { value } : { issues: [{ message: "no" }] })) },
    () => "ran",
  );
  const t = await start(strict);
  const run = await t.pawl.workflow("strict").trigger({});
  await t.settle();
  expect(await run.status()).toBe("failed");
  const again = await run.retry();
  await t.settle();
  expect(await again.status()).toBe("failed");
  accepts = true;
  const third = await again.retry();
  await t.settle();
  expect(await third.status()).toBe("completed");
});

describe("a release with another schema, under a run that has recorded steps", () => {
  const compensated: string[] = [];
  const withSchema = (input: StandardSchemaV1<any, any> | undefined) =>
    workflow("order", input === undefined ? {} : { input: input as never }, async (ctx, order: { n: number }) => {
      await ctx.step("book", () => 1, { compensate: () => void compensated.push("book") });
      await ctx.sleep("night", "1 day");
      return ctx.step("charge", () => order.n);
    });

  test.each([
    ["changes nothing when an earlier schema had accepted the input", accepting],
    [
      "does not call the schema when an earlier schema had changed the input",
      making((order) => ({ ...order, more: 1 })),
    ],
  ])("%s", async (_name, before) => {
    const w = await world();
    const old = await w.worker([withSchema(before)]);
    const run = await w.pawl.start(withSchema(before), { n: 7 });
    const due = await old.settle();
    await old.kill();
    w.clock.moveTo(due as number);
    const next = await w.worker([withSchema(refusing)]);
    await next.settle();
    expect(await run.result({ timeout: "100s" })).toBe(7);
  });

  test("pauses the run with the reason when the workflow's first schema refuses its input", async () => {
    const w = await world();
    const old = await w.worker([withSchema(undefined)]);
    const run = await w.pawl.start(withSchema(undefined), { n: 7 });
    const due = await old.settle();
    await old.kill();
    w.clock.moveTo(due as number);
    const strict = await w.worker([withSchema(refusing)]);
    await strict.settle();
    expect(await run.status()).toBe("paused");
    expect((await run.explain()).text).toContain("rejects its input");
    expect((await run.explain()).text).toContain("too large");
    expect(compensated).toEqual([]);
    await strict.kill();
    const tolerant = await w.worker([withSchema(accepting)]);
    await run.resume();
    await tolerant.settle();
    expect(await run.result({ timeout: "100s" })).toBe(7);
  });

  test("records the parsed input once when the workflow gets its first schema", async () => {
    const w = await world();
    const seen: string[] = [];
    const laterWorkflow = (input: ReturnType<typeof stamped> | undefined) =>
      workflow("later", input === undefined ? {} : { input: input as never }, async (ctx, order: any) => {
        seen.push(String(order.id));
        await ctx.sleep("a", "1 day");
        await ctx.sleep("b", "1 day");
      });
    const old = await w.worker([laterWorkflow(undefined)]);
    const run = await w.pawl.start(laterWorkflow(undefined), {});
    let due = await old.settle();
    await old.kill();
    const next = await w.worker([laterWorkflow(stamped())]);
    for (; due !== null; due = await next.settle()) w.clock.moveTo(due);
    expect(await run.status()).toBe("completed");
    expect(seen[0]).toBe("undefined");
    expect(new Set(seen.slice(1)).size).toBe(1);
    expect((await run.history()).filter(({ type }) => type === "input.checked")).toHaveLength(1);
  });
});

test("a signal that arrives while the schema is still running waits for the code", async () => {
  const schemaCalled = gate();
  const answer = gate();
  const slow = workflow(
    "slow",
    {
      input: schema(async (value) => {
        schemaCalled.open();
        await answer.opened;
        return { value: { ...value, id: randomUUID() } };
      }),
    },
    async (ctx, input: any) => ({ id: input.id as string, got: await ctx.waitForSignal("go") }),
  );
  const w = await world();
  const { pawl, settle } = await w.worker([slow]);
  await pawl.createWorkflow("slow");
  const run = await pawl.workflow<object, { id: string; got: number }>("slow").trigger({});
  await schemaCalled.opened;
  await run.signal("go", 1);
  await until(async () => (await run.history()).some(({ type }) => type === "signal.received"));
  answer.open();
  await settle();
  const { id, got } = await run.result({ timeout: "100s" });
  expect(got).toBe(1);
  const recorded = (await run.history()).flatMap(({ data }) => (data as { input?: { id: string } }).input?.id ?? []);
  expect(recorded).toEqual([id]);
});
