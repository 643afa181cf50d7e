/** Schedules over HTTP: put, read, operate and delete them, see when they fire, and why a run began. */
import { schedule, workflow } from "pawl";
import { describe, expect, test } from "vitest";
import { until } from "../support/waiting.js";
import { EventParser } from "./event-reader.js";
import { type HttpAnswer, type ServedOptions, serve } from "./served-pawl.js";
import { WatchedRuntime } from "./watched-runtime.js";

const report = workflow("report", async (ctx, input: { id: number } | undefined) => {
  await ctx.waitForSignal("send");
  return { id: input?.id, missed: ctx.schedule?.missed };
});
/** None of the schedules of these tests fires by itself. */
const farAway = "2100-01-01T00:00Z";
const declared = schedule("declared", { workflow: report, input: { id: 1 }, at: [farAway] });

async function world(options: ServedOptions = {}) {
  const served = await serve({ registered: [report], ...options });
  const worker = served.pawl.worker({ workflows: [report], schedules: [declared] });
  await worker.start();
  const call = async (method: string, path: string, body?: unknown): Promise<HttpAnswer> => {
    const response = await fetch(`${served.url}/api/v1/schedules${path}`, {
      method,
      ...(body === undefined ? {} : { headers: { "content-type": "application/json" }, body: JSON.stringify(body) }),
    });
    return { status: response.status, headers: response.headers, json: await response.json() };
  };
  const put = (name: string, body: object) => call("PUT", `/${name}`, { workflow: "report", ...body });
  return { ...served, call, put };
}

describe("PUT", () => {
  test("creates a schedule, and gives it other options", async () => {
    const { call, put } = await world();
    const hero = { type: "Customer", id: "42" };
    const created = await put("customer-42", {
      input: { id: 42, since: { $pawl: "Date", v: "2026-01-31T09:00:00.000Z" } },
      ...{ cron: "30 2 * * *", timeZone: "Europe/Berlin", startAt: farAway, except: ["2100-12-25"] },
      ...{ overlap: "bufferOne", catchUp: { mode: "all", within: "2 days" }, jitter: "5m" },
      ...{ pauseOnFailure: 3, maxRuns: 10, priority: 2, tags: ["nightly"], hero },
    });
    expect(created.status).toBe(200);
    expect(created.json).toMatchObject({
      ...{ name: "customer-42", workflow: "report", app: null, status: "active" },
      rule: "At 02:30 every day, Europe/Berlin, from 2100-01-01 00:00 UTC on, except on 2100-12-25",
      ...{ cron: "30 2 * * *", timeZone: "Europe/Berlin", everyMs: null, nextFor: "2100-01-01T01:30:00.000Z" },
      input: { id: 42, since: { $pawl: "Date", v: "2026-01-31T09:00:00.000Z" } },
      ...{ overlap: "bufferOne", catchUp: { mode: "all", withinMs: 172_800_000 }, jitterMs: 300_000 },
      ...{ pauseOnFailure: 3, maxRuns: 10, lateMs: 0, last: null },
    });
    expect((await call("GET", "/customer-42")).json).toEqual(created.json);
    expect((await call("GET", "/customer-42?plain=1")).json.input).toEqual({
      id: 42,
      since: "2026-01-31T09:00:00.000Z",
    });

    const changed = await put("customer-42", { every: "1h", offset: 60_000, startAt: farAway });
    expect(changed.json).toMatchObject({
      rule: "Every hour, 1 minute past, from 2100-01-01 00:00 UTC on",
      input: null,
    });
    expect(changed.json.createdAt).toBe(created.json.createdAt);
    expect(changed.json.nextFor).toBe("2100-01-01T00:01:00.000Z");
  });

  test("refuses what schedules.put() refuses, with its sentence, and what is no field", async () => {
    const { call, put } = await world();
    const refusals: readonly (readonly [object, string])[] = [
      [{ cron: "30 25 * * *" }, "25"],
      [{ cron: "* * * * *", every: "1h" }, "has both cron and every"],
      [{ cron: "* * * * *", timeZone: "Europe/Bonn" }, "Europe/Bonn"],
      [{ at: ["2026-12-24 18:00"] }, "has no zone"],
      [{}, "does not say when it fires"],
      [{ every: "1h", evry: 1 }, 'has no field "evry"'],
    ];
    for (const [body, sentence] of refusals) {
      const { status, json } = await put("new", body);
      expect([status, json.detail]).toEqual([400, expect.stringContaining(sentence)]);
    }
    const { status, json } = await put("declared", { every: "1h" });
    expect([status, json.code]).toEqual([409, "INVALID_STATE"]);
    expect(json.detail).toContain('is declared by the code of application "default"');
    expect((await call("GET", "/new")).json).toMatchObject({ status: 404, code: "SCHEDULE_NOT_FOUND" });
  });
});

