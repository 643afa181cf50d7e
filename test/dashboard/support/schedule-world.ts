/**
 * A database with every kind of schedule. Occurrences of the past are written into the ledger with the runs that they stand
 * for, because no test can wait for fifty nights.
 */
import { randomUUID } from "node:crypto";
import { PermanentError, schedule, workflow } from "pawl";
import { onTestFinished } from "vitest";
import type { Occurrence } from "../../../src/core/schedule/schedule-data.js";
import type { ScheduleRecord } from "../../../src/store/contract/store.js";
import { type Gate, gate, until } from "../../support/waiting.js";
import { type DashboardTestOptions, type ServedDashboard, serveDashboard } from "./served-dashboard.js";

export const zone = "Europe/Berlin";
const hourMs = 3_600_000;
const dayMs = 24 * hourMs;
/** So far away that nothing fires while a test runs. */
const farAway = new Date("2099-01-01T00:00:00Z");

interface ReportInput {
  readonly fails?: boolean;
  readonly waits?: boolean;
}

export function scheduledWorkflows() {
  const slow = gate();
  const report = workflow("report", async (ctx, input: ReportInput) => {
    await ctx.step("render", async () => {
      if (input.fails === true) throw new PermanentError("The press is out of paper");
      if (input.waits === true) await slow.opened;
      return "rendered";
    });
  });
  const nightly = schedule("nightly_report", {
    workflow: report,
    input: ({ scheduledFor }) => ({ day: scheduledFor }) as ReportInput,
    cron: "30 2 * * *",
    timeZone: zone,
    catchUp: { mode: "latest", within: "6 hours" },
    jitter: "5m",
    pauseOnFailure: 5,
  });
  return { slow, report, nightly };
}

export interface ScheduleWorld extends ServedDashboard {
  readonly report: ReturnType<typeof scheduledWorkflows>["report"];
  /** Lets runs with `waits` end. */
  readonly slow: Gate;
  /** From then on, no schedule fires by itself. */
  stopWorker(): Promise<void>;
  /** The instants of the nightly report in the past, the latest first. */
  readonly nights: readonly number[];
  /** Puts a schedule that fires for no regular instant while the test runs. */
  put(name: string, input?: ReportInput): Promise<void>;
  /** Changes the row of a schedule, and adds rows to its ledger. */
  rewrite(name: string, fields: Partial<ScheduleRecord>, occurrences?: readonly Occurrence[]): Promise<void>;
  /** Resolves when so many runs of the schedule are open. */
  hasOpenRuns(name: string, count: number): Promise<void>;
}

/** A worker of the application "shop" that declares one schedule. */
export async function serveSchedules(options: DashboardTestOptions = {}): Promise<ScheduleWorld> {
  const { slow, report, nightly } = scheduledWorkflows();
  const served = await serveDashboard({
    app: "shop",
    workflows: [report],
    ...options,
    hasWorker: false,
  });
  const { pawl } = served;
  const worker = pawl.worker({
    name: "worker-1",
    lease: "1 minute",
    schedules: [nightly],
    ...options.worker,
    workflows: [report],
  });
  await worker.start();
  // The worker waits for the step when it stops.
  (options.onEnd ?? onTestFinished)(async () => slow.open());
  const { schedules } = pawl.internals.store;
  const rewrite: ScheduleWorld["rewrite"] = async (name, fields, occurrences = []) => {
    const [record] = await schedules.byName([name]);
    if (record === undefined) throw new Error(`There is no schedule ${name}.`);
    const rows = occurrences.map((one) => ({ ...one, schedule: name, incarnation: record.incarnation }));
    const { revision: expectedRevision } = record;
    const change = { name, expectedRevision, row: { ...record, ...fields }, occurrences: rows, starts: [] };
    const result = await schedules.apply({ changes: [change] });
    if (result.kind !== "applied" || !result.names.has(name)) throw new Error(`${name} was changed meanwhile.`);
  };
  const nights = nightly
    .next(70, new Date(Date.now() - 69 * dayMs))
    .map(Number)
    .filter((at) => at < Date.now())
    .reverse();
  return {
    ...served,
    ...{ report, slow, nights, rewrite },
    stopWorker: () => worker.stop(),
    put: async (name, input = {}) => {
      await pawl.schedules.put(name, { workflow: "report", input, at: [farAway] });
    },
    hasOpenRuns: (name, count) => until(async () => (await pawl.schedules.get(name)).openRuns === count),
  };
}

