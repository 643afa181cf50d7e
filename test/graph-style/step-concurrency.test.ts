/** A step with a concurrency limit: the other runs wait in a queue, whatever happens to the runs before them. */
import { graph, type RunHandle, step } from "pawl";
import { expect, test } from "vitest";
import { Semaphore } from "../../src/concurrency/semaphore.js";
import { world } from "../support/virtual-worlds.js";
import { gate, until } from "../support/waiting.js";

test("slots are granted in order, passed on when a holder releases its slot, and not lost when a waiter leaves the queue", async () => {
  const semaphore = new Semaphore(1);
  const entered: string[] = [];
  const [first, second, third, fourth] = ["first", "second", "third", "fourth"].map((name) =>
    semaphore.acquire(() => void entered.push(name)),
  ) as [() => void, () => void, () => void, () => void];
  expect(entered).toEqual(["first"]);
  second();
  first();
  first();
  // The third waiter was granted the slot, and released it before its callback ran.
  third();
  await Promise.resolve();
  await Promise.resolve();
  expect(entered).toEqual(["first", "fourth"]);
  fourth();
  semaphore.acquire(() => void entered.push("fifth"));
  expect(entered).toEqual(["first", "fourth", "fifth"]);
});

test("no more runs than the concurrency of the step execute it at a time, and all of them get their turn", async () => {
  let [running, maxRunning] = [0, 0];
  const score = step(
    "score",
    async () => {
      running += 1;
      maxRunning = Math.max(maxRunning, running);
      await new Promise((resolve) => setImmediate(resolve));
      running -= 1;
    },
    { concurrency: 3 },
  );
  const scoring = graph("scoring", [score, step("after", () => "done").after(score)]);
  const w = await world();
  const { settle } = await w.worker([scoring]);
  const runs = await w.pawl.startMany(
    scoring,
    Array.from({ length: 40 }, () => undefined),
  );
  await settle();
  expect(await Promise.all(runs.map((run) => run.result()))).toEqual(runs.map(() => "done"));
  expect(maxRunning).toBe(3);
});

test("a step that sleeps releases its slot, and its run is parked", async () => {
  const sleeping = step("rests", (ctx) => ctx.sleep("nap", "1 day"), { concurrency: 1 });
  const sleepingGraph = graph("resting", [sleeping]);
  const w = await world();
  const { settle } = await w.worker([sleepingGraph]);
  const runs = await w.pawl.startMany(sleepingGraph, [undefined, undefined, undefined]);
  const due = (await settle()) as number;
  expect(await Promise.all(runs.map((run) => run.status()))).toEqual(["waiting", "waiting", "waiting"]);
  w.clock.moveTo(due);
  await settle();
  await Promise.all(runs.map((run) => run.result()));
});

test("a run that waits for a slot can be canceled and paused, and the slot goes to the next run", async () => {
  const open = gate();
  const started: unknown[] = [];
  const slow = step(
    "slow",
    async (ctx) => {
      started.push(ctx.input);
      await open.opened;
      return ctx.input;
    },
    { concurrency: 1 },
  );
  const limited = graph("queueing", [slow]);
  const w = await world();
  const { settle, worker } = await w.worker([limited]);
  const first = await w.pawl.start(limited, "one");
  const settled = settle();
  await until(() => started.length === 1);
  const others = await w.pawl.startMany(limited, ["two", "three", "four"]);
  const [second, third] = others as [RunHandle, RunHandle, RunHandle];
  await until(() => worker.active === 4);
  await second.cancel("not any more");
  await third.pause("later");
  await until(async () => (await second.status()) === "canceled" && (await third.status()) === "paused");
  open.open();
  await settled;
  expect(started).toEqual(["one", "four"]);
  expect(await Promise.all([first, ...others].map((run) => run.status()))).toEqual([
    "completed",
    "canceled",
    "paused",
    "completed",
  ]);
});

test("a concurrency that is not a number above 0 is refused", () => {
  expect(() => step("a", () => {}, { concurrency: 0 })).toThrow(
    'concurrency of step "a" is a whole number above 0, not 0.',
  );
});