test("GET lists schedules by name and application, a page at a time", async () => {
  const { call, put } = await world();
  for (const name of ["c", "a", "b"]) await put(name, { every: "1h", startAt: farAway });
  const names = (answer: HttpAnswer) => answer.json.schedules.map((one: { name: string }) => one.name);
  const first = await call("GET", "?limit=2");
  expect(names(first)).toEqual(["a", "b"]);
  const second = await call("GET", `?limit=2&cursor=${first.json.next}`);
  expect([names(second), second.json.next]).toEqual([["c", "declared"], null]);
  expect(names(await call("GET", "?app=default"))).toEqual(["declared"]);
  expect(names(await call("GET", "?app=another"))).toEqual([]);
});

test("/next tells local times and the days on which the clocks change", async () => {
  const { call, put } = await world();
  const rule = { cron: "30 2 * * *", timeZone: "Europe/Berlin", repeat: "both", startAt: "2026-01-01T00:00Z" };
  await put("nightly", rule);
  const next = (query: string) => call("GET", `/nightly/next?${query}`);
  expect((await next("count=4&from=2026-10-24T00:00:00Z")).json).toEqual({
    timeZone: "Europe/Berlin",
    instants: [
      { at: "2026-10-24T00:30:00.000Z", local: "Sat 2026-10-24 02:30", offset: "+02:00", transitionDay: false },
      { at: "2026-10-25T00:30:00.000Z", local: "Sun 2026-10-25 02:30", offset: "+02:00", transitionDay: true },
      { at: "2026-10-25T01:30:00.000Z", local: "Sun 2026-10-25 02:30", offset: "+01:00", transitionDay: true },
      { at: "2026-10-26T01:30:00.000Z", local: "Mon 2026-10-26 02:30", offset: "+01:00", transitionDay: false },
    ],
  });
  expect((await next("count=1&from=2027-03-27T12:00:00Z")).json.instants).toEqual([
    { at: "2027-03-28T01:00:00.000Z", local: "Sun 2027-03-28 03:00", offset: "+02:00", transitionDay: true },
  ]);
  expect((await next("")).json.instants).toHaveLength(10);
  const withoutZone = await next("from=2026-10-24T00:00:00");
  expect([withoutZone.status, withoutZone.json.detail]).toEqual([400, expect.stringContaining("with its zone")]);
  expect((await call("GET", "/none/next")).status).toBe(404);
});

