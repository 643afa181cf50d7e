import { type ExecutionInfo, graph, type HistoryEvent, PermanentError, step, workflow } from "pawl";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { testDatabase } from "../support/databases.js";
import { forMemoryAnd } from "../support/effort.js";
import { start, world } from "../support/virtual-worlds.js";
import { errorOf, gate, until } from "../support/waiting.js";

const echo = workflow("echo", async (_ctx, value: unknown) => value);
const waiting = workflow("waiting", (ctx, _n: number) => ctx.waitForSignal("go"));
const failing = workflow("failing", async () => {
  throw new PermanentError("no");
});
const all = [echo, waiting, failing];

forMemoryAnd("postgres", (kind) => {
  test("workers() reports what a worker serves, its process and, if there is one, its port", async () => {
    const database = await testDatabase(kind);
    onTestFinished(() => database.drop());
    const w = await world(kind, database.url);
    for (const port of [0, 65_536, 1.5, "80", null])
      expect(() => w.pawl.worker({ workflows: all, port: port as number })).toThrow(
        `A worker's port is a whole number from 1 to 65535, not ${port}.`,
      );
    for (const options of [{ name: "a", port: 9464 }, { name: "b" }])
      await w.pawl.worker({ workflows: all, ...options }).start();
    const found = [...(await w.pawl.workers())].sort((a, b) => (a.name < b.name ? -1 : 1));
    const common = {
      pid: process.pid,
      live: true,
      executing: 0,
      workflows: ["echo", "failing", "waiting"].map((name) => ({ name, version: "" })),
      jobs: [],
    };
    expect(found).toMatchObject([
      { name: "a", port: 9464, ...common },
      { name: "b", port: null, ...common },
    ]);
    expect(found[0]?.heartbeatAt).toBeInstanceOf(Date);
  });

  test("runs() filters by workflow, status, activity, hero, tag and time, newest first, in pages without gaps", async () => {
    const database = await testDatabase(kind);
    onTestFinished(() => database.drop());
    const w = await world(kind, database.url);
    const worker = await w.worker(all);
    const ids: string[] = [];
    for (let n = 0; n < 12; n += 1) {
      const definition = [echo, waiting, failing][n % 3] as typeof echo;
      const run = await w.pawl.start(definition, n, {
        tags: [n < 6 ? "early" : "late", "all"],
        hero: { type: "User", id: String(n) },
      });
      ids.push(run.id);
      if (n % 2 === 1) w.clock.moveTo(w.clock.read() + 1_000);
    }
    const paused = await w.pawl.start(waiting, 99);
    await worker.settle();
    await paused.pause();
    const found = async (filter: Parameters<typeof w.pawl.runs>[0]) => (await w.pawl.runs(filter)).runs;
    expect((await found({ tag: "all" })).map(({ id }) => id)).toEqual([...ids].sort((a, b) => order(ids, a, b)));
    expect(await found({ workflow: echo })).toHaveLength(4);
    expect(await found({ workflow: "failing", status: "failed" })).toHaveLength(4);
    expect(await found({ status: "completed" })).toHaveLength(4);
    expect(await found({ status: "waiting" })).toHaveLength(4);
    expect((await found({ status: "paused" })).map(({ id }) => id)).toEqual([paused.id]);
    expect(await found({ status: "running" })).toEqual([]);
    expect(await found({ active: true })).toHaveLength(5);
    expect(await found({ active: false })).toHaveLength(8);
    expect(await found({ hero: { type: "User", id: "4" } })).toMatchObject([{ id: ids[4] }]);
    expect(await found({ tag: "early", workflow: echo })).toHaveLength(2);
    expect(await found({ tag: "earl" })).toEqual([]);
    const keyed = await w.pawl.start(echo, { bucket: "k" }, { idempotencyKey: "order-42" });
    expect((await found({ idempotencyKey: "order-42" })).map(({ id }) => id)).toEqual([keyed.id]);
    expect(await found({ idempotencyKey: "order-42", workflow: "another" })).toEqual([]);
    expect(await errorOf(w.pawl.runs({ idempotencyKey: "" }))).toMatchObject({ code: "INVALID_INPUT" });
    const middle = (await w.pawl.run(ids[6] as string).get()).createdAt;
    expect(await found({ tag: "all", createdAfter: middle })).not.toHaveLength(0);
    expect(
      (await found({ tag: "all", createdAfter: middle })).length +
        (await found({ tag: "all", createdBefore: middle })).length,
    ).toBeGreaterThanOrEqual(10);
    const pages: string[] = [];
    let cursor: string | undefined;
    do {
      const page = await w.pawl.runs({ tag: "all", limit: 5, ...(cursor === undefined ? {} : { cursor }) });
      expect(page.runs.length).toBeLessThanOrEqual(5);
      pages.push(...page.runs.map(({ id }) => id));
      cursor = page.next ?? undefined;
    } while (cursor !== undefined);
    expect(new Set(pages)).toEqual(new Set(ids));
    expect(pages).toHaveLength(12);
  });

  test("get() returns everything that can be known about a run from outside", async () => {
    const database = await testDatabase(kind);
    onTestFinished(() => database.drop());
    const w = await world(kind, database.url);
    const worker = await w.worker(all);
    const begin = w.clock.now;
    const run = await w.pawl.start(
      echo,
      { bucket: "b" },
      { idempotencyKey: "k", hero: { type: "User", id: "1" }, tags: ["x", "y"], priority: 4 },
    );
    await worker.settle();
    expect(await run.get()).toEqual({
      id: run.id,
      workflow: "echo",
      version: "",
      queue: "echo",
      priority: 4,
      status: "completed",
      hero: { type: "User", id: "1" },
      input: { bucket: "b" },
      output: { bucket: "b" },
      error: null,
      tags: ["x", "y"],
      idempotencyKey: "k",
      parentId: null,
      retryOf: null,
      schedule: null,
      gathered: null,
      startedBy: null,
      startsAfter: null,
      failedStep: null,
      fingerprint: null,
      pauseError: null,
      createdAt: begin,
      startedAt: begin,
      finishedAt: begin,
      waitingFor: [],
      pauseReason: null,
      explanation: null,
      damaged: [],
      pausedAt: null,
      canceledAt: null,
      currentStep: null,
      currentExecution: null,
    });
    const failed = await w.pawl.start(failing);
    await worker.settle();
    expect(await failed.get()).toMatchObject({
      status: "failed",
      output: null,
      error: { name: "PermanentError", message: "no" },
    });
  });

  test("history() returns the log in pages", async () => {
    const database = await testDatabase(kind);
    onTestFinished(() => database.drop());
    const w = await world(kind, database.url);
    const many = workflow("many", async (ctx) => {
      for (let n = 0; n < 25; n += 1) await ctx.step("s", () => n);
    });
    const worker = await w.worker([many]);
    const run = await w.pawl.start(many);
    await worker.settle();
    const whole = await run.history();
    expect(whole.map(({ seq }) => seq)).toEqual(Array.from({ length: whole.length }, (_, n) => n + 1));
    expect(whole).toHaveLength(27);
    const pages = [];
    for (let after = 0; ; ) {
      const page = await run.history({ after, limit: 4 });
      pages.push(...page);
      if (page.length < 4) break;
      after = page.at(-1)?.seq as number;
    }
    expect(pages).toEqual(whole);
    expect(await run.history({ after: 1_000 })).toEqual([]);
  });
});

