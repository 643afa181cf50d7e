/** The job of a class's step is one run until that run itself has failed, however often the class's worker dies. */
import { job, Workflow, workflow } from "pawl";
import { testPawl } from "pawl/testing";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { testDatabase } from "../support/databases.js";
import { forMemoryAnd } from "../support/effort.js";
import { attemptsOf, expectSound, logOf } from "../support/run-checks.js";
import { databaseFor, keepWorking, silent } from "../support/virtual-worlds.js";
import { gate, until } from "../support/waiting.js";

let charges: string[] = [];
beforeEach(() => {
  charges = [];
});

const jobRuns = async (w: { pawl: { runs(filter: object): Promise<{ runs: readonly { status: string }[] }> } }) =>
  (await w.pawl.runs({ workflow: "job:Charge" })).runs.map(({ status }) => status).toSorted();

forMemoryAnd("postgres", (kind) => {
  const database = databaseFor(kind);

  test("a job that has completed on another worker is not run again when the worker of its class dies", async () => {
    const w = await database.world();
    const charge = job("Charge", (_args: void, { idempotencyKey }) => void charges.push(idempotencyKey));
    const ends: (() => void)[] = [];
    class Pays extends Workflow {
      static {
        this.step("pay", { job: charge });
      }
      override async afterStepExecution() {
        await new Promise<void>((resolve) => void ends.push(resolve));
      }
    }
    const first = await w.worker([Pays]);
    const jobWorker = await w.worker([], { jobs: [charge] });
    const run = await w.pawl.start(Pays);
    keepWorking(first, jobWorker);
    await until(() => ends.length === 1);
    expect(await logOf(run)).toContain("child.completed pay/job_1");
    await first.kill();
    const second = await w.worker([Pays]);
    const settled = second.settle();
    await until(() => ends.length === 2);
    ends[1]?.();
    await settled;
    await jobWorker.settle();
    expect(await run.status()).toBe("completed");
    expect(charges).toEqual([`${run.id}:pay`]);
    expect(await attemptsOf(run)).toEqual(["pay 1 failed abandoned", "pay 2 completed success"]);
    await expectSound(w);
  });

  test("a job in flight on another worker is awaited, not started again, when the worker of its class dies", async () => {
    const w = await database.world();
    const started = gate();
    const paid = gate();
    const charge = job("Charge", async (_args: void, { idempotencyKey }) => {
      charges.push(idempotencyKey);
      started.open();
      await paid.opened;
      return "paid";
    });
    const sides: (() => void)[] = [];
    class PaysLong extends Workflow {
      static {
        this.task("pay", { job: charge });
        this.task("side", () => new Promise<void>((resolve) => void sides.push(resolve)));
      }
    }
    const first = await w.worker([PaysLong]);
    const jobWorker = await w.worker([], { jobs: [charge] });
    const run = await w.pawl.start(PaysLong);
    void first.settle();
    await until(() => sides.length === 1);
    await until(async () => (await logOf(run)).some((line) => line.startsWith("child.started")));
    const jobWork = jobWorker.settle();
    await started.opened;
    await first.kill();
    const second = await w.worker([PaysLong]);
    const settled = second.settle();
    await until(() => sides.length === 2);
    sides[1]?.();
    await settled;
    paid.open();
    await jobWork;
    await until(async () => {
      await jobWorker.settle();
      await second.settle();
      return (await run.status()) === "completed";
    });
    expect(charges).toEqual([`${run.id}:pay`]);
    expect((await run.nodes()).find(({ name }) => name === "pay")).toMatchObject({ state: "completed" });
    await expectSound(w);
  });

  test("the job of a step is run once wherever the worker of the class dies", async () => {
    const done: Record<string, number> = {};
    const record = (action: string) => {
      done[action] = (done[action] ?? 0) + 1;
    };
    const charge = job("Charge", (_args: void, { run }) => {
      record(run.id);
      return "paid";
    });
    class Chained extends Workflow {
      static {
        this.step("a", () => {});
        this.step("c", { job: charge });
        this.step("d", () => {});
      }
    }
    const t = await testPawl({ workflows: [Chained], jobs: [charge], logger: silent, store: database.url() });
    onTestFinished(() => t.close());
    const runsOfJobs = async () => (await t.pawl.runs({ workflow: "job:Charge", limit: 1_000 })).runs.length;
    let classRuns = 0;
    const before = await runsOfJobs();
    await t.crashTest(Chained, undefined, { setup: () => void (classRuns += 1) });
    // The same process executes class and job, so the job's body may be repeated, but its run must not be.
    if (kind !== "memory") expect((await runsOfJobs()) - before).toBe(classRuns);
    expect(Object.keys(done)).toHaveLength(classRuns);
  });
});