describe("commands", () => {
  test("pause and resume, with the user of authorize", async () => {
    const { call, put } = await world({ authorize: () => ({ user: "ada", access: "all" }) });
    await put("a", { every: "1h", startAt: farAway });
    const pause = { reason: "The month is closed.", by: "mallory", until: "2100-02-01T00:00:00+01:00" };
    const paused = (await call("POST", "/a/pause", pause)).json;
    expect(paused).toMatchObject({ status: "paused", pausedBy: "ada", pauseReason: "The month is closed." });
    expect(paused.pausedUntil).toBe("2100-01-31T23:00:00.000Z");
    expect(paused.nextAt).toBe(paused.pausedUntil);
    const aDay = (await call("POST", "/a/pause", { until: "1 day" })).json;
    expect(Date.parse(aDay.pausedUntil) - Date.parse(aDay.pausedAt)).toBeGreaterThanOrEqual(86_400_000);
    const resumed = (await call("POST", "/a/resume", {})).json;
    expect(resumed).toMatchObject({ status: "active", pausedAt: null, nextAt: "2100-01-01T00:00:00.000Z" });

    await put("over", { at: ["2020-01-01T00:00Z"] });
    const refused = await call("POST", "/over/pause", {});
    expect([refused.status, refused.json.code]).toEqual([409, "INVALID_STATE"]);
    expect(refused.json.detail).toContain("it has ended");
  });

  test("trigger starts a run, which says which schedule it is of, and the ledger has it", async () => {
    const { call, put, get, post } = await world();
    await put("a", { input: { id: 7 }, every: "1h", startAt: farAway });
    const triggered = await call("POST", "/a/trigger", { by: "ada", reason: "A customer asked." });
    expect(triggered.json).toMatchObject({ outcome: "ran", manual: true, by: "ada", reason: "A customer asked." });
    const { runId, scheduledFor } = triggered.json;
    const run = (await get(`/api/v1/runs/${runId}`)).json;
    expect(run).toMatchObject({ workflow: "report", input: { id: 7 } });
    expect(run.schedule).toMatchObject({ name: "a", scheduledFor, missed: 0, manual: true, backfill: false });
    expect((await get("/api/v1/runs")).json.runs[0].schedule).toEqual(run.schedule);
    const { id } = (await post("/api/v1/workflows/report/runs")).json;
    expect((await get(`/api/v1/runs/${id}`)).json.schedule).toBeNull();

    expect((await call("POST", "/a/trigger", {})).json).toMatchObject({ outcome: "skipped_overlap", runId: null });
    expect((await call("POST", "/a/trigger", { force: true })).json.outcome).toBe("ran");
    expect((await call("GET", "/a")).json).toMatchObject({ openRuns: 2, lateMs: 0, last: { outcome: "ran" } });

    const first = (await call("GET", "/a/occurrences?limit=2")).json;
    const second = (await call("GET", `/a/occurrences?limit=2&cursor=${first.next}`)).json;
    const outcomes = [...first.occurrences, ...second.occurrences].map(({ outcome }) => outcome);
    expect([outcomes.sort(), second.next]).toEqual([["ran", "ran", "skipped_overlap"], null]);
  });

  test("backfill tells beforehand what it would run, and then runs it", async () => {
    const { call, put, pawl } = await world();
    await put("a", { cron: "0 6 * * *", endAt: "2020-01-10T00:00Z" });
    const range = { from: "2020-01-01T00:00:00Z", to: "2020-01-02T23:00:00Z", by: "ada" };
    const plan = { instants: ["2020-01-01T06:00:00.000Z", "2020-01-02T06:00:00.000Z"], alreadyDone: 0 };
    expect((await call("POST", "/a/backfill", { ...range, dryRun: true })).json).toEqual(plan);
    expect((await call("GET", "/a/occurrences")).json.occurrences).toEqual([]);
    expect((await call("POST", "/a/backfill", range)).json).toEqual(plan);
    expect((await call("POST", "/a/backfill", range)).json).toEqual({ instants: [], alreadyDone: 2 });
    // One after another.
    await until(async () => (await pawl.runs({ workflow: "report" })).runs.length === 1);
    const [row] = (await call("GET", "/a/occurrences")).json.occurrences;
    expect(row).toMatchObject({ backfill: true, outcome: "buffered", pending: "waiting", by: "ada" });
  });

  test("DELETE deletes what was put, and not what code declares", async () => {
    const lines: string[] = [];
    const log = (...args: unknown[]) => void lines.push(args.join(" "));
    const { call, put } = await world({ logger: { debug: () => {}, info: log, warn: log, error: log } });
    await put("a", { every: "1h", startAt: farAway });
    expect((await call("DELETE", "/a?by=ada&reason=unused")).status).toBe(200);
    expect(lines).toContain('Schedule "a" was deleted by ada (unused).');
    expect((await call("GET", "/a")).status).toBe(404);
    expect((await call("DELETE", "/a")).json.code).toBe("SCHEDULE_NOT_FOUND");
    expect((await call("DELETE", "/declared")).json.code).toBe("INVALID_STATE");
  });
});

test("a client that watches changes is told when a schedule changes elsewhere", async () => {
  const runtime = new WatchedRuntime();
  const { pawl, url } = await world({ runtime });
  await pawl.schedules.put("a", { workflow: "report", at: [farAway] });
  const body = (await fetch(`${url}/api/v1/changes`)).body as ReadableStream<Uint8Array>;
  const reader = body.getReader();
  const parser = new EventParser();
  const nextChange = async () => {
    const { value } = await reader.read();
    return parser.add(new TextDecoder().decode(value)).map(({ event }) => event);
  };
  expect(await nextChange()).toEqual(["change"]);
  // Without this timer, only hints announce a change.
  runtime.stopIntervals();
  for (const change of [
    () => pawl.schedules.pause("a"),
    () => pawl.schedules.resume("a"),
    () => pawl.schedules.delete("a"),
  ]) {
    const told = nextChange();
    await change();
    expect(await told).toEqual(["change"]);
  }
  await reader.cancel();
});
