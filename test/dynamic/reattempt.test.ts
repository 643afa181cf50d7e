/** Retrying a node: when it is allowed, when it is refused, and that a refusal changes nothing. */
import { InvalidInputError, InvalidStateError, job, PermanentError } from "pawl";
import { expect, test } from "vitest";
import type { StoreKind } from "../support/databases.js";
import { forMemoryAnd } from "../support/effort.js";
import { errorOf, gate, until } from "../support/waiting.js";
import { type AnyRun, eventsOf, idOf, jobWorld, nodesOf } from "./job-world.js";

/** The graph A → B and A → C, where C fails for as long as the test says so. */
async function buildHalfDone(kind: StoreKind) {
  const behavior = { fails: true };
  const fine = job("Fine", (_args: void, { node }) => node.name);
  const fragile = job("Fragile", (_args: void, { attempt }) => {
    if (behavior.fails) throw new PermanentError(`broken ${attempt}`);
  });
  const w = await jobWorld(kind, fine, fragile);
  const run = await w.pawl.build("half", (g) => {
    const a = g.node("A", { job: fine });
    g.node("B", { job: fine, dependsOn: a });
    g.node("C", { job: fragile, dependsOn: a });
    g.node("D", { job: fine });
  });
  await w.runToEnd();
  return { w, run, behavior };
}

/** Returns the error of a refused command, and checks that neither the log nor the tables have changed. */
async function refusalOf(run: AnyRun, command: () => Promise<void>): Promise<Error> {
  const before = [await run.history(), await run.get()];
  const error = await errorOf(command());
  expect([await run.history(), await run.get()]).toEqual(before);
  return error;
}

forMemoryAnd("mysql", (kind) => {
  test("a node is not retried once a node after it has completed", async () => {
    const { w, run } = await buildHalfDone(kind);
    const error = await refusalOf(run, () => run.reattempt("A"));
    expect(error).toBeInstanceOf(InvalidStateError);
    expect(error.message).toContain("has completed");
    const other = await refusalOf(run, () => run.reattempt("B"));
    expect(other).toBeInstanceOf(InvalidStateError);
    expect(await nodesOf(run)).toEqual(["A completed 1", "B completed 1", "C failed 1", "D pending 0"]);
    expect((await w.pawl.verify()).differences).toEqual([]);
  });

  test("a failed node is retried by its name or its id, as often as it fails, and each attempt stays recorded", async () => {
    const { w, run, behavior } = await buildHalfDone(kind);
    await run.reattempt(await idOf(run, "C"));
    await w.runToEnd();
    expect(await nodesOf(run)).toContain("C failed 2");
    expect(await run.status()).toBe("paused");
    behavior.fails = false;
    await run.reattempt("C");
    await w.runToEnd();
    await run.result({ timeout: "100s" });
    const c = await idOf(run, "C");
    const attempts = (await run.executions()).filter(({ node }) => node === c);
    expect(attempts.map(({ attempt, state, error }) => [attempt, state, error?.message])).toEqual([
      [1, "failed", "broken 1"],
      [2, "failed", "broken 2"],
      [3, "completed", undefined],
    ]);
    expect((await w.pawl.verify()).differences).toEqual([]);
  });
});

test("a node that was never tried, or that does not exist, cannot be retried", async () => {
  const { run } = await buildHalfDone("memory");
  expect(await refusalOf(run, () => run.reattempt("D"))).toBeInstanceOf(InvalidStateError);
  expect(await refusalOf(run, () => run.reattempt("E"))).toBeInstanceOf(InvalidInputError);
  expect(await refusalOf(run, () => run.reattempt("n_00000000"))).toBeInstanceOf(InvalidInputError);
  expect(await refusalOf(run, () => run.reattempt("__proto__"))).toBeInstanceOf(InvalidInputError);
  expect(await refusalOf(run, () => run.reattempt(""))).toBeInstanceOf(InvalidInputError);
  expect(await refusalOf(run, () => run.reattempt(5 as never))).toBeInstanceOf(InvalidInputError);
});

