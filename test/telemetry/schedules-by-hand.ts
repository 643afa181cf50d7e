/** Small scenarios with schedules, and the figures for them, counted by hand. */
import { type Pawl, schedule, workflow } from "pawl";
import { testPawl } from "pawl/testing";
import { onTestFinished } from "vitest";
import { silent, world } from "../support/virtual-worlds.js";

const quick = workflow("quick", async (_ctx, _input: unknown) => {});
const waiting = workflow("waiting", async (ctx, _input: unknown) => {
  await ctx.waitForSignal("go");
});

/** By schedule and outcome, after three hours and after six. */
export const expectedOccurrences = [
  { "hourly ran": 3, "stuck ran": 1, "stuck skipped_overlap": 2 },
  { "hourly ran": 6, "stuck ran": 1, "stuck skipped_overlap": 5 },
];

/** @param listen called before anything fires */
export async function scheduleScenario<Exporter extends { stop(): Promise<void> }>(
  listen: (pawl: Pawl) => Exporter,
  look: (exporter: Exporter) => Promise<unknown>,
) {
  const schedules = [
    schedule("hourly", { workflow: quick, every: "1h" }),
    schedule("stuck", { workflow: waiting, every: "1h" }),
  ];
  const options = { workflows: [quick, waiting], schedules, startAt: new Date("2026-11-01T12:30:00Z"), logger: silent };
  const t = await testPawl(options);
  const exporter = listen(t.pawl);
  onTestFinished(() => exporter.stop());
  for (let times = 0; times < 2; times += 1) {
    await t.advance("3 hours");
    await look(exporter);
  }
  return t;
}

/** 25 schedules that no worker fires: each is a minute less late than the one before. */
export async function lateScenario() {
  const w = await world();
  await w.pawl.createWorkflow("quick");
  const now = w.clock.read();
  const lags: (readonly [string, number])[] = [];
  for (let n = 0; n < 25; n += 1) {
    const name = `late_${String(n).padStart(2, "0")}`;
    await w.pawl.schedules.put(name, { workflow: "quick", at: [new Date(now + (n + 1) * 60_000)] });
    lags.push([name, 60 * (59 - n)]);
  }
  await w.pawl.schedules.put("later", { workflow: "quick", at: [new Date(now + 90 * 60_000)] });
  await w.pawl.schedules.put("paused", { workflow: "quick", at: [new Date(now + 60_000)] });
  await w.pawl.schedules.pause("paused");
  w.clock.moveTo(now + 60 * 60_000);
  return { pawl: w.pawl, lags };
}
