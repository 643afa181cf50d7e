/**
 * What the compiler infers. `npm run check` fails when one of these types changes; at run time nothing happens here.
 */
import {
  type ChildHandle,
  connect,
  type GraphDefinition,
  graph,
  type MapResult,
  type Pawl,
  type RunHandle,
  type StepContext,
  signal,
  step,
  Workflow,
  type WorkflowContext,
  type WorkflowDefinition,
  workflow,
} from "pawl";
import { expectTypeOf, test } from "vitest";
import { z } from "zod";

declare const pawl: Pawl;
/** The body is type-checked and never called. */
const typeCheckOnly = (_body: () => unknown) => {};

test("a workflow's input and output come from its handler", () => {
  const wf = workflow("a", async (_ctx, params: { bucket: string }) => ({ path: params.bucket }));
  expectTypeOf(wf).toEqualTypeOf<WorkflowDefinition<{ bucket: string }, { path: string }>>();
  typeCheckOnly(async () => {
    const run = await pawl.start(wf, { bucket: "b" });
    expectTypeOf(run).toEqualTypeOf<RunHandle<{ bucket: string }, { path: string }>>();
    expectTypeOf(await run.result()).toEqualTypeOf<{ path: string }>();
    expectTypeOf((await run.get()).input).toEqualTypeOf<{ bucket: string }>();
    // @ts-expect-error: a bucket is missing
    await pawl.start(wf, {});
    // @ts-expect-error: the input is missing
    await pawl.start(wf);
    // @ts-expect-error: no such option
    await pawl.start(wf, { bucket: "b" }, { idempotentKey: "x" });
    expectTypeOf(await pawl.run(wf, run.id).result()).toEqualTypeOf<{ path: string }>();
    expectTypeOf(await pawl.startMany(wf, [{ bucket: "b" }])).toEqualTypeOf<
      RunHandle<{ bucket: string }, { path: string }>[]
    >();
  });
});

test("a synchronous handler's output is inferred too", () => {
  expectTypeOf(workflow("s", (_ctx, n: number) => n > 1)).toEqualTypeOf<WorkflowDefinition<number, boolean>>();
});

test("the input may be omitted when its type is void", () => {
  const wf = workflow("b", async () => 1);
  typeCheckOnly(async () => {
    await pawl.start(wf);
    await pawl.start(wf, undefined, { delay: "1h" });
  });
  const withContext = workflow("c", async (ctx) => ctx.step("x", () => "text"));
  expectTypeOf(withContext).toEqualTypeOf<WorkflowDefinition<void, string>>();
});

test("the types of the handler are inferred when there are options, too", () => {
  const wf = workflow("d", { timeout: "1h", retry: { attempts: 2 } }, async (_ctx, n: number) => `${n}`);
  expectTypeOf(wf).toEqualTypeOf<WorkflowDefinition<number, string>>();
  typeCheckOnly(async () => {
    // @ts-expect-error: not a number
    await pawl.start(wf, "x");
  });
  typeCheckOnly(async () => {
    // @ts-expect-error: no such option
    workflow("e", { timeuot: "1h" }, async () => 1);
  });
});

test("with options and a handler without input, start needs no input", () => {
  const wf = workflow("f", { timeout: "1h" }, async (ctx) => ctx.now());
  typeCheckOnly(async () => {
    await pawl.start(wf);
    expectTypeOf(await (await pawl.start(wf)).result()).toEqualTypeOf<Date>();
  });
});

test("schemas determine the types: the argument of start, the input of the handler, the output of result", () => {
  const wf = workflow(
    "g",
    { input: z.object({ id: z.string(), count: z.number().default(1) }), output: z.object({ total: z.number() }) },
    async (ctx, input) => {
      expectTypeOf(input).toEqualTypeOf<{ id: string; count: number }>();
      expectTypeOf(ctx.input).toEqualTypeOf<{ id: string; count: number }>();
      return { total: input.count };
    },
  );
  typeCheckOnly(async () => {
    const run = await pawl.start(wf, { id: "a" });
    expectTypeOf(await run.result()).toEqualTypeOf<{ total: number }>();
    // @ts-expect-error: id is a string
    await pawl.start(wf, { id: 1 });
  });
  // @ts-expect-error: the output does not fit its schema
  workflow("h", { output: z.object({ total: z.number() }) }, async () => ({ total: "many" }));
});

