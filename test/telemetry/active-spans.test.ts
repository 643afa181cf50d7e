/**
 * While the code of a step runs, its span is the active one, and a run's span has a link to the span in which the run
 * was started.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import { type Context, type ContextManager, context, ROOT_CONTEXT, trace } from "@opentelemetry/api";
import { type AnyWorkflow, connect, graph, type Pawl, step, Workflow, workflow } from "pawl";
import { traceRuns } from "pawl/otel";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { type StoreKind, testDatabase } from "../support/databases.js";
import { forMemoryAnd } from "../support/effort.js";
import { tracing, treeOf } from "../support/spans.js";
import { silent, world } from "../support/virtual-worlds.js";
import { until } from "../support/waiting.js";

/** The context manager that the SDK for Node has in a package of its own. */
class StoredContext implements ContextManager {
  readonly #storage = new AsyncLocalStorage<Context>();
  active = () => this.#storage.getStore() ?? ROOT_CONTEXT;
  with<A extends unknown[], F extends (...args: A) => ReturnType<F>>(
    within: Context,
    fn: F,
    self?: ThisParameterType<F>,
    ...args: A
  ): ReturnType<F> {
    return this.#storage.run(within, () => fn.apply(self as ThisParameterType<F>, args));
  }
  bind = <T>(_context: Context, target: T) => target;
  enable = () => this;
  disable = () => this;
}

beforeAll(() => void context.setGlobalContextManager(new StoredContext()));
afterAll(() => context.disable());

const retry = { attempts: 2, initial: 1, jitter: false } as const;

/** Creates a span as an instrumented HTTP or SQL client does. */
let query: (name: string) => void = () => {};
function queryOrFail(name: string, attempt: number): void {
  query(name);
  if (attempt === 1) throw new Error("once");
}

const leaf = workflow("leaf", (ctx) => ctx.step("read", () => query("SELECT")));
const everything = workflow("everything", { retry }, async (ctx) => {
  query("in the handler");
  await ctx.step("quick", () => query("INSERT"));
  await ctx.step("flaky", async ({ attempt }) => {
    await new Promise(setImmediate);
    queryOrFail("POST", attempt);
  });
  await ctx.sleep("nap", 1);
  await ctx.step("late", () => query("UPDATE"));
  await ctx.run(leaf);
  query("at the end");
});

class Chain extends Workflow {
  static {
    this.step("rests", async (w) => {
      query("before");
      await w.sleep("nap", 1);
      query("after");
    });
    this.resumableStep("loop", {}, (_w, iter) => iter.over([1, 2], () => query("item")));
  }
}

const plan = graph("plan", [step("node", (ctx) => queryOrFail("GET", ctx.attempt), { retry })]);

async function working(kind: StoreKind, workflows: readonly AnyWorkflow[]) {
  const { url, drop } = await testDatabase(kind);
  onTestFinished(drop);
  const pawl = await connect(url, { logger: silent });
  onTestFinished(() => pawl.close());
  await pawl.worker({ workflows }).start();
  return pawl;
}

function traced(pawl: Pawl) {
  const { tracerProvider, spans } = tracing();
  const tracer = tracerProvider.getTracer("client");
  query = (name) => tracer.startSpan(name).end();
  const { stop } = traceRuns(pawl, { tracerProvider });
  onTestFinished(stop);
  /** A result may be available before the worker has published the end of its run. */
  const stopAfter = async (runs: readonly { readonly id: string }[]) => {
    const ended = () => spans().filter(({ name }) => name.startsWith("run "));
    await until(() => runs.every(({ id }) => ended().some(({ attributes }) => attributes["pawl.run_id"] === id)));
    await stop();
  };
  return { tracer, spans, stop, stopAfter };
}

const client = (name: string) => `${name}: undefined`;