function order(ids: readonly string[], a: string, b: string): number {
  // Pairs of runs share an instant; among those the greater id is the newer run.
  const [first, second] = [Math.floor(ids.indexOf(a) / 2), Math.floor(ids.indexOf(b) / 2)];
  return first === second ? (a < b ? 1 : -1) : second - first;
}

describe("invalid queries", () => {
  test.each([
    { limit: 0 },
    { limit: 1_001 },
    { limit: Number.NaN },
    { status: "done" },
    { cursor: "x" },
    { cursor: "" },
    { createdAfter: new Date(Number.NaN) },
    { createdBefore: "today" },
  ])("runs(%o) is refused", async (filter) => {
    const t = await start(echo);
    expect(await errorOf(t.pawl.runs(filter as never))).toMatchObject({ code: "INVALID_INPUT" });
  });

  test.each([{ limit: 0 }, { limit: 1_001 }, { after: -1 }, { after: 1.5 }])("history(%o) is refused", async (page) => {
    const t = await start(echo);
    const run = await t.pawl.start(echo, 1);
    expect(await errorOf(run.history(page))).toMatchObject({ code: "INVALID_INPUT" });
  });

  test.each(["", "1", "'; drop table pawl_runs; --", "00000000-0000-0000-0000-00000000000g"])(
    "run(%o) throws a RunNotFoundError",
    async (id) => {
      const t = await start(echo);
      expect(await errorOf((async () => t.pawl.run(id).get())())).toMatchObject({ code: "RUN_NOT_FOUND" });
    },
  );
});

