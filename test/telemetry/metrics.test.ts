/** The OpenTelemetry figures match a count by hand. */
import {
  AggregationTemporality,
  type DataPoint,
  type Histogram,
  InMemoryMetricExporter,
  MeterProvider,
  type MetricData,
  PeriodicExportingMetricReader,
} from "@opentelemetry/sdk-metrics";
import { workflow } from "pawl";
import { measureRuns } from "pawl/otel";
import { expect, onTestFinished, test } from "vitest";
import { world } from "../support/virtual-worlds.js";
import { expectedCounts, expectedQueue, queueScenario, runScenario } from "./count-by-hand.js";
import { expectedLimits, limitScenario } from "./limits-by-hand.js";
import { expectedOccurrences, lateScenario, scheduleScenario } from "./schedules-by-hand.js";

function measuring() {
  const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
  // The test collects explicitly; the reader itself would export once an hour.
  const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 3_600_000 });
  const meterProvider = new MeterProvider({ readers: [reader] });
  onTestFinished(() => meterProvider.shutdown());
  const collect = async () => {
    exporter.reset();
    await meterProvider.forceFlush();
    const scopes = exporter.getMetrics().at(-1)?.scopeMetrics ?? [];
    return new Map(scopes.flatMap(({ metrics }) => metrics).map((metric) => [metric.descriptor.name, metric]));
  };
  return { meterProvider, collect };
}

/** Figures by the values of the attributes: { "ship completed": 2 }. */
function figuresOf<Value>(metric: MetricData | undefined, read: (value: Value) => number) {
  const points = (metric?.dataPoints ?? []) as unknown as readonly DataPoint<Value>[];
  return Object.fromEntries(
    points.map(({ attributes, value }) => [Object.values(attributes).join(" "), read(value)] as const),
  );
}

const number = (value: number) => value;
const count = ({ count: times }: Histogram) => times;

test("counters and histograms match a count by hand", async () => {
  const { meterProvider, collect } = measuring();
  const { stop } = await runScenario((pawl) => measureRuns(pawl, { meterProvider }));
  const told = await collect();
  await stop();
  expect(figuresOf(told.get("pawl.runs.started"), number)).toEqual(expectedCounts.started);
  expect(figuresOf(told.get("pawl.runs.ended"), number)).toEqual(expectedCounts.ended);
  expect(figuresOf(told.get("pawl.run.duration"), count)).toEqual(expectedCounts.runsTook);
  expect(figuresOf(told.get("pawl.step.duration"), count)).toEqual(expectedCounts.executions);
  expect(figuresOf(told.get("pawl.step.failures"), number)).toEqual(expectedCounts.failures);
  const sums = figuresOf(told.get("pawl.run.duration"), ({ sum }: Histogram) => sum ?? 0);
  // Two drives of two hours, not as many milliseconds.
  expect(sums["ship completed"]).toBeGreaterThanOrEqual(2 * 7_200);
  expect(sums["ship completed"]).toBeLessThan(2 * 7_300);
});

test("pauses are counted", async () => {
  const { meterProvider, collect } = measuring();
  const w = await world();
  const { stop } = measureRuns(w.pawl, { meterProvider });
  onTestFinished(stop);
  const stuck = workflow("stuck", async (ctx) => ctx.pause("look at this"));
  const { settle } = await w.worker([stuck]);
  await w.pawl.start(stuck);
  await settle();
  expect(figuresOf((await collect()).get("pawl.runs.paused"), number)).toEqual({ stuck: 1 });
});

test("queue gauges match the database, and are not read after stop()", async () => {
  const { meterProvider, collect } = measuring();
  const { pawl, looked } = await queueScenario();
  const { stop } = measureRuns(pawl, { meterProvider });
  const told = await collect();
  for (const [name, value] of Object.entries(expectedQueue))
    expect(figuresOf(told.get(`pawl.queue.${name}`), number)).toEqual({ idle: 0, post: value });
  expect(told.get("pawl.queue.oldest_age")?.descriptor.unit).toBe("s");
  await stop();
  await collect();
  expect(looked()).toBe(1);
});

test("occurrences of schedules are counted by outcome", async () => {
  const { meterProvider, collect } = measuring();
  const counts: Record<string, number>[] = [];
  const day = await scheduleScenario(
    (pawl) => measureRuns(pawl, { meterProvider }),
    async () => counts.push(figuresOf((await collect()).get("pawl.schedule.occurrences"), number)),
  );
  expect(counts).toEqual(expectedOccurrences);
  await day.close();
});

test("the latest 20 schedules have a lag of their own, and the maximum has no attribute", async () => {
  const { meterProvider, collect } = measuring();
  const { pawl, lags } = await lateScenario();
  const { stop } = measureRuns(pawl, { meterProvider });
  onTestFinished(stop);
  const lag = (await collect()).get("pawl.schedule.lag");
  expect(lag?.descriptor.unit).toBe("s");
  expect(figuresOf(lag, number)).toEqual({ "": lags[0]?.[1], ...Object.fromEntries(lags.slice(0, 20)) });
});

test("limits have gauges by name, and none by key", async () => {
  const { meterProvider, collect } = measuring();
  const { stop } = measureRuns(await limitScenario(), { meterProvider });
  onTestFinished(stop);
  const told = await collect();
  for (const [gauge, expected] of Object.entries(expectedLimits))
    expect([gauge, figuresOf(told.get(`pawl.limit.${gauge}`), number)]).toEqual([gauge, expected]);
});

test("an unreachable database is reported once, and the counters are still exported", async () => {
  const { meterProvider, collect } = measuring();
  const warnings: unknown[][] = [];
  const away = () => Promise.reject(new Error("the database is away"));
  const logger = { warn: (...args: unknown[]) => void warnings.push(args) };
  await runScenario((pawl) => measureRuns({ run: (id) => pawl.run(id), queues: away }, { meterProvider, logger }));
  await collect();
  const told = await collect();
  expect(figuresOf(told.get("pawl.runs.started"), number)).toEqual(expectedCounts.started);
  expect(warnings).toHaveLength(1);
});
