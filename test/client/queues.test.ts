/** Queues report what waits in them, and nothing starts in a paused queue. */
import { InvalidInputError, job, Workflow, workflow } from "pawl";
import { describe, expect, onTestFinished, test } from "vitest";
import { testDatabase } from "../support/databases.js";
import { forMemoryAnd } from "../support/effort.js";
import { logOf } from "../support/run-checks.js";
import { world } from "../support/virtual-worlds.js";
import { errorOf, gate, until } from "../support/waiting.js";

const echo = workflow("echo", async (_ctx, value: unknown) => value);
const letter = workflow("letter", { queue: "mail" }, async (_ctx, value: unknown) => value);
const napping = workflow("napping", async (ctx) => {
  await ctx.sleep("nap", "1 hour");
  return ctx.step("wake", () => "rested");
});
class Mailing extends Workflow {
  static {
    this.step("write", () => {});
    this.step("send", { queue: "mail" }, () => {});
    this.step("file", () => {});
  }
}
const all = [echo, letter, napping, Mailing];

forMemoryAnd("postgres", (kind) => {
  async function prepared() {
    const database = await testDatabase(kind);
    onTestFinished(() => database.drop());
    return world(kind, database.url);
  }

  test("queues() reports the workers, the waiting runs and the executing runs of each queue", async () => {
    const w = await prepared();
    expect(await w.pawl.queues()).toEqual([]);
    await w.pawl.createWorkflow("planned");
    const began = w.clock.read();
    const open = gate();
    const slow = workflow("slow", { queue: "mail" }, (ctx) => ctx.step("think", () => open.opened));
    await w.pawl.start(letter, 1);
    w.clock.moveTo(began + 5_000);
    await w.pawl.startMany(echo, [1, 2]);
    await w.pawl.start(echo, 3, { delay: "1 hour" });
    const { worker } = await w.worker([slow, napping], { name: "w1", lease: 3_000 });
    await w.pawl.start(slow);
    await until(() => worker.active === 1);
    await until(async () => (await w.pawl.workers())[0]?.executing === 1);
    const idle = { depth: 0, depthCapped: false, oldestAgeMs: null, executing: 0, workers: [], paused: null };
    expect(await w.pawl.queues()).toEqual([
      { ...idle, name: "echo", workflows: ["echo"], depth: 2, oldestAgeMs: 0 },
      {
        ...idle,
        name: "mail",
        workflows: ["letter", "slow"],
        depth: 1,
        oldestAgeMs: 5_000,
        executing: 1,
        workers: ["w1"],
      },
      { ...idle, name: "napping", workflows: ["napping"], workers: ["w1"] },
      { ...idle, name: "planned", workflows: ["planned"] },
    ]);
    open.open();
  });

  test("nothing starts in a paused queue, in this process or in others, until it is resumed", async () => {
    const w = await prepared();
    const { worker, settle, pawl } = await w.worker(all);
    const sleeps = await w.pawl.start(napping);
    const due = (await settle()) as number;
    await w.pawl.pauseQueue("mail", "the provider is down");
    await w.pawl.pauseQueue("napping");
    const pausedAt = w.clock.read();
    await until(() => worker.pausedQueues.length === 2);
    // The pause comes through the worker's own client, which could otherwise start the run immediately.
    const runs = [await pawl.start(letter, 1), await w.pawl.start(letter, 2)];
    const other = await pawl.start(echo, 3);
    w.clock.moveTo(due);
    await settle();
    expect(await other.result()).toBe(3);
    for (const run of runs) expect(await run.status()).toBe("pending");
    expect(await sleeps.status()).toBe("waiting");
    const mail = (await w.pawl.queues()).find(({ name }) => name === "mail");
    expect(mail).toMatchObject({ depth: 2, paused: { at: new Date(pausedAt), reason: "the provider is down" } });
    // A worker that starts later knows about the pause from the beginning.
    const late = await w.worker(all);
    expect([...late.worker.pausedQueues].sort()).toEqual(["mail", "napping"]);
    await late.settle();
    expect(await (runs[0] as typeof other).status()).toBe("pending");
    await w.pawl.resumeQueue("mail");
    await until(() => worker.pausedQueues.length === 1);
    await settle();
    expect(await Promise.all(runs.map((run) => run.result()))).toEqual([1, 2]);
    expect(await sleeps.status()).toBe("waiting");
    await w.pawl.resumeQueue("napping");
    expect(await sleeps.result({ timeout: "100s" })).toBe("rested");
    expect((await w.pawl.verify()).differences).toEqual([]);
  });

  test("a step in a paused queue waits until the queue is resumed, and then the run continues", async () => {
    const w = await prepared();
    const { worker, settle } = await w.worker(all);
    await w.worker([echo]);
    await w.pawl.pauseQueue("mail");
    await until(() => worker.pausedQueues.length === 1);
    const run = await w.pawl.start(Mailing);
    await settle();
    expect(await logOf(run)).toContain("step.completed write");
    expect(await logOf(run)).not.toContain("step.completed send");
    expect(await run.status()).toBe("waiting");
    await w.pawl.resumeQueue("mail");
    await until(() => worker.pausedQueues.length === 0);
    await settle();
    await run.result({ timeout: "100s" });
    expect((await w.pawl.verify()).differences).toEqual([]);
  });
});

describe("a paused queue", () => {
  test("lets running runs finish", async () => {
    const w = await world();
    const open = gate();
    const slow = workflow("slow", async (ctx) => {
      await ctx.step("one", () => open.opened);
      return ctx.step("two", () => 2);
    });
    const { worker, settle } = await w.worker([slow]);
    const run = await w.pawl.start(slow);
    await until(() => worker.active === 1);
    await w.pawl.pauseQueue("slow");
    await until(() => worker.pausedQueues.length === 1);
    open.open();
    await settle();
    expect(await run.result()).toBe(2);
  });

  test("lets its runs be canceled", async () => {
    const w = await world();
    await w.worker([echo]);
    await w.pawl.pauseQueue("echo");
    const run = await w.pawl.start(echo, 1);
    await run.cancel();
    expect(await run.status()).toBe("canceled");
  });

  test("must be the queue of a workflow or of a job", async () => {
    const w = await world();
    const error = await errorOf(w.pawl.pauseQueue("mial"));
    expect(error).toBeInstanceOf(InvalidInputError);
    expect(error.message).toBe('There is no queue "mial"; there are none yet.');
    const send = job("Send", async () => {});
    await w.worker(all, { jobs: [send] });
    expect((await errorOf(w.pawl.pauseQueue("mial"))).message).toBe(
      'There is no queue "mial"; there are "Mailing", "echo", "job:Send", "mail", "napping".',
    );
    await w.pawl.pauseQueue("job:Send", "with a \u0000 in it");
    expect((await w.pawl.queues()).find(({ name }) => name === "job:Send")?.paused?.reason).toBe("with a  in it");
    // Resuming a queue that does not exist is allowed and has no effect.
    await w.pawl.resumeQueue("mial");
  });

  test("that is paused again keeps the time of the first pause and takes the new reason", async () => {
    const w = await world();
    await w.pawl.createWorkflow("echo");
    await w.pawl.pauseQueue("echo", "first");
    const at = new Date(w.clock.read());
    w.clock.moveTo(w.clock.read() + 5_000);
    await w.pawl.pauseQueue("echo", "second");
    expect((await w.pawl.queues())[0]?.paused).toEqual({ at, reason: "second", by: null });
  });
});
