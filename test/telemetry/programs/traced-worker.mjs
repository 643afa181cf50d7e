// A worker in a process of its own whose runs are traced. Tests ask for its spans, kill it and stop it. Its one
// argument contains all settings.

import { subscribe } from "node:diagnostics_channel";
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from "@opentelemetry/sdk-trace-base";
import { connect, workflow } from "pawl";
import { RunIdGenerator, traceRuns } from "pawl/otel";
import { plainSpan } from "./plain-span.mjs";

const { url, workflows, hangs } = JSON.parse(process.argv[2]);

const leaf = workflow("leaf", (ctx, n) => ctx.step("double", () => n * 2));
const branch = workflow("branch", async (ctx, n) => {
  await ctx.step(
    "flaky",
    ({ attempt }) => {
      if (attempt === 1) throw new Error("once");
    },
    { retry: { initial: 1 } },
  );
  return ctx.run(leaf, n);
});
const tree = workflow("tree", async (ctx) => {
  await ctx.step("plan", () => "three");
  const doubled = await ctx.map(branch, [1, 2, 3]);
  await ctx.step("sign", () => (hangs ? new Promise(() => {}) : "signed"));
  const last = await ctx.run(leaf, 4);
  return [...doubled, last];
});
const known = { leaf, branch, tree };

const exporter = new InMemorySpanExporter();
const tracerProvider = new BasicTracerProvider({
  idGenerator: new RunIdGenerator(),
  spanProcessors: [new SimpleSpanProcessor(exporter)],
});
const silent = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };
const pawl = await connect(url, { logger: silent });
const tracing = traceRuns(pawl, { tracerProvider });
// The start is in the log: from here on the step counts as abandoned when this process dies.
subscribe("pawl:event", ({ type, node }) => {
  if (type === "step.started" && node === "sign") process.send({ kind: "hangs" });
});

process.on("message", async (message) => {
  if (message === "spans") return process.send({ kind: "spans", spans: exporter.getFinishedSpans().map(plainSpan) });
  await worker.stop();
  await tracing.stop();
  process.send({ kind: "last spans", spans: exporter.getFinishedSpans().map(plainSpan) });
  await pawl.close();
  // Nothing is left open now, so the process must end by itself.
  process.disconnect();
});
// The process that started this one is gone.
process.on("disconnect", () => setTimeout(() => process.exit(1), 5_000).unref());

const worker = pawl.worker({ workflows: workflows.map((name) => known[name]), lease: 1_500 });
await worker.start();
process.send({ kind: "ready" });
