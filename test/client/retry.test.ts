/** A failed run never changes; retrying it starts a new run that continues from the failure. */
import { branch, graph, PermanentError, step, Workflow, workflow } from "pawl";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { testDatabase } from "../support/databases.js";
import { forMemoryAnd } from "../support/effort.js";
import { logOf } from "../support/run-checks.js";
import { world } from "../support/virtual-worlds.js";
import { errorOf } from "../support/waiting.js";

let ran: string[] = [];
let broken = true;
beforeEach(() => {
  ran = [];
  broken = true;
});
const record = <T>(name: string, value: T): T => {
  ran.push(name);
  return value;
};
const child = workflow("child", async (ctx, n: number) => ctx.step("double", () => record("double", n * 2)));
const pay = workflow("pay", async (ctx, amount: number) => {
  const order = await ctx.step("order", () => record("order", { amount }));
  await ctx.sleep("nap", "1 day");
  const who = await ctx.waitForSignal<string>("approved");
  const doubled = await ctx.run(child, amount);
  await ctx.branch("way", () => record("way", "left" as const), {
    left: () => ctx.step("left", () => record("left", 1)),
  });
  const many = await ctx.map(child, [1, 2]);
  const receipt = await ctx.step("charge", () => {
    if (broken) throw new PermanentError("declined");
    return record("charge", "paid");
  });
  return { order, who, doubled, many: [...many], receipt, at: await ctx.waitForSignal("later", { timeout: "1 hour" }) };
});

forMemoryAnd("sqlite", (kind) => {
  test("completed steps are not repeated, the failed step is, and the two runs refer to each other", async () => {
    const database = await testDatabase(kind);
    onTestFinished(() => database.drop());
    const w = await world(kind, database.url);
    const { settle } = await w.worker([pay, child]);
    const toTheEnd = async () => {
      for (let due = await settle(); due !== null; due = await settle()) w.clock.moveTo(due);
    };
    const run = await w.pawl.start(pay, 5, { hero: { type: "User", id: "1" }, idempotencyKey: "once", tags: ["t"] });
    await settle();
    await run.signal("approved", "ada");
    await run.signal("other", 1);
    await toTheEnd();
    expect(await run.status()).toBe("failed");
    const before = await run.history();
    broken = false;
    ran = [];
    const again = await run.retry();
    expect(again.id).not.toBe(run.id);
    await toTheEnd();
    expect(await again.result()).toEqual({
      order: { amount: 5 },
      who: "ada",
      doubled: 10,
      many: [2, 4],
      receipt: "paid",
      at: null,
    });
    expect(ran).toEqual(["charge"]);
    expect((await logOf(again)).slice(0, 2)).toEqual(["run.started", "run.forked"]);
    expect((await again.history())[1]?.data).toEqual({ from: run.id, root: run.id, redo: ["charge"] });
    expect(await again.get()).toMatchObject({ hero: { type: "User", id: "1" }, tags: ["t"], idempotencyKey: null });
    expect(await run.history()).toEqual(before);
    expect((await w.pawl.verify()).differences).toEqual([]);
  });
});

describe("retry()", () => {
  test("is refused for runs that have not failed", async () => {
    const w = await world();
    const { settle } = await w.worker([child]);
    const run = await w.pawl.start(child, 1);
    await settle();
    expect(await errorOf(run.retry())).toMatchObject({ code: "INVALID_STATE" });
    expect(await errorOf(w.pawl.run("0190a000-0000-7000-8000-000000000000").retry())).toMatchObject({
      code: "RUN_NOT_FOUND",
    });
  });

  test("returns the existing retry while that is open; a failed retry must itself be retried", async () => {
    const w = await world();
    const flaky = workflow("flaky", (ctx) =>
      ctx.step("try", () => {
        if (broken) throw new PermanentError("no");
        return "yes";
      }),
    );
    const { settle } = await w.worker([flaky]);
    const run = await w.pawl.start(flaky, undefined, { hero: { type: "User", id: "1" } });
    await settle();
    const second = await run.retry();
    expect((await run.retry()).id).toBe(second.id);
    await settle();
    expect(await second.status()).toBe("failed");
    expect(await errorOf(run.retry())).toMatchObject({
      code: "INVALID_STATE",
      message: `Run ${run.id} was retried as run ${second.id}, which is failed; retry that one.`,
    });
    broken = false;
    const third = await second.retry();
    await settle();
    expect(await third.result()).toBe("yes");
    expect(await errorOf(second.retry())).toMatchObject({
      code: "INVALID_STATE",
      message: `Run ${second.id} was retried as run ${third.id}, which is completed.`,
    });
    expect(new Set([run.id, second.id, third.id]).size).toBe(3);
  });

  test("repeats steps that were undone, and keeps the choices of branches", async () => {
    const book = step("book", () => record("book", "b"), { compensate: () => void record("unbook", 0) });
    const look = step("look", () => record("look", 1));
    const route = branch("route", () => record("route", "yes" as const), { yes: [look], no: [step("other", () => 2)] });
    const charge = step("charge", () => {
      if (broken) throw new PermanentError("declined");
      return record("charge", "paid");
    });
    const trip = graph("trip", [book, route, charge.after(book, look)]);
    const w = await world();
    const { settle } = await w.worker([trip]);
    const run = await w.pawl.start(trip);
    await settle();
    expect(ran).toEqual(["book", "route", "look", "unbook"]);
    ran = [];
    broken = false;
    const again = await run.retry();
    await settle();
    expect(await again.status()).toBe("completed");
    expect(ran).toEqual(["book", "charge"]);
    expect((await w.pawl.verify()).differences).toEqual([]);
  });

  test("of a class run continues at the failed step", async () => {
    class Onboarding extends Workflow {
      static {
        this.step("welcome", () => record("welcome", undefined));
        this.step("charge", { onException: "fail" }, () => {
          if (broken) throw new Error("no");
          record("charge", 0);
        });
        this.step("bye", () => record("bye", undefined));
      }
    }
    const w = await world();
    const { settle } = await w.worker([Onboarding]);
    const run = await w.pawl.start(Onboarding);
    await settle();
    expect(await run.status()).toBe("failed");
    broken = false;
    const again = await run.retry();
    await settle();
    expect(await again.status()).toBe("completed");
    expect(ran).toEqual(["welcome", "charge", "bye"]);
  });
});