test("a workflow's own types appear in its context", () => {
  workflow("i", async (ctx, input: { a: number }) => {
    expectTypeOf(ctx).toEqualTypeOf<WorkflowContext<{ a: number }>>();
    expectTypeOf(input.a).toEqualTypeOf<number>();
    expectTypeOf(await ctx.step("s", async () => 1 as const)).toEqualTypeOf<1>();
    expectTypeOf(await ctx.waitForSignal<{ by: string }>("x")).toEqualTypeOf<{ by: string } | null>();
    expectTypeOf(await ctx.waitForSignal(signal<number>("n"))).toEqualTypeOf<number | null>();
    expectTypeOf(await ctx.sleep("z", "1h")).toEqualTypeOf<void>();
    expectTypeOf(ctx.cancel).returns.toEqualTypeOf<never>();
    expectTypeOf(ctx.finish).returns.toEqualTypeOf<never>();
  });
});

test("a signal that is sent by its handle has the payload type of the handle", () => {
  typeCheckOnly(async () => {
    const shipped = signal<{ parcel: string }>("shipped");
    const run = await pawl.start(workflow("s", (ctx) => ctx.waitForSignal(shipped)));
    await run.signal(shipped, { parcel: "p" });
    await run.signal(shipped, { parcel: "p" }, { key: "webhook-9" });
    await pawl.run("id").signal(shipped, { parcel: "p" });
    // @ts-expect-error: the payload is missing
    await run.signal(shipped);
    // @ts-expect-error: a parcel is missing
    await run.signal(shipped, {});
    // @ts-expect-error: a parcel is a string
    await pawl.run("id").signal(shipped, { parcel: 5 });
    // @ts-expect-error: no such option
    await run.signal(shipped, { parcel: "p" }, { kee: "webhook-9" });
    await run.signal(signal<void>("ready"));
    await run.signal(signal("anything"));
    await run.signal(signal("anything"), 5, { key: "k" });
    await run.signal("by_name");
    await run.signal("by_name", { whatever: 1 }, { key: "k" });
    // @ts-expect-error: neither a name nor a signal
    await run.signal(5);
  });
});

test("signals of several types keep their types", () => {
  workflow("j", async (ctx) => {
    const any = await ctx.waitForAny([signal<number>("n"), signal<string>("s")]);
    expectTypeOf(any?.payload).toEqualTypeOf<number | string | undefined>();
    const all = await ctx.waitForAll([signal<number>("n"), signal<string>("s")]);
    expectTypeOf(all?.n).toExtend<number | string | undefined>();
    const race = await ctx.race({ n: ctx.waitForSignal(signal<number>("n")), z: ctx.sleep("z", 1) });
    expectTypeOf(race.name).toEqualTypeOf<"n" | "z">();
    expectTypeOf(race.value).toEqualTypeOf<number | null | void>();
  });
});

test("children are typed by their definitions, or by type arguments when only named", () => {
  const child = workflow("child", async (_ctx, n: number) => `${n}`);
  workflow("k", async (ctx) => {
    expectTypeOf(await ctx.run(child, 1)).toEqualTypeOf<string>();
    expectTypeOf(await ctx.start(child, 1)).toEqualTypeOf<ChildHandle<string>>();
    expectTypeOf(await ctx.map(child, [1, 2])).toEqualTypeOf<MapResult<string>>();
    expectTypeOf(await ctx.run<{ a: 1 }, boolean>("elsewhere", { a: 1 })).toEqualTypeOf<boolean>();
    // @ts-expect-error: not a number
    await ctx.run(child, "one");
    // @ts-expect-error: not numbers
    await ctx.map(child, ["one"]);
  });
});

test("a child without input needs no input", () => {
  const child = workflow("void-child", async () => 1);
  workflow("l", async (ctx) => {
    expectTypeOf(await ctx.run(child)).toEqualTypeOf<number>();
    expectTypeOf(await ctx.start(child)).toEqualTypeOf<ChildHandle<number>>();
  });
});

test("a branch has the union of the outputs of its cases, and knows their names", () => {
  workflow("m", async (ctx) => {
    const value = await ctx.branch("b", () => (ctx.random() > 0.5 ? "one" : "two"), {
      one: () => 1,
      two: async () => "two",
    });
    expectTypeOf(value).toEqualTypeOf<number | string>();
    // @ts-expect-error: there is no such case
    await ctx.branch("b", () => "three", { one: () => 1 });
  });
});

