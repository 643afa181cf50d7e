/** Each run and each step execution is a span, with the right parent and the right duration. */
import { channel } from "node:diagnostics_channel";
import { type Context, type ContextManager, context, ROOT_CONTEXT, trace } from "@opentelemetry/api";
import { BasicTracerProvider, RandomIdGenerator, type SpanProcessor } from "@opentelemetry/sdk-trace-base";
import { PermanentError, type RunHandle, Workflow, workflow } from "pawl";
import { linkToRun, RunIdGenerator, type TraceOptions, traceRuns } from "pawl/otel";
import { expect, onTestFinished, test } from "vitest";
import { tracing, treeOf } from "../support/spans.js";
import { silent, world } from "../support/virtual-worlds.js";
import { gate } from "../support/waiting.js";

const leaf = workflow("leaf", (ctx, n: number) => ctx.step("double", () => n * 2));
const branch = workflow("branch", (ctx, n: number) => ctx.run(leaf, n));
const tree = workflow("tree", { version: "2", queue: "woods" }, async (ctx) => {
  await ctx.step("flaky", ({ attempt }) => {
    if (attempt === 1) throw new Error("once");
  });
  await ctx.sleep("nap", "1 hour");
  return ctx.map(branch, [1, 2]);
});

/** A world whose runs are traced; `finish` executes everything to its end, through all waits. */
async function traced(options: TraceOptions = {}) {
  const w = await world();
  const { stop } = traceRuns(w.pawl, options);
  onTestFinished(stop);
  const finish = async (...workflows: Parameters<typeof w.worker>[0]) => {
    const { settle } = await w.worker(workflows);
    for (let due = await settle(); due !== null; due = await settle()) w.clock.moveTo(due);
    await stop();
  };
  return { ...w, finish };
}

test("a run, its executions and its descendants form one tree, with the durations of the log", async () => {
  const { tracerProvider, spans } = tracing();
  const w = await traced({ tracerProvider });
  const run = await w.pawl.start(tree, undefined, { hero: { type: "User", id: "7" } });
  await w.finish(tree, branch, leaf);

  expect(treeOf(spans())).toEqual([
    "run tree: completed",
    ...["run branch: completed", "  run leaf: completed", "    step double 1: success"].map((line) => `  ${line}`),
    ...["run branch: completed", "  run leaf: completed", "    step double 1: success"].map((line) => `  ${line}`),
    "  step flaky 1: reattempted_by_exception (once)",
    "  step flaky 2: success",
  ]);
  expect(new Set(spans().map(({ traceId }) => traceId))).toEqual(new Set([run.id.replaceAll("-", "")]));

  const { startedAt, finishedAt } = await run.get();
  const root = spans().find(({ parentSpanId }) => parentSpanId === null);
  expect(root).toMatchObject({ startMs: startedAt?.getTime(), endMs: finishedAt?.getTime() });
  expect(root?.endMs).toBeGreaterThanOrEqual((root?.startMs ?? 0) + 3_600_000);
  const about = { "pawl.run_id": run.id, "pawl.workflow": "tree", "pawl.version": "2", "pawl.queue": "woods" };
  expect(root?.attributes).toEqual({ ...about, "pawl.hero": "User:7", "pawl.status": "completed" });
  const [first] = spans().filter(({ name }) => name === "step flaky");
  expect(first).toMatchObject({
    exceptions: ["once"],
    attributes: { ...about, "pawl.step": "flaky", "pawl.attempt": 1, "pawl.outcome": "reattempted_by_exception" },
  });
});

test("the start of an execution's span is its end minus the recorded duration, whatever the output contains", async () => {
  const slow = workflow("slow", async (ctx) => {
    await ctx.step("long", async () => {
      await new Promise((resolve) => setTimeout(resolve, 20));
      return '"ms":5,"ms":6';
    });
  });
  const { tracerProvider, spans } = tracing();
  const w = await traced({ tracerProvider });
  const run = await w.pawl.start(slow);
  await w.finish(slow);
  const completed = (await run.history()).find(({ type }) => type === "step.completed");
  const ms = completed?.data.ms as number;
  const endMs = completed?.at.getTime() as number;
  expect(ms).toBeGreaterThan(6);
  expect(spans()[0]).toMatchObject({ name: "step long", startMs: endMs - ms, endMs });
});

