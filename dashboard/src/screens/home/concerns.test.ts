import { describe, expect, test } from "vitest";
import { concernsOf, type Facts } from "./concerns.js";

const now = Date.UTC(2026, 0, 31, 12);
const iso = (agoMs: number) => new Date(now - agoMs).toISOString();
const hour = 3_600_000;

const none = { pending: 0, running: 0, waiting: 0, paused: 0, failed: 0, canceled: 0 };
const calm: Facts = {
  counts: { total: none, workflows: {}, capped: [] },
  errors: { errors: [], capped: [] },
  queues: [],
  workers: [],
  schedules: [],
  now,
  writeSpan: (ms) => `${ms / 1_000} s`,
};
const error: Facts["errors"]["errors"][number] = {
  ...{ fingerprint: "f1", workflow: "order", status: "paused", step: "charge", name: "Error", message: "declined" },
  ...{ count: 3, lastDayCount: 2, firstRunAt: iso(hour), lastRunAt: iso(1), latestRunId: "r1" },
};
const queue: Facts["queues"][number] = {
  ...{ name: "mail", workflows: ["mail"], depth: 0, depthCapped: false, oldestAgeMs: null, executing: 0 },
  ...{ workers: ["w1"], paused: null },
};
const worker: Facts["workers"][number] = {
  ...{ id: "w1", name: "w1", host: "h", pid: 1, port: null, live: true, startedAt: iso(hour), heartbeatAt: iso(1) },
  ...{ leaseMs: 1, executing: 0, loopLagMs: null, workflows: [{ name: "mail", version: "" }], jobs: [], graphs: false },
};
const last = { id: "r1", outcome: "ran" as const, scheduledFor: iso(hour), at: iso(hour) };
const schedule: Facts["schedules"][number] = {
  ...{ name: "nightly", workflow: "report", status: "active", rule: "Every hour", cron: null, timeZone: "UTC" },
  ...{
    everyMs: hour,
    app: "shop",
    nextFor: iso(-hour),
    nextAt: iso(-hour),
    lateMs: 0,
    input: null,
    computesInput: true,
  },
  ...{ overlap: "skip", catchUp: { mode: "latest", withinMs: null }, jitterMs: 0, pauseOnFailure: null, maxRuns: null },
  ...{
    acceptedRuns: 0,
    failedInARow: 0,
    openRuns: 0,
    waiting: 0,
    backfillWaiting: 0,
    last: null,
    createdAt: iso(hour),
  },
  ...{ pausedAt: null, pausedUntil: null, pausedBy: null, pauseReason: null },
};
const searchIn = (to: string) => new URLSearchParams(to.split("?")[1]).get("q");

describe("concernsOf", () => {
  test("a system at rest has none", () => {
    expect(concernsOf({ ...calm, queues: [queue], workers: [worker] })).toEqual([]);
  });

  test("paused runs by cause, and those that people paused", () => {
    const counts = { ...calm.counts, total: { ...none, paused: 5 } };
    const [group] = concernsOf({ ...calm, counts, errors: { errors: [error], capped: [] } });
    expect(group).toMatchObject({ kind: "paused", title: "5 paused" });
    expect(searchIn(group?.to ?? "")).toBe("status:paused");
    expect(group?.concerns.map(({ count, title, detail }) => [count, title, detail])).toEqual([
      ["3", "order at charge", "Error: declined"],
      ["2", "paused on purpose", "By a person, or by the code of the workflow. They wait until a person resumes them."],
    ]);
    expect(searchIn(group?.concerns[0]?.to ?? "")).toBe("status:paused workflow:order fingerprint:f1");
    expect(group?.concerns[0]?.isNew).toBe(true);
  });

  test("failures count those of the last day only", () => {
    const failed = { ...error, status: "failed" as const };
    const old = { ...failed, fingerprint: "f2", lastDayCount: 0 };
    const [group] = concernsOf({ ...calm, errors: { errors: [failed, old], capped: ["failed"] } });
    expect(group?.title).toBe("2+ failed in the last 24 hours");
    expect(group?.concerns).toHaveLength(1);
    expect(searchIn(group?.concerns[0]?.to ?? "")).toBe("status:failed workflow:order fingerprint:f1 after:-24h");
  });

  test.each([
    [{ depth: 4, workers: [], oldestAgeMs: 5_000 }, "due in mail, and no worker takes them"],
    [{ depth: 4, oldestAgeMs: 61_000 }, "due in mail"],
    [{ depth: 0, paused: { at: iso(1), reason: null, by: "ada" } }, "due in mail, which is paused by ada"],
  ])("a queue is stuck: %j", (fields, title) => {
    const [group] = concernsOf({ ...calm, queues: [{ ...queue, ...fields }] });
    expect(group?.concerns[0]?.title).toBe(title);
  });

  test("a queue that is a little behind is not stuck", () => {
    expect(concernsOf({ ...calm, queues: [{ ...queue, depth: 4, oldestAgeMs: 59_000 }] })).toEqual([]);
  });

  test("a silent worker matters if it leaves a workflow that no other has", () => {
    const silent = { ...worker, id: "w2", name: "w2", live: false, heartbeatAt: iso(hour) };
    expect(concernsOf({ ...calm, workers: [worker, silent] })).toEqual([]);
    const [group] = concernsOf({ ...calm, workers: [silent, { ...silent, id: "w3", heartbeatAt: iso(2 * hour) }] });
    expect(group?.concerns.map(({ title, detail }) => [title, detail])).toEqual([
      ["w2 on h is silent", "No live worker has mail."],
    ]);
    expect(concernsOf({ ...calm, workers: [{ ...silent, heartbeatAt: iso(25 * hour) }] })).toEqual([]);
  });

  test.each([
    [{ lateMs: 61_000 }, "nightly is late by 61 s", "No live worker fires it. Start a worker of the application shop."],
    [{ lateMs: 61_000, app: null }, "nightly is late by 61 s", "No live worker fires it. Start a worker."],
    [
      { status: "paused" as const, nextAt: null, pausedAt: iso(1), pauseReason: "3 runs in a row have failed." },
      "nightly is paused",
      "3 runs in a row have failed.",
    ],
    [
      { last: { ...last, outcome: "failed_to_start" as const } },
      "nightly failed to start its run",
      "Its ledger says why.",
    ],
  ])("a schedule needs a person: %j", (fields, title, detail) => {
    const [group] = concernsOf({ ...calm, schedules: [{ ...schedule, ...fields }] });
    expect(group).toMatchObject({ kind: "schedules", concerns: [{ title, detail, to: "/schedules/nightly" }] });
  });

  test.each([
    [{ lateMs: 59_000 }],
    [
      {
        status: "paused" as const,
        nextAt: null,
        pausedAt: iso(1),
        pausedBy: "ada",
        pauseReason: "The press is broken.",
      },
    ],
    [{ status: "retired" as const, nextAt: null }],
  ])("a schedule is no concern: %j", (fields) => {
    expect(concernsOf({ ...calm, schedules: [{ ...schedule, last, ...fields }] })).toEqual([]);
  });
});