test("handles by name are typed by type arguments", () => {
  typeCheckOnly(async () => {
    const run = await pawl.workflow<{ bucket: string }, { path: string }>("zip").trigger({ bucket: "b" });
    expectTypeOf(await run.result()).toEqualTypeOf<{ path: string }>();
    expectTypeOf(await pawl.run("id").result()).toEqualTypeOf<unknown>();
    expectTypeOf(connect).returns.resolves.toEqualTypeOf<Pawl>();
  });
});

test("a workflow with batches has lists in its code, and one input and output for each start", () => {
  const batch = { size: 2, within: "1s" } as const;
  const wf = workflow("batch", { batch }, async (ctx, mails: { to: string }[]) => {
    expectTypeOf(ctx.input).toEqualTypeOf<{ to: string }[]>();
    return mails.map(({ to }) => to.length);
  });
  expectTypeOf(wf).toEqualTypeOf<WorkflowDefinition<{ to: string }, number>>();
  const silent = workflow("batch", { batch }, async (_ctx, _mails: string[]) => {});
  expectTypeOf(silent).toEqualTypeOf<WorkflowDefinition<string, void>>();
  const checked = workflow("batch", { batch, input: z.coerce.date() }, (_ctx, dates) => {
    expectTypeOf(dates).toEqualTypeOf<Date[]>();
    return dates.map((date) => date.getTime());
  });
  expectTypeOf(checked).toEqualTypeOf<WorkflowDefinition<unknown, number>>();
  const drawn = graph("batch", [step("s", (ctx: StepContext<number[]>) => ctx.input.map(String))], { batch });
  expectTypeOf(drawn).toEqualTypeOf<GraphDefinition<number, string>>();
  class Mails extends Workflow<null, number[], string[]> {
    static readonly batch = { size: 2, within: "1s" } as const;
  }
  typeCheckOnly(async () => {
    const run = await pawl.start(wf, { to: "ada" });
    expectTypeOf(await run.result()).toEqualTypeOf<number>();
    expectTypeOf((await run.get()).input).toEqualTypeOf<{ to: string }>();
    expectTypeOf(await (await pawl.start(Mails, 1)).result()).toEqualTypeOf<string>();
    expectTypeOf(await pawl.startMany(Mails, [1, 2])).toEqualTypeOf<RunHandle<number, string>[]>();
    // @ts-expect-error: a start has one element
    await pawl.start(wf, [{ to: "ada" }]);
    // @ts-expect-error: a start has one element
    await pawl.start(Mails, [1]);
    // @ts-expect-error: the code must return a list
    workflow("batch", { batch }, async (_ctx, _mails: string[]) => "done");
    // @ts-expect-error: the code gets a list
    workflow("batch", { batch }, async (_ctx, mail: string) => [mail]);
    // @ts-expect-error: the static property must have a size
    await pawl.start(Unsized, 1);
  });
  class Unsized extends Workflow<null, number[], string[]> {
    static readonly batch = { within: "1s" } as const;
  }
});

test("a debounced start that collects inputs has one element of the list that the workflow takes", () => {
  const debounce = { key: "k", quiet: "1s" } as const;
  const one = workflow("one", async (_ctx, n: number) => n);
  const many = workflow("many", async (_ctx, ns: number[]) => ns.length);
  typeCheckOnly(async () => {
    await pawl.start(one, 1, { debounce });
    await pawl.start(one, 1, { debounce: { ...debounce, keep: "first" } });
    await pawl.start(many, 1, { debounce: { ...debounce, keep: "all" } });
    await pawl.start(many, [1], { debounce });
    await pawl.startMany(one, [1], { debounce: { quiet: "1s", key: ({ input }) => input.id } });
    await pawl.workflow("many").trigger(1, { debounce: { ...debounce, keep: "all" } });
    // @ts-expect-error: the workflow takes no list
    await pawl.start(one, 1, { debounce: { ...debounce, keep: "all" } });
    // @ts-expect-error: an element of the list is a number
    await pawl.start(many, "1", { debounce: { ...debounce, keep: "all" } });
    // @ts-expect-error: a start that replaces the input has all of it
    await pawl.start(many, 1, { debounce });
  });
});