describe("the run of a step's job", () => {
  test("is replaced by a new run after it has failed, and only then", async () => {
    let broken = true;
    let hookFails = false;
    const charge = job("Charge", () => {
      charges.push("charge");
      if (broken) throw new Error("declined");
      return "paid";
    });
    class Hooked extends Workflow {
      static {
        this.options({ onException: "pause" });
        this.step("pay", { job: charge });
      }
      override async afterStepExecution({ error }: { error?: unknown }) {
        if (hookFails && error === undefined) throw new Error("the hook is broken");
      }
    }
    const t = await testPawl({ workflows: [Hooked], jobs: [charge], logger: silent });
    onTestFinished(() => t.close());
    const run = await t.pawl.start(Hooked);
    await t.settle();
    expect(await run.status()).toBe("paused");
    broken = false;
    hookFails = true;
    await run.resume();
    await t.settle();
    expect(await run.get()).toMatchObject({ status: "paused", pauseReason: expect.stringContaining("the hook") });
    expect(await jobRuns(t)).toEqual(["completed", "failed"]);
    hookFails = false;
    await run.resume();
    await t.settle();
    expect(await run.status()).toBe("completed");
    expect(charges).toHaveLength(2);
    expect(await attemptsOf(run)).toEqual([
      "pay 1 failed paused_by_exception",
      "pay 2 failed paused_by_exception",
      "pay 3 completed success",
    ]);
    expect((await run.history()).find(({ type }) => type === "step.completed")?.data.output).toBe("paid");
    await expectSound(t);
  });

  test("that exceeded the time limit of the step is canceled, and the next attempt has a new run", async () => {
    const attempts: number[] = [];
    const charge = job("Charge", async (_args: void, { ctx, attempt }) => {
      attempts.push(attempt);
      if (attempt === 1) await ctx.sleep("long", "1 day");
    });
    class Impatient extends Workflow {
      static {
        this.step("pay", { job: charge, timeout: "1 minute", onException: "reattempt" });
      }
    }
    const t = await testPawl({ workflows: [Impatient], jobs: [charge], logger: silent });
    onTestFinished(() => t.close());
    const run = await t.pawl.start(Impatient);
    await t.advance("10 minutes");
    expect(await run.status()).toBe("completed");
    expect(attempts).toEqual([1, 2]);
    expect(await jobRuns(t)).toEqual(["canceled", "completed"]);
    expect(await attemptsOf(run)).toEqual(["pay 1 failed timed_out", "pay 2 completed success"]);
    await expectSound(t);
  });

  test("is the same for all continuations, unless the step is rewound", async () => {
    let again: "reattempt" | "rewind" | null = "reattempt";
    const charge = job("Charge", () => void charges.push("charge"));
    class Rewound extends Workflow {
      static {
        this.step("pay", { job: charge });
      }
      override async aroundStepExecution(_about: unknown, next: () => Promise<void>) {
        await next();
        const how = again;
        again = how === "reattempt" ? "rewind" : null;
        if (how !== null) this.reattempt({ rewind: how === "rewind" });
      }
    }
    const t = await testPawl({ workflows: [Rewound], jobs: [charge], logger: silent });
    onTestFinished(() => t.close());
    const run = await t.pawl.start(Rewound);
    await t.speedrun(run);
    expect(await attemptsOf(run)).toEqual([
      "pay 1 completed reattempted",
      "pay 2 completed reattempted",
      "pay 3 completed success",
    ]);
    expect(charges).toHaveLength(2);
    await expectSound(t);
  });
});

/** A child is identified by its call and not by the attempt, so that the next attempt finds it. */
test("children that the body of a step runs, starts and maps are created once wherever the worker dies", async () => {
  const child = workflow("counted-child", async (ctx, n: number) => {
    await ctx.step("count", () => {});
    return n;
  });
  class Parent extends Workflow<unknown, void, number[]> {
    static {
      this.task("body", async (w) => {
        const started = await w.start(child, 1, { name: "started" });
        const one = await w.run(child, 2, { name: "one" });
        const many = await w.map(child, [3, 4], { name: "many" });
        w.finish([await started.result(), one, ...many]);
      });
      this.task("beside", () => {});
    }
  }
  const database = await testDatabase("sqlite");
  onTestFinished(() => database.drop());
  const t = await testPawl({ workflows: [Parent, child], logger: silent, store: database.url });
  onTestFinished(() => t.close());
  let parents = 0;
  const { output } = await t.crashTest(Parent, undefined, { setup: () => void (parents += 1) });
  expect(output).toEqual([1, 2, 3, 4]);
  expect((await t.pawl.runs({ workflow: "counted-child", limit: 1_000 })).runs).toHaveLength(4 * parents);
});