forMemoryAnd("postgres", (kind) => {
  test("client spans are children of the step or run whose code started them", async () => {
    const pawl = await working(kind, [everything, leaf, Chain, plan]);
    const { spans, stopAfter } = traced(pawl);
    const runs = [await pawl.start(everything), await pawl.start(Chain), await pawl.start(plan, null)];
    await Promise.all(runs.map((run) => run.result()));
    await stopAfter(runs);
    // A handler or body that has waited is replayed and creates its spans again; one of each is enough to see.
    const tree = treeOf(spans()).filter((line, index, lines) => line !== lines[index - 1]);
    expect(tree).toEqual([
      "run Chain: completed",
      "  step loop 1: success",
      `    ${client("item")}`,
      "  step rests 1: success",
      `    ${client("after")}`,
      `    ${client("before")}`,
      "run everything: completed",
      `  ${client("at the end")}`,
      `  ${client("in the handler")}`,
      "  run leaf: completed",
      "    step read 1: success",
      `      ${client("SELECT")}`,
      "  step flaky 1: reattempted_by_exception (once)",
      `    ${client("POST")}`,
      "  step flaky 2: success",
      `    ${client("POST")}`,
      "  step late 1: success",
      `    ${client("UPDATE")}`,
      "  step quick 1: success",
      `    ${client("INSERT")}`,
      "run plan: completed",
      "  step node 1: reattempted_by_exception (once)",
      `    ${client("GET")}`,
      "  step node 2: success",
      `    ${client("GET")}`,
    ]);
  });

  test("a run's span has a link to the span in which it was started, also with concurrent starts", async () => {
    const pawl = await working(kind, [leaf]);
    const { spans, stopAfter, tracer } = traced(pawl);
    const requests = ["A", "B", "C"].map((name) => tracer.startSpan(`GET /${name}`));
    const runs = await Promise.all(
      requests.map((span) =>
        context.with(trace.setSpan(ROOT_CONTEXT, span), async () => {
          const run = await pawl.start(leaf);
          await run.result();
          expect(trace.getActiveSpan()).toBe(span);
          return run;
        }),
      ),
    );
    const alone = await pawl.start(leaf);
    await alone.result();
    await stopAfter([...runs, alone]);
    const linksOf = (id: string) =>
      spans().find(({ name, attributes }) => name === "run leaf" && attributes["pawl.run_id"] === id)?.links;
    expect(runs.map(({ id }) => linksOf(id))).toEqual(
      requests.map((span) => [{ traceId: span.spanContext().traceId, spanId: span.spanContext().spanId }]),
    );
    expect(linksOf(alone.id)).toEqual([]);
    expect((await alone.get()).tags).toEqual([]);
  });
});

test("attributes, events and exceptions of the active span are added to the span of the step", async () => {
  const talks = workflow("talks", (ctx) =>
    ctx.step("say", () => {
      const span = trace.getActiveSpan();
      span?.setAttribute("order", 7).setAttributes({ cents: 4200 }).addEvent("charged");
      span?.recordException(new Error("declined once"));
      expect(span?.isRecording()).toBe(true);
      span?.end();
    }),
  );
  const pawl = await working("memory", [talks]);
  const { spans, stopAfter } = traced(pawl);
  const run = await pawl.start(talks);
  await run.result();
  await stopAfter([run]);
  const said = spans().filter(({ name }) => name === "step say");
  expect(said).toHaveLength(1);
  expect(said[0]).toMatchObject({
    attributes: { order: 7, cents: 4200, "pawl.step": "say" },
    exceptions: ["declined once"],
  });
});

test("a step of a child whose ancestors were not traced in this process is still in their trace", async () => {
  const parent = workflow("parent", (ctx) => ctx.run(leaf));
  const w = await world();
  const run = await w.pawl.start(parent);
  const first = await w.worker([parent]);
  await first.settle();
  await first.kill();
  const { spans, stop } = traced(w.pawl);
  await (await w.worker([leaf])).settle();
  await stop();
  const [query, read] = ["SELECT", "step read"].map((wanted) => spans().find(({ name }) => name === wanted));
  expect(query).toMatchObject({ traceId: run.id.replaceAll("-", ""), parentSpanId: read?.spanId });
});

test("without tracing, no span is active and no run is tagged", async () => {
  const pawl = await working("memory", [leaf]);
  const { tracerProvider } = tracing();
  const seen: unknown[] = [];
  query = () => seen.push(trace.getActiveSpan());
  const span = tracerProvider.getTracer("client").startSpan("GET /");
  const run = await context.with(trace.setSpan(ROOT_CONTEXT, span), () => pawl.start(leaf));
  await run.result();
  expect(seen).toEqual([undefined]);
  expect((await run.get()).tags).toEqual([]);
});