test("the span of a declared step that slept starts when the step first started", async () => {
  class Patient extends Workflow {
    static {
      this.step("rest", (w) => w.sleep("nap", "1 hour"));
    }
  }
  const { tracerProvider, spans } = tracing();
  const w = await traced({ tracerProvider });
  await w.pawl.start(Patient);
  await w.finish(Patient);
  const [step, run] = spans();
  expect(step?.name).toBe("step rest");
  expect(step?.startMs).toBe(run?.startMs);
  expect((step?.endMs as number) - (step?.startMs as number)).toBeGreaterThanOrEqual(3_600_000);
});

test("the span of a failed run has its exception; the span of a run that was canceled before its start has no duration", async () => {
  const broken = workflow("broken", () => {
    throw new PermanentError("no way");
  });
  const { tracerProvider, spans } = tracing();
  const w = await traced({ tracerProvider });
  await w.pawl.start(broken);
  const late: RunHandle<any, any> = await w.pawl.start(leaf, 1, { delay: "1 day" });
  await late.cancel("not needed");
  await w.finish(broken, leaf);
  const [canceled, failed] = spans();
  expect(failed).toMatchObject({ name: "run broken", error: "no way", exceptions: ["no way"] });
  expect(failed?.attributes).toMatchObject({ "pawl.status": "failed" });
  expect(canceled).toMatchObject({ name: "run leaf", error: null, attributes: { "pawl.status": "canceled" } });
  expect(canceled?.startMs).toBe(canceled?.endMs);
});

test("an execution that ends twice in the log, because its step was skipped meanwhile, is one span", async () => {
  const { tracerProvider, spans } = tracing();
  const w = await traced({ tracerProvider });
  const run = await w.pawl.start(leaf, 1, { delay: "1 day" });
  const about = { runId: run.id, workflow: "leaf", version: "", queue: "leaf", parentId: null, hero: null, at: 1_000 };
  const end = { ...about, node: "double", attempt: 1 };
  channel("pawl:event").publish({ ...end, type: "step.skipped", outcome: "skipped_by_flow_control", data: null });
  channel("pawl:event").publish({ ...end, type: "step.completed", outcome: "success", data: '{"ms":9,"output":2}' });
  expect(treeOf(spans())).toEqual(["step double 1: skipped_by_flow_control"]);
});

test("with a provider that generates its own ids, a run and its descendants are still in one trace", async () => {
  const { tracerProvider, spans } = tracing(new RandomIdGenerator());
  const w = await traced({ tracerProvider });
  const runs = [await w.pawl.start(tree), await w.pawl.start(tree)];
  await w.finish(tree, branch, leaf);
  expect(spans()).toHaveLength(18);
  const traces = new Map(runs.map(({ id }) => [id.replaceAll("-", ""), 0]));
  for (const { traceId } of spans()) traces.set(traceId, (traces.get(traceId) ?? 0) + 1);
  expect([...traces.values()]).toEqual([9, 9]);
});

test("spans of other libraries that start at the same time get their own ids", async () => {
  const { tracerProvider, spans } = tracing();
  const others: string[] = [];
  const nosy: SpanProcessor = {
    onStart: () => {
      const span = tracerProvider.getTracer("other").startSpan("other", { root: true });
      others.push(span.spanContext().traceId, span.spanContext().spanId);
    },
    onEnd: (span) => void inner.push(span.spanContext().spanId),
    forceFlush: async () => {},
    shutdown: async () => {},
  };
  const inner: string[] = [];
  const provider = new BasicTracerProvider({ idGenerator: new RunIdGenerator(), spanProcessors: [nosy] });
  const w = await traced({ tracerProvider: provider });
  const run = await w.pawl.start(leaf, 1);
  await w.finish(leaf);
  expect(inner).toHaveLength(2);
  expect(others).toHaveLength(4);
  expect(new Set([...others, ...inner, run.id.replaceAll("-", "")]).size).toBe(7);
  expect(spans()).toEqual([]);
});