const rowOf = (scheduledFor: number, fields: Partial<Occurrence> = {}): Occurrence => ({
  id: randomUUID(),
  ...{ scheduledFor, scheduledUntil: scheduledFor, count: 1, pending: null, at: scheduledFor + 240 },
  outcome: "ran",
  detail: { latenessMs: 240 },
  ...fields,
});

const error = 'The input of schedule "nightly_report" cannot be computed: getaddrinfo ENOTFOUND rates.example.com';

/** The nights that were special, by how many nights ago. */
const specialNights: Readonly<Record<number, Partial<Occurrence>>> = {
  11: { outcome: "skipped_overlap", detail: {} },
  17: { outcome: "skipped_late", detail: {}, count: 3 },
  26: { outcome: "ran", detail: { latenessMs: 5_400_000, missed: 2 } },
  33: { outcome: "paused", detail: {}, count: 2 },
  40: { outcome: "failed_to_start", detail: { error } },
  47: { outcome: "ran", detail: { manual: true, by: "ada", reason: "The first one had no header." } },
};
const failedNights: ReadonlySet<number> = new Set([3, 4, 21]);

/** Writes two months of the nightly report. Returns the ids of its runs, by how many nights ago. */
export async function writeNights(world: ScheduleWorld): Promise<ReadonlyMap<number, string>> {
  const runs = new Map<number, string>();
  const rows: Occurrence[] = [];
  for (let age = 0; age < world.nights.length; age += 1) {
    const special = specialNights[age];
    const until = world.nights[age] as number;
    const count = special?.count ?? 1;
    age += count - 1;
    const row = { ...rowOf(world.nights[age] as number, special), scheduledUntil: until };
    if (row.outcome !== "ran") rows.push(row);
    else {
      const { id } = await world.pawl.start(world.report, failedNights.has(age) ? { fails: true } : {});
      runs.set(age, id);
      rows.push({ ...row, id });
    }
  }
  await Promise.all(
    [...runs.values()].map((id) =>
      world.pawl
        .run(id)
        .result()
        .catch(() => {}),
    ),
  );
  const last = { id: runs.get(0) as string, outcome: "ran", scheduledFor: world.nights[0], at: world.nights[0] };
  await world.rewrite("nightly_report", { state: JSON.stringify({ accepted: 58, failures: 0, last }) }, rows);
  return runs;
}

/** Schedules in every other state. */
export async function writeOthers(world: ScheduleWorld): Promise<void> {
  const { pawl, rewrite } = world;
  await pawl.schedules.put("customer-42", {
    workflow: "report",
    input: { customer: 42 },
    every: "1 day",
    offset: "90m",
  });
  await pawl.schedules.backfill("customer-42", {
    from: new Date(Date.now() - 3 * dayMs),
    by: "ada",
    reason: "The customer has moved.",
  });
  await until(async () => (await pawl.schedules.get("customer-42")).backfillWaiting === 0);
  await pawl.schedules.put("press_check", {
    workflow: "report",
    input: {},
    cron: "0 6 * * MON-FRI",
    timeZone: zone,
    overlap: "bufferOne",
  });
  await pawl.schedules.pause("press_check", { by: "ada", reason: "The press is being repaired.", until: "7 days" });
  await pawl.schedules.put("import_prices", {
    workflow: "report",
    input: {},
    cron: "15 4 1 * *",
    timeZone: "America/New_York",
    pauseOnFailure: 3,
  });
  const pause = { at: Date.now() - 3_600_000, until: null, by: null, reason: "3 runs in a row have failed." };
  await rewrite("import_prices", {
    status: "paused",
    nextAt: null,
    state: JSON.stringify({ accepted: 3, failures: 3, pause }),
  });
  await pawl.schedules.put("black_friday", { workflow: "report", input: {}, at: ["2025-11-28T08:00:00Z"] });
  await pawl.schedules.put("legacy_sync", { workflow: "report", input: {}, cron: "0 3 * * *" });
  await rewrite("legacy_sync", { app: "shop", setKey: "an older set", status: "retired", nextAt: null });
  await writeLate(world, "billing_close");
}

/** A schedule of an application whose workers are gone. */
export async function writeLate({ pawl, rewrite }: ScheduleWorld, name: string): Promise<void> {
  await pawl.schedules.put(name, { workflow: "report", input: {}, every: "1 hour" });
  const due = (Math.floor(Date.now() / hourMs) - 2) * hourMs;
  await rewrite(name, { app: "billing", setKey: "the set of billing", nextFor: due, nextAt: due });
}
