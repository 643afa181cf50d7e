/** Lists of runs by step, error, duration and version, on every store. */
import { PermanentError, type RunsFilter, Workflow, workflow } from "pawl";
import { expect, test } from "vitest";
import { forMemoryAnd } from "../support/effort.js";
import { databaseFor } from "../support/virtual-worlds.js";

const failing = workflow("failing", { version: "2" }, async (ctx, input: { step: string; message: string }) => {
  await ctx.step(input.step, () => {
    throw new PermanentError(input.message);
  });
});

const sleeping = workflow("sleeping", async (ctx) => {
  await ctx.sleep("nap", "1 hour");
});

class Onboarding extends Workflow {
  static {
    this.step("send_welcome", async () => {
      throw new RangeError('no "quotes" allowed');
    });
    this.step("send_reminder", { wait: "2 days" }, async () => {});
  }
}

forMemoryAnd("mysql", (kind) => {
  const database = databaseFor(kind);

  test("runs are found by step, error text, duration and version", async () => {
    const w = await database.world();
    const worker = await w.worker([failing, sleeping, Onboarding]);
    const charged = await w.pawl.start(failing, { step: "charge", message: 'card "4711" was declined' });
    const refunded = await w.pawl.start(failing, { step: "refund", message: "100 % of it is gone" });
    const asleep = await w.pawl.start(sleeping);
    const paused = await w.pawl.start(Onboarding);
    await worker.settle();
    expect(await Promise.all([charged, refunded, asleep, paused].map((run) => run.status()))).toEqual([
      "failed",
      "failed",
      "waiting",
      "paused",
    ]);
    const find = async (filter: RunsFilter) => (await w.pawl.runs(filter)).runs.map(({ id }) => id).sort();

    expect(await find({ step: "charge" })).toEqual([charged.id]);
    expect(await find({ step: "send_welcome" })).toEqual([paused.id]);
    expect(await find({ step: "send" })).toEqual([]);
    expect(await find({ error: 'card "4711"' })).toEqual([charged.id]);
    expect(await find({ error: "100 % of" })).toEqual([refunded.id]);
    expect(await find({ error: 'no "quotes"' })).toEqual([paused.id]);
    expect(await find({ error: 'no "quotes"', status: "failed" })).toEqual([]);
    expect(await find({ error: "RangeError" })).toEqual([paused.id]);
    expect(await find({ version: "2" })).toEqual([charged.id, refunded.id].sort());
    expect(await find({ version: "" })).toEqual([asleep.id, paused.id].sort());
    w.clock.moveTo(w.clock.read() + 60_000);
    expect(await find({ tookAtLeast: "1 minute" })).toEqual([asleep.id, paused.id].sort());
    expect(await find({ tookAtMost: "59s" })).toEqual([charged.id, refunded.id].sort());
    expect(await find({ tookAtLeast: "1 minute", workflow: "sleeping", status: "waiting" })).toEqual([asleep.id]);
  });
});
