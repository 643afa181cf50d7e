/** Prometheus can parse the text, and its figures match a count by hand. */
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { PauseError, workflow } from "pawl";
import { prometheus, servePrometheus } from "pawl/prometheus";
import { expect, onTestFinished, test } from "vitest";
import { silent, world } from "../support/virtual-worlds.js";
import { expectedCounts, expectedQueue, queueScenario, runScenario } from "./count-by-hand.js";
import { expectedLimits, limitScenario } from "./limits-by-hand.js";
import { expectedOccurrences, lateScenario, scheduleScenario } from "./schedules-by-hand.js";

interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

const metricName = "[a-zA-Z_:][a-zA-Z0-9_:]*";
const labelPair = '[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\\\\n]|\\\\["\\\\n])*"';
const sampleLine = new RegExp(`^(${metricName})(?:\\{(${labelPair}(?:,${labelPair})*)\\})? (\\S+)$`);

/** As strict as the specification: each line is a sample, or describes the samples that follow it. */
function parse(text: string): { types: Map<string, string>; samples: Sample[] } {
  expect(text.endsWith("\n")).toBe(true);
  const types = new Map<string, string>();
  const samples: Sample[] = [];
  let family = "";
  for (const line of text.slice(0, -1).split("\n")) {
    const type = new RegExp(`^# TYPE (${metricName}) (counter|gauge|histogram)$`).exec(line);
    if (type !== null) {
      family = type[1] as string;
      expect(types.has(family)).toBe(false);
      types.set(family, type[2] as string);
      continue;
    }
    if (new RegExp(`^# HELP ${metricName} .+$`).test(line)) continue;
    const [, name = "", labels = "", value] = sampleLine.exec(line) ?? expect.fail(`not a sample: ${line}`);
    expect(name.replace(/_(bucket|sum|count)$/, types.get(family) === "histogram" ? "" : "$&")).toBe(family);
    expect(Number.isFinite(Number(value))).toBe(true);
    const pairs = [...labels.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(
      ([, key, text]) => [key as string, JSON.parse(`"${text}"`) as string] as const,
    );
    samples.push({ name, labels: Object.fromEntries(pairs), value: Number(value) });
  }
  return { types, samples };
}

const figuresOf = (samples: readonly Sample[], name: string) =>
  Object.fromEntries(
    samples
      .filter((sample) => sample.name === name)
      .map(({ labels, value }) => [Object.values(labels).join(" "), value] as const),
  );

test("the text parses, and its figures match a count by hand", async () => {
  let figures: ReturnType<typeof prometheus> | undefined;
  const day = await runScenario((pawl) => (figures = prometheus(pawl)));
  const { types, samples } = parse(await (figures as NonNullable<typeof figures>)());
  expect([...types]).toEqual([
    ["pawl_runs_started_total", "counter"],
    ["pawl_runs_ended_total", "counter"],
    ["pawl_runs_paused_total", "counter"],
    ["pawl_run_duration_seconds", "histogram"],
    ["pawl_step_duration_seconds", "histogram"],
    ["pawl_step_failures_total", "counter"],
    ["pawl_schedule_occurrences_total", "counter"],
    ["pawl_queue_depth", "gauge"],
    ["pawl_queue_oldest_age_seconds", "gauge"],
    ["pawl_queue_executing", "gauge"],
    ["pawl_queue_workers", "gauge"],
    ["pawl_queue_paused", "gauge"],
    ["pawl_schedule_lag_seconds", "gauge"],
    ["pawl_limit_in_use", "gauge"],
    ["pawl_limit_waiting", "gauge"],
    ["pawl_limit_concurrency", "gauge"],
    ["pawl_limit_overridden", "gauge"],
  ]);
  expect(figuresOf(samples, "pawl_runs_started_total")).toEqual(expectedCounts.started);
  expect(figuresOf(samples, "pawl_runs_ended_total")).toEqual(expectedCounts.ended);
  expect(figuresOf(samples, "pawl_run_duration_seconds_count")).toEqual(expectedCounts.runsTook);
  expect(figuresOf(samples, "pawl_step_duration_seconds_count")).toEqual(expectedCounts.executions);
  expect(figuresOf(samples, "pawl_step_failures_total")).toEqual(expectedCounts.failures);
  expect(figuresOf(samples, "pawl_queue_workers")).toEqual({ pack: 1, ship: 1 });
  await day.stop();
});

test("buckets are cumulative: two drives of two hours are below six hours, and not below one", async () => {
  let figures: ReturnType<typeof prometheus> | undefined;
  await runScenario((pawl) => (figures = prometheus(pawl)));
  const { samples } = parse(await (figures as NonNullable<typeof figures>)());
  const buckets = samples.filter(
    ({ name, labels: { workflow: of, status } }) =>
      name === "pawl_run_duration_seconds_bucket" && of === "ship" && status === "completed",
  );
  const below = Object.fromEntries(buckets.map(({ labels, value }) => [labels.le, value]));
  expect(below).toMatchObject({ "0.005": 0, "3600": 0, "21600": 2, "604800": 2, "+Inf": 2 });
  const values = buckets.map(({ value }) => value);
  expect(values).toEqual([...values].sort((a, b) => a - b));
  const sums = figuresOf(samples, "pawl_run_duration_seconds_sum");
  expect(sums["ship completed"]).toBeGreaterThanOrEqual(2 * 7_200);
});

test("queue gauges match the database", async () => {
  const { pawl } = await queueScenario();
  const figures = prometheus(pawl);
  onTestFinished(figures.stop);
  const { samples } = parse(await figures());
  for (const [name, value] of Object.entries(expectedQueue)) {
    const full = `pawl_queue_${name}${name === "oldest_age" ? "_seconds" : ""}`;
    expect(figuresOf(samples, full)).toEqual({ idle: 0, post: value });
  }
});

test("a pause counts once, whether it was caused by code, an error or an operator", async () => {
  const fragile = workflow("fragile", async (ctx, why: "code" | "error" | "operator") => {
    if (why === "code") ctx.pause("look at this");
    if (why === "error") await ctx.step("look", () => Promise.reject(new PauseError("approve it")));
    await ctx.waitForSignal("go");
  });
  const w = await world();
  const figures = prometheus(w.pawl);
  onTestFinished(figures.stop);
  const { settle } = await w.worker([fragile]);
  for (const why of ["code", "error", "operator"] as const) {
    const run = await w.pawl.start(fragile, why);
    await settle();
    if (why === "operator") await run.pause("by hand");
    expect(await run.status()).toBe("paused");
  }
  const { samples } = parse(await figures());
  expect(figuresOf(samples, "pawl_runs_paused_total")).toEqual({ fragile: 3 });
});

test("steps have separate series by name, up to 200 per workflow", async () => {
  const busy = workflow("busy", async (ctx) => {
    for (let n = 0; n < 3; n += 1) await ctx.step("same", () => n);
    for (let n = 0; n < 250; n += 1) await ctx.step(`page_${n}`, () => n);
  });
  const w = await world();
  const figures = prometheus(w.pawl);
  onTestFinished(figures.stop);
  const { settle } = await w.worker([busy]);
  await w.pawl.start(busy);
  await settle();
  const { samples } = parse(await figures());
  const counts = figuresOf(samples, "pawl_step_duration_seconds_count");
  expect(counts).toMatchObject({ "busy same": 3, "busy page_0": 1, "busy page_198": 1, "busy other": 51 });
  expect(Object.keys(counts)).toHaveLength(201);
});

test("occurrences of schedules are counted by outcome, and consecutive skipped ones each", async () => {
  const counts: Record<string, number>[] = [];
  const day = await scheduleScenario(
    (pawl) => prometheus(pawl),
    async (figures) => counts.push(figuresOf(parse(await figures()).samples, "pawl_schedule_occurrences_total")),
  );
  expect(counts).toEqual(expectedOccurrences);
  await day.close();
});

test("the latest 20 schedules have a lag of their own, and the maximum has no label", async () => {
  const { pawl, lags } = await lateScenario();
  const figures = prometheus(pawl);
  onTestFinished(figures.stop);
  const lagOf = async () => figuresOf(parse(await figures()).samples, "pawl_schedule_lag_seconds");
  expect(await lagOf()).toEqual({ "": lags[0]?.[1], ...Object.fromEntries(lags.slice(0, 20)) });
  for (const [name] of lags) await pawl.schedules.delete(name);
  expect(await lagOf()).toEqual({ "": 0 });
});

test("limits have gauges by name, and none by key", async () => {
  const figures = prometheus(await limitScenario());
  onTestFinished(figures.stop);
  const { samples } = parse(await figures());
  for (const [gauge, expected] of Object.entries(expectedLimits))
    expect([gauge, figuresOf(samples, `pawl_limit_${gauge}`)]).toEqual([gauge, expected]);
});

test("names with quotes, backslashes and line breaks are escaped", async () => {
  const odd = workflow('a "b" \\c', () => 1);
  const w = await world();
  const figures = prometheus(w.pawl);
  onTestFinished(figures.stop);
  const { settle } = await w.worker([odd]);
  await w.pawl.start(odd);
  await settle();
  const { samples } = parse(await figures());
  expect(figuresOf(samples, "pawl_runs_started_total")).toEqual({ [odd.name]: 1 });
});

test("metrics are served only at /metrics, and an unreachable database removes only the gauges", async () => {
  const w = await world();
  const away = () => Promise.reject(new Error("the database is away"));
  const options = { port: 0, host: "127.0.0.1", logger: silent };
  const server = await servePrometheus({ run: (id) => w.pawl.run(id), queues: away }, options);
  onTestFinished(() => void server.close());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const answer = await fetch(`${url}/metrics?now`);
  expect(answer.status).toBe(200);
  expect(answer.headers.get("content-type")).toBe("text/plain; version=0.0.4; charset=utf-8");
  const { types } = parse(await answer.text());
  expect(types.get("pawl_runs_started_total")).toBe("counter");
  expect(types.has("pawl_queue_depth")).toBe(false);
  expect((await fetch(url)).status).toBe(404);
  expect((await fetch(`${url}//`)).status).toBe(404);
  expect((await fetch(`${url}/metrics`, { method: "POST" })).status).toBe(405);

  await expect(servePrometheus(w.pawl, { ...options, port: Number(new URL(url).port) })).rejects.toThrow("EADDRINUSE");
  const closed = once(server, "close");
  server.close();
  server.closeAllConnections();
  await closed;
});