describe("result()", () => {
  test("throws a TimeoutError when the run takes longer; the run continues and can be awaited again", async () => {
    const t = await start(waiting);
    const run = await t.pawl.start(waiting, 1);
    expect(await errorOf(run.result({ timeout: 20 }))).toMatchObject({ code: "TIMEOUT" });
    expect(await run.status()).not.toBe("failed");
    await run.signal("go", "there");
    await t.settle();
    expect(await run.result({ timeout: "100s" })).toBe("there");
  });

  test("is woken by the end of the run, not only by its poll", async () => {
    vi.useFakeTimers({ toFake: ["setInterval"] });
    onTestFinished(() => void vi.useRealTimers());
    const t = await start(waiting);
    const run = await t.pawl.start(waiting, 1);
    const results = Promise.all([run.result(), run.result(), t.pawl.run(run.id).result()]);
    await t.settle();
    await run.signal("go", 5);
    await t.settle();
    expect(await results).toEqual([5, 5, 5]);
  });

  test("of an ended run resolves immediately, however often it is called", async () => {
    const t = await start(echo);
    const run = await t.pawl.start(echo, { a: 1 });
    await t.settle();
    expect(await run.result()).toEqual({ a: 1 });
    expect(await t.pawl.run(echo, run.id).result({ timeout: "100s" })).toEqual({ a: 1 });
  });

  test.each(["soon", -1, Number.NaN])("with a timeout of %o is refused", async (timeout) => {
    const t = await start(echo);
    const run = await t.pawl.start(echo, 1);
    expect(await errorOf(run.result({ timeout: timeout as never }))).toMatchObject({ code: "INVALID_INPUT" });
  });

  test("that is pending when Pawl is closed is rejected", async () => {
    const w = await world();
    const run = await w.pawl.start(waiting, 1);
    const error = errorOf(run.result());
    await w.pawl.close();
    expect((await error).message).toContain("closed");
  });
});

test("the start time of an execution is when its body started, also if the start was recorded late", async () => {
  const w = await world();
  const slow = workflow("slow", (ctx) =>
    ctx.step("think", () => new Promise<void>((resolve) => setTimeout(resolve, 150))),
  );
  const { settle } = await w.worker([slow]);
  const run = await w.pawl.start(slow);
  await settle();
  const completed = (await run.history()).find(({ type }) => type === "step.completed") as HistoryEvent;
  const [execution] = (await run.executions()) as [ExecutionInfo];
  const took = Number(execution.finishedAt) - Number(execution.startedAt);
  expect(took).toBe((completed.data as { ms: number }).ms);
});

