/** Sagas: completed steps are compensated in reverse order when a run fails or is canceled. */
import { graph, PermanentError, step, type WorkflowDefinition, workflow } from "pawl";
import { beforeEach, describe, expect, test } from "vitest";
import { logOf } from "../support/run-checks.js";
import { start, world } from "../support/virtual-worlds.js";
import { errorOf, gate, until } from "../support/waiting.js";

let effects: string[] = [];
beforeEach(() => {
  effects = [];
});

/** The name of the step whose compensation fails at the moment. */
let broken: string | null = null;
function undo(name: string, output: unknown): void {
  if (broken === name) throw new Error(`${name} is down.`);
  effects.push(`undo ${name} ${output}`);
}

type End = "fails" | "cancels" | "waits" | "completes";

const book = (name: string) =>
  step(
    name,
    () => {
      effects.push(name);
      return `${name}-1`;
    },
    { retry: { attempts: 2 }, compensate: (_ctx, output) => undo(name, output) },
  );
const [flight, hotel, car] = [book("flight"), book("hotel"), book("car")];
const last = step("last", async (ctx) => {
  const end = ctx.input as End;
  if (end === "fails") throw new PermanentError("no seats");
  if (end === "cancels") ctx.cancel("changed my mind");
  if (end === "waits") await ctx.waitForSignal("never");
});
const tripGraph = graph("trip", [
  flight,
  hotel.after(flight),
  car.after(hotel),
  last.after(car),
]) as unknown as WorkflowDefinition<End, unknown>;

const tripFunction = workflow("trip", async (ctx, end: End) => {
  for (const name of ["flight", "hotel", "car"]) {
    await ctx.step(
      name,
      () => {
        effects.push(name);
        return `${name}-1`;
      },
      { retry: { attempts: 2 }, compensate: (_step, output) => undo(name, output) },
    );
  }
  if (end === "fails") throw new PermanentError("no seats");
  if (end === "cancels") ctx.cancel("changed my mind");
  if (end === "waits") await ctx.waitForSignal("never");
});

const done = ["flight", "hotel", "car"];
const compensations = ["undo car car-1", "undo hotel hotel-1", "undo flight flight-1"];

describe.each([
  ["a graph", tripGraph],
  ["a function", tripFunction],
])("%s", (_style, trip) => {
  test("that completes compensates nothing", async () => {
    const t = await start(trip);
    await t.speedrun(await t.pawl.start(trip, "completes"));
    expect(effects).toEqual(done);
  });

  test("that fails compensates its steps in reverse order, each compensation recorded as a step", async () => {
    const t = await start(trip);
    const run = await t.pawl.start(trip, "fails");
    await t.speedrun(run);
    expect(effects).toEqual([...done, ...compensations]);
    expect(await errorOf(run.result())).toMatchObject({ cause: { message: "no seats" } });
    const log = await logOf(run);
    expect(log.slice(-4)).toEqual([
      "step.completed car#compensate",
      "step.completed hotel#compensate",
      "step.completed flight#compensate",
      "run.failed",
    ]);
    expect(await t.pawl.verify()).toMatchObject({ differences: [] });
  });

  test("that cancels itself compensates its steps", async () => {
    const t = await start(trip);
    const run = await t.pawl.start(trip, "cancels");
    await t.settle();
    expect(effects).toEqual([...done, ...compensations]);
    expect(await run.get()).toMatchObject({ status: "canceled", error: { message: "changed my mind" } });
  });

  test("that is canceled while it waits compensates its steps as soon as a worker is running", async () => {
    const w = await world();
    const first = await w.worker([trip]);
    const run = await w.pawl.start(trip, "waits");
    await first.settle();
    await first.worker.stop();
    await run.cancel("too late");
    expect(effects).toEqual(done);
    expect(await run.status()).toBe("waiting");
    const second = await w.worker([trip]);
    await second.settle();
    expect(effects).toEqual([...done, ...compensations]);
    expect(await run.get()).toMatchObject({ status: "canceled", error: { message: "too late" } });
    expect(await w.pawl.verify()).toMatchObject({ differences: [] });
  });

  test.each(["fails", "cancels"] as const)(
    "that %s compensates everything once, wherever its worker dies",
    async (end) => {
      const t = await start(trip);
      let runs = 0;
      const check = () => {
        if (runs++ === 0) return;
        // The effect of a step in flight may exist twice; no compensation is missing or out of order.
        expect([...new Set(effects)]).toEqual([...done, ...compensations]);
      };
      const report = await t.crashTest(trip, end, {
        setup: () => {
          check();
          effects = [];
        },
      });
      expect(report.status).toBe(end === "fails" ? "failed" : "canceled");
      expect(report.points).toBeGreaterThan(12);
      expect([...new Set(effects)]).toEqual([...done, ...compensations]);
    },
  );

  test("whose compensation fails is paused, shows both errors, and continues to compensate when it is resumed", async () => {
    const t = await start(trip);
    broken = "hotel";
    const run = await t.pawl.start(trip, "fails");
    await t.advance("1 hour");
    const { status, pauseReason } = await run.get();
    expect(status).toBe("paused");
    expect(pauseReason).toContain('Step "hotel" could not be compensated: hotel is down.');
    expect(pauseReason).toContain("the run failed: no seats");
    expect(effects).toEqual([...done, "undo car car-1"]);
    broken = null;
    await run.resume();
    await t.advance("1 hour");
    expect(effects).toEqual([...done, ...compensations]);
    expect(await run.status()).toBe("failed");
  });

  test("whose compensation fails while it is canceled is paused, and is canceled once the compensation works again", async () => {
    const t = await start(trip);
    broken = "car";
    const run = await t.pawl.start(trip, "waits");
    await t.settle();
    await run.cancel("enough");
    await t.advance("1 hour");
    expect(await run.get()).toMatchObject({
      status: "paused",
      pauseReason: expect.stringContaining("canceled: enough"),
    });
    broken = null;
    await run.resume();
    await t.settle();
    expect(effects).toEqual([...done, ...compensations]);
    expect(await run.status()).toBe("canceled");
  });
});