test("linkToRun adds a link to the run to the caller's span", async () => {
  const { tracerProvider, spans } = tracing();
  const w = await traced({ tracerProvider });
  context.setGlobalContextManager(new SimpleContextManager());
  onTestFinished(() => context.disable());
  linkToRun(await w.pawl.start(leaf, 1)); // Without an active span, this is a no-op.
  const span = tracerProvider.getTracer("shop").startSpan("POST /orders");
  const run = await w.pawl.start(leaf, 2);
  context.with(trace.setSpan(ROOT_CONTEXT, span), () => linkToRun(run));
  span.end();
  await w.finish(leaf);
  const linked = (span as unknown as { links: { context: { traceId: string; spanId: string } }[] }).links;
  const own = spans().find(({ name, attributes }) => name === "run leaf" && attributes["pawl.run_id"] === run.id);
  expect(linked.map(({ context: { traceId, spanId } }) => ({ traceId, spanId }))).toEqual([
    { traceId: own?.traceId, spanId: own?.spanId },
  ]);
});

/** The API has no context manager, and the one of the SDK for Node is in another package. */
class SimpleContextManager implements ContextManager {
  #active = ROOT_CONTEXT;
  active = () => this.#active;
  with<A extends unknown[], F extends (...args: A) => ReturnType<F>>(
    within: Context,
    fn: F,
    self?: ThisParameterType<F>,
    ...args: A
  ): ReturnType<F> {
    this.#active = within;
    try {
      return fn.apply(self, args);
    } finally {
      this.#active = ROOT_CONTEXT;
    }
  }
  bind = <T>(_context: Context, target: T) => target;
  enable = () => this;
  disable = () => this;
}

test("an exporter that throws affects no run, and is reported once", async () => {
  const warnings: unknown[][] = [];
  const bad: SpanProcessor = {
    onStart: () => {},
    onEnd: () => {
      throw new Error("the exporter is broken");
    },
    forceFlush: async () => {},
    shutdown: async () => {},
  };
  const tracerProvider = new BasicTracerProvider({ idGenerator: new RunIdGenerator(), spanProcessors: [bad] });
  const w = await traced({ tracerProvider, logger: { ...silent, warn: (...args) => void warnings.push(args) } });
  const run = await w.pawl.start(tree);
  await w.finish(tree, branch, leaf);
  expect(await run.status()).toBe("completed");
  expect(warnings).toEqual([
    [
      "Tracing of runs failed. The runs are not affected; further failures are not logged.",
      expect.objectContaining({ message: "the exporter is broken" }),
    ],
  ]);
});

test("when the lookup of the parent fails, the span is exported without its place in the tree", async () => {
  const { tracerProvider, spans } = tracing();
  const warnings: unknown[][] = [];
  const w = await world();
  const away = () => Promise.reject(new Error("the database is away"));
  const run = await w.pawl.start(branch, 1);
  const first = await w.worker([branch]);
  await first.settle();
  await first.kill();
  // Tracing starts only now, so nothing is known about the parent.
  const { stop } = traceRuns(
    { run: () => ({ get: away, executions: away }) },
    { tracerProvider, logger: { warn: (...args) => void warnings.push(args) } },
  );
  await (await w.worker([leaf])).settle();
  await stop();
  expect(spans().map(({ name }) => name)).toEqual(["step double", "run leaf"]);
  expect(new Set(spans().map(({ traceId }) => traceId))).toEqual(new Set([run.id.replaceAll("-", "")]));
  expect(warnings).toEqual([[expect.any(String), expect.objectContaining({ message: "the database is away" })]]);
});

test("stop() waits for pending lookups", async () => {
  const { tracerProvider, spans } = tracing();
  const root = gate<{ parentId: null; startedAt: null }>();
  const { stop } = traceRuns(
    { run: () => ({ get: () => root.opened, executions: async () => [] }) },
    { tracerProvider },
  );
  const [runId, parentId] = ["01a1e4ec-d052-778d-8a80-218db857f150", "01a1e4ec-d052-778d-8a80-218db857f151"];
  const about = { runId, workflow: "leaf", version: "", queue: "leaf", parentId, hero: null, at: 1_000 };
  channel("pawl:event").publish({
    ...about,
    type: "step.completed",
    node: "double",
    attempt: 1,
    outcome: "success",
    data: null,
  });
  const stopped = stop();
  root.open({ parentId: null, startedAt: null });
  await stopped;
  expect(treeOf(spans())).toEqual(["step double 1: success"]);
});

test("after stop() no more spans are created", async () => {
  const { tracerProvider, spans } = tracing();
  const w = await traced({ tracerProvider });
  await w.finish(leaf);
  await w.pawl.start(leaf, 1);
  await w.finish(leaf);
  expect(spans()).toEqual([]);
});