forMemoryAnd("postgres", (kind) => {
  test("the start time of a run is when a worker claimed it, not when its first step was recorded", async () => {
    const database = await testDatabase(kind);
    onTestFinished(() => database.drop());
    const w = await world(kind, database.url);
    const takesTime = workflow("takes_time", (ctx) => ctx.step("think", () => w.clock.moveTo(w.clock.read() + 300)));
    const run = await w.pawl.start(takesTime);
    const { settle } = await w.worker([takesTime]);
    await settle();
    const { createdAt, startedAt, finishedAt } = await run.get();
    expect(startedAt).toEqual(createdAt);
    expect(Number(finishedAt) - Number(startedAt)).toBe(300);
    expect((await w.pawl.metrics(takesTime)).durations).toMatchObject({ p50: 300 });
    expect((await w.pawl.verify()).differences).toEqual([]);
  });
});

describe("an execution names its worker", () => {
  test("when its start was recorded, when it failed, and when its worker died", async () => {
    const w = await world();
    const [entered, leave] = [gate(), gate()];
    let fails = true;
    let dies = true;
    const wf = workflow("wf", async (ctx) => {
      await ctx.step("quick", () => 1);
      await ctx.step("recorded", () => 2, { onCrash: "pause" });
      await ctx.step("flaky", () => {
        if (fails) throw new Error("no");
      });
      await ctx.step("deadly", async () => {
        entered.open();
        if (dies) await leave.opened;
      });
    });
    const first = await w.worker([wf], { name: "worker-1" });
    const run = await w.pawl.start(wf);
    const due = await first.settle();
    fails = false;
    w.clock.moveTo(due as number);
    void first.settle();
    await entered.opened;
    await until(async () =>
      (await run.history()).some(({ type, node }) => type === "step.started" && node === "deadly"),
    );
    await first.kill();
    dies = false;
    const second = await w.worker([wf], { name: "worker-2" });
    await second.settle();
    leave.open();
    expect(await run.status()).toBe("completed");
    const found = (await run.executions()).map(({ step, attempt, outcome, worker }) => [
      step,
      attempt,
      outcome,
      worker,
    ]);
    expect(found).toEqual([
      ["quick", 1, "success", null],
      ["recorded", 1, "success", "worker-1"],
      ["flaky", 1, "reattempted_by_exception", "worker-1"],
      ["flaky", 2, "success", null],
      ["deadly", 1, "abandoned", "worker-1"],
      ["deadly", 2, "success", null],
    ]);
  });
});

test("toMermaid() of a run also draws the steps that have not started", async () => {
  const [a, b] = [step("a", () => 1), step("b", () => 2)];
  const sleepy = step("sleepy", (ctx) => ctx.sleep("rest", "1 day"));
  const drawn = graph("drawn", [a, sleepy.after(a), b.after(sleepy)]);
  const t = await start(drawn);
  const run = await t.pawl.start(drawn);
  await t.settle();
  const picture = await run.toMermaid();
  expect(picture).toContain('n1["a"]:::completed');
  expect(picture).toContain('n2["sleepy"]:::executing');
  expect(picture).toContain('n3["b"]:::pending');
  expect(picture).toContain("n2 --> n3");
  expect(picture).toContain("classDef pending stroke-dasharray");
});

test("the errors of a run, its executions and its nodes keep their messages in JSON", async () => {
  const t = await start(failing);
  const refused = workflow("refused", (ctx) =>
    ctx.step("pay", () => Promise.reject(new PermanentError("no", { cause: new Error("51") }))),
  );
  await t.deploy([refused]);
  const run = await t.pawl.start(refused);
  await t.speedrun(run);
  const asJson = (value: unknown) => JSON.parse(JSON.stringify(value));
  const error = {
    name: "PermanentError",
    message: "no",
    code: "PERMANENT_ERROR",
    cause: { name: "Error", message: "51" },
  };
  expect(asJson(await run.get()).error).toEqual(error);
  expect(asJson(await run.executions())[0].error).toEqual(error);
  expect(asJson(await run.nodes())[0].error).toEqual(error);
  expect(asJson(await run.history()).at(-1).data.error).toMatchObject({ name: "PermanentError", message: "no" });
  expect(asJson(await errorOf(run.result()))).toMatchObject({ code: "RUN_FAILED", runId: run.id, cause: error });
});