test("a run that exceeds its time limit compensates its steps, and fails", async () => {
  const slow = workflow("slow", { timeout: "1 hour" }, async (ctx) => {
    await ctx.step("book", () => "b", { compensate: (_step, output) => undo("book", output) });
    await ctx.waitForSignal("never");
  });
  const t = await start(slow);
  const run = await t.pawl.start(slow);
  await t.advance("2 hours");
  expect(effects).toEqual(["undo book b"]);
  expect(await errorOf(run.result())).toMatchObject({ cause: { name: "TimeoutError" } });
  expect(await t.pawl.verify()).toMatchObject({ differences: [] });
});

test("a run that is being compensated waits only for the compensation, and no longer for the waits of its handler", async () => {
  let isDown = true;
  const booking = workflow("booking", async (ctx) => {
    await ctx.step("book", () => 1, {
      compensate: () => {
        if (isDown) throw new Error("down");
      },
    });
    await ctx.waitForSignal("never", { timeout: "9 days" });
  });
  const t = await start(booking);
  const run = await t.pawl.start(booking);
  await t.settle();
  expect((await run.get()).waitingFor).toEqual([{ kind: "signal", names: ["never"] }]);
  await run.cancel("too late");
  await t.settle();
  expect((await run.get()).waitingFor).toEqual([{ kind: "retry", step: "book#compensate", attempt: 2 }]);
  expect(await t.pawl.verify()).toMatchObject({ differences: [] });
  isDown = false;
  await t.advance("1 hour");
  expect(await run.status()).toBe("canceled");
});

test("onFailure is called last, after all compensations", async () => {
  const failing = workflow("told", { onFailure: () => void effects.push("told") }, async (ctx) => {
    await ctx.step("book", () => "b", { compensate: (_step, output) => undo("book", output) });
    throw new PermanentError("no");
  });
  const t = await start(failing);
  await t.speedrun(await t.pawl.start(failing));
  expect(effects).toEqual(["undo book b", "told"]);
});

test("a step that ends after the run was canceled is compensated as well", async () => {
  const [started, finish] = [gate(), gate()];
  const late = workflow("late", async (ctx) => {
    await ctx.step(
      "book",
      async () => {
        started.open();
        await finish.opened;
        return "b";
      },
      { compensate: (_step, output) => undo("book", output) },
    );
    await ctx.step("never", () => void effects.push("never"));
  });
  const t = await start(late);
  const run = await t.pawl.start(late);
  const settled = t.settle();
  await started.opened;
  await run.cancel();
  await until(async () => (await logOf(run)).includes("run.cancel_requested"));
  finish.open();
  await settled;
  expect(effects).toEqual(["undo book b"]);
  expect(await run.status()).toBe("canceled");
});