test("reattempt of a node that is being executed is refused", async () => {
  const [started, proceed] = [gate(), gate()];
  const slow = job("Slow", async () => {
    started.open();
    await proceed.opened;
  });
  const w = await jobWorld("memory", slow);
  const run = await w.pawl.build("slow", (g) => g.node("only", { job: slow }));
  const settled = w.worker1.settle();
  await started.opened;
  const error = await errorOf(run.reattempt("only"));
  expect(error).toBeInstanceOf(InvalidStateError);
  expect(error.message).toContain("is being executed");
  proceed.open();
  await settled;
  expect(await run.status()).toBe("completed");
  expect(await eventsOf(run)).not.toContain("node.reopened only 1");
});

test("a node that waits for its next attempt is retried at once, and the retries of its job start again", async () => {
  let attempts = 0;
  const patient = job(
    "Patient",
    (_args: void, { attempt }) => {
      attempts = attempt;
      if (attempt < 5) throw new Error("not yet");
    },
    { retry: { attempts: 3, initial: "1 day", factor: 1, jitter: false } },
  );
  const w = await jobWorld("memory", patient);
  const run = await w.pawl.build("patient", (g) => g.node("only", { job: patient }));
  await w.worker1.settle();
  expect(attempts).toBe(1);
  const before = w.clock.read();
  await run.reattempt("only");
  await w.worker1.settle();
  expect([attempts, w.clock.read()]).toEqual([2, before]);
  await w.runToEnd();
  expect(await run.status()).toBe("paused");
  expect(attempts).toBe(4);
  await run.reattempt("only");
  await w.runToEnd();
  expect(await run.status()).toBe("completed");
  expect((await w.pawl.verify()).differences).toEqual([]);
});

/**
 * Whether the run is owned when the command arrives depends on timing; with this many repetitions, both cases occur.
 */
test.each([...Array<number>(20).fill(5), 600])(
  "in a graph of %i nodes that are still running, the node is retried at once, and the run is not paused for it",
  async (count) => {
    const [started, proceed] = [gate(), gate()];
    const behavior = { fails: true };
    const slow = job("Slow", async () => {
      started.open();
      await proceed.opened;
    });
    const fine = job("Fine", () => {});
    const fragile = job("Fragile", () => {
      if (behavior.fails) throw new PermanentError("broken");
    });
    const w = await jobWorld("memory");
    const jobs = await w.jobWorker(slow, fine, fragile);
    const run = await w.pawl.build(
      "beside",
      (g) => {
        g.node("slow", { job: slow, dependsOn: null });
        g.fanOut(Array(count).keys(), { name: (n) => `n${n}`, job: fine, dependsOn: null });
        const bad = g.node("bad", { job: fragile, dependsOn: null });
        g.node("after_bad", { job: fine, dependsOn: bad });
      },
      { onNodeFailure: "continue" },
    );
    const settled = [w.worker1.settle(), jobs.settle()];
    await started.opened;
    await until(async () => (await nodesOf(run)).includes("bad failed 1"));
    behavior.fails = false;
    await run.reattempt("bad");
    await until(async () => (await nodesOf(run)).includes("after_bad completed 1"));
    proceed.open();
    await Promise.all(settled);
    await w.settleAll();
    expect(await run.status()).toBe("completed");
    expect(await nodesOf(run)).toContain("bad completed 2");
    expect(await eventsOf(run)).not.toContain("run.paused bad");
    expect((await w.pawl.verify()).differences).toEqual([]);
  },
);

test("reattempt of a completed run is refused", async () => {
  const { w, run, behavior } = await buildHalfDone("memory");
  behavior.fails = false;
  await run.resume();
  await w.runToEnd();
  expect(await refusalOf(run, () => run.reattempt("C"))).toBeInstanceOf(InvalidStateError);
});

test("two simultaneous reattempts result in one attempt", async () => {
  const { w, run, behavior } = await buildHalfDone("memory");
  behavior.fails = false;
  const both = await Promise.allSettled([run.reattempt("C"), run.reattempt("C")]);
  expect(both.some(({ status }) => status === "fulfilled")).toBe(true);
  await w.runToEnd();
  expect(await nodesOf(run)).toEqual(["A completed 1", "B completed 1", "C completed 2", "D completed 1"]);
  expect((await w.pawl.verify()).differences).toEqual([]);
});
