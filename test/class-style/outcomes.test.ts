/** How an execution can end, and what that means for its run: every row of the table, every outcome by its name. */
import { type ExecutionInfo, PauseError, PermanentError, TransientError, Workflow, type WorkflowClass } from "pawl";
import { describe, expect, test } from "vitest";
import { working } from "../support/class-workflows.js";
import { forEachStore } from "../support/databases.js";
import { forMemoryAnd } from "../support/effort.js";
import { type AnyRun, attemptsOf, expectSound, recorded } from "../support/run-checks.js";
import { databaseFor, start, world } from "../support/virtual-worlds.js";
import { gate, until } from "../support/waiting.js";

const boom = () => {
  throw new Error("boom");
};

/** The second item ends the execution; the successor is due an hour later. */
class Jumping extends Workflow {
  static {
    this.options({ name: "Working" });
    this.resumableStep("work", async (w, iter) => {
      if (w.attempt === 1) iter.skipTo(7, { wait: "1h" });
    });
    this.step("after", () => {});
  }
}

class HeroOfNobody extends Workflow<object> {
  static loadHero = () => null;
  static {
    this.options({ name: "Working" });
    this.step("work", () => {});
    this.step("after", () => {});
  }
}

class Conditioned extends Workflow {
  static {
    this.options({ name: "Working" });
    this.cancelIf(() => true);
    this.step("work", () => {});
    this.step("after", () => {});
  }
}

interface Row {
  readonly trigger: string;
  readonly workflow: WorkflowClass;
  readonly execution: `${ExecutionInfo["state"]} ${string}`;
  readonly runStatus: "waiting" | "continues" | "paused" | "canceled" | "failed" | "completed";
}

/** The ways in which an execution ends itself. Each needs only a start. */
const rows: readonly Row[] = [
  { trigger: "returned", workflow: working(() => "done"), execution: "completed success", runStatus: "continues" },
  {
    trigger: "finish()",
    workflow: working((w) => w.finish()),
    execution: "completed success",
    runStatus: "completed",
  },
  {
    trigger: "reattempt()",
    workflow: working((w) => w.reattempt({ wait: "1h" })),
    execution: "completed reattempted",
    runStatus: "waiting",
  },
  {
    trigger: "policy reattempt",
    workflow: working(boom, { onException: "reattempt" }),
    execution: "failed reattempted_by_exception",
    runStatus: "waiting",
  },
  {
    trigger: "TransientError",
    workflow: working(() => {
      throw new TransientError("later", { retryAfter: "1h" });
    }),
    execution: "failed reattempted_by_exception",
    runStatus: "waiting",
  },
  {
    trigger: "suspend()",
    workflow: working((w) => w.suspend({ wait: "1h" })),
    execution: "completed continued",
    runStatus: "waiting",
  },
  { trigger: "skipTo()", workflow: Jumping, execution: "completed continued", runStatus: "waiting" },
  {
    trigger: "skipIf",
    workflow: working(boom, { skipIf: true }),
    execution: "skipped skipped_by_condition",
    runStatus: "continues",
  },
  {
    trigger: "if that is false",
    workflow: working(boom, { if: () => false }),
    execution: "skipped skipped_by_condition",
    runStatus: "continues",
  },
  {
    trigger: "skip()",
    workflow: working((w) => w.skip()),
    execution: "skipped skipped_by_flow_control",
    runStatus: "continues",
  },
  {
    trigger: "policy skip",
    workflow: working(boom, { onException: "skip" }),
    execution: "failed skipped_by_exception",
    runStatus: "continues",
  },
  {
    trigger: "pause() inside",
    workflow: working((w) => w.pause("look")),
    execution: "canceled workflow_paused",
    runStatus: "paused",
  },
  { trigger: "policy pause", workflow: working(boom), execution: "failed paused_by_exception", runStatus: "paused" },
  {
    trigger: "PauseError",
    workflow: working(() => {
      throw new PauseError("ask");
    }),
    execution: "canceled workflow_paused",
    runStatus: "paused",
  },
  {
    trigger: "cancel()",
    workflow: working((w) => w.cancel("enough")),
    execution: "canceled canceled_by_flow_control",
    runStatus: "canceled",
  },
  { trigger: "cancelIf", workflow: Conditioned, execution: "canceled canceled_by_condition", runStatus: "canceled" },
  {
    trigger: "the hero does not exist",
    workflow: HeroOfNobody,
    execution: "canceled canceled_by_condition",
    runStatus: "canceled",
  },
  {
    trigger: "policy cancel",
    workflow: working(boom, { onException: "cancel" }),
    execution: "failed canceled_by_exception",
    runStatus: "canceled",
  },
  {
    trigger: "policy fail",
    workflow: working(boom, { onException: "fail" }),
    execution: "failed failed_by_exception",
    runStatus: "failed",
  },
  {
    trigger: "permanent error",
    workflow: working(() => {
      throw new PermanentError("never");
    }),
    execution: "failed failed_by_exception",
    runStatus: "failed",
  },
  {
    trigger: "over its time limit",
    workflow: working(() => new Promise(() => {}), { timeout: 5 }),
    execution: "failed timed_out",
    runStatus: "paused",
  },
  {
    trigger: "over its time limit, policy reattempt",
    workflow: working(() => new Promise(() => {}), { timeout: 5, onException: "reattempt" }),
    execution: "failed timed_out",
    runStatus: "waiting",
  },
  {
    trigger: "over its time limit, policy skip",
    workflow: working(() => new Promise(() => {}), { timeout: 5, onException: "skip" }),
    execution: "failed timed_out",
    runStatus: "continues",
  },
  {
    trigger: "over its time limit, policy cancel",
    workflow: working(() => new Promise(() => {}), { timeout: 5, onException: "cancel" }),
    execution: "failed timed_out",
    runStatus: "canceled",
  },
  {
    trigger: "over its time limit, policy fail",
    workflow: working(() => new Promise(() => {}), { timeout: 5, onException: "fail" }),
    execution: "failed timed_out",
    runStatus: "failed",
  },
];

/** Compares the executions and the status of a run once nothing is due any more. */
async function expectRow(run: AnyRun, { execution, runStatus }: Row): Promise<void> {
  const [first, second, ...more] = await attemptsOf(run);
  const status = await run.status();
  expect(first).toBe(`work 1 ${execution}`);
  expect(more).toEqual([]);
  if (runStatus === "continues") expect([second, status]).toEqual(["after 1 completed success", "completed"]);
  else expect([second, status]).toEqual([runStatus === "waiting" ? "work 2 scheduled –" : undefined, runStatus]);
}

const hero = { type: "User", id: "42" };

describe("what happened → execution → run", () => {
  test.each(rows)("$trigger → $execution → the run $runStatus", async (row) => {
    const t = await start(row.workflow);
    const run = await t.pawl.start(row.workflow, undefined, { hero });
    await t.settle();
    await expectRow(run, row);
    await expectSound(t);
  });
});

forEachStore(
  (kind) => {
    const database = databaseFor(kind);

    test("all of these outcomes are stored by the database", async () => {
      const w = await database.world();
      // A run finds its class by name, so each row has its own worker and they run in turn.
      for (const row of rows) {
        const worker = await w.worker([row.workflow]);
        const run = await w.pawl.start(row.workflow, undefined, { hero, allowMultiple: true });
        await worker.settle();
        await worker.worker.stop();
        await expectRow(run, row);
      }
      await expectSound(w);
    });
  },
  ["sqlite", "postgres", "mysql"],
);

describe("interrupted", () => {
  test("by the worker's shutdown: completed, continued; the run waits with a successor", async () => {
    const started = gate();
    const finish = gate();
    const done: number[] = [];
    class Looping extends Workflow {
      static {
        this.resumableStep("work", async (_w, iter) => {
          await iter.over([1, 2, 3], async (n) => {
            done.push(n);
            started.open();
            await finish.opened;
          });
        });
      }
    }
    const w = await world();
    const first = await w.worker([Looping], { grace: "10s" });
    const run = await w.pawl.start(Looping);
    await started.opened;
    const stopped = first.worker.stop();
    finish.open();
    await stopped;
    expect(await attemptsOf(run)).toEqual(["work 1 completed continued", "work 2 scheduled –"]);
    expect(await run.status()).toBe("waiting");
    await (await w.worker([Looping])).settle();
    expect(await attemptsOf(run)).toEqual(["work 1 completed continued", "work 2 completed success"]);
    expect(done).toEqual([1, 2, 3]);
    await expectSound(w);
  });

  test("by maxIterations: completed, continued, again and again until the step is done", async () => {
    class Looping extends Workflow {
      static {
        this.resumableStep("work", { maxIterations: 2 }, (_w, iter) => iter.over([1, 2, 3, 4, 5], () => {}));
      }
    }
    const t = await start(Looping);
    const run = await t.pawl.start(Looping);
    await t.settle();
    expect(await attemptsOf(run)).toEqual([
      "work 1 completed continued",
      "work 2 completed continued",
      "work 3 completed success",
    ]);
    const [first, second, third] = await run.executions();
    expect([first?.successor, second?.continuesFrom]).toEqual([second?.id, first?.id]);
    expect([second?.successor, third?.continuesFrom]).toEqual([third?.id, second?.id]);
  });
});

describe("paused from outside", () => {
  test("while scheduled: the execution stays scheduled and does not run; the run is paused", async () => {
    let executed = 0;
    const Later = working(() => void (executed += 1), { wait: "1 day" });
    const t = await start(Later);
    const run = await t.pawl.start(Later);
    await t.settle();
    const scheduled = await run.executions();
    expect(scheduled).toMatchObject([{ state: "scheduled", outcome: null }]);
    await run.pause();
    expect(await run.executions()).toEqual(scheduled);
    await t.advance("3 days");
    expect(executed).toBe(0);
    expect(await run.executions()).toEqual(scheduled);
    expect(await run.status()).toBe("paused");
    // The execution is overdue by two days, so it runs as soon as it may.
    await run.resume();
    await t.settle();
    expect(executed).toBe(1);
    expect(await attemptsOf(run)).toEqual(["work 1 completed success", "after 1 completed success"]);
  });

  test("while scheduled and resumed in time: the execution keeps its original time", async () => {
    const at: number[] = [];
    const Later = working(() => void at.push(t.clock.read()), { wait: "1 day" });
    const t = await start(Later);
    const begin = t.clock.read();
    const run = await t.pawl.start(Later);
    await t.settle();
    await run.pause();
    await t.advance("2h");
    await run.resume();
    await t.speedrun(run);
    expect(at).toEqual([begin + 86_400_000]);
  });

  test("while scheduled for another attempt: the attempt does not run, and keeps its time", async () => {
    const at: number[] = [];
    const Flaky = working((w) => {
      at.push(t.clock.read());
      if (w.attempt === 1) w.reattempt({ wait: "1 day" });
    });
    const t = await start(Flaky);
    const begin = t.clock.read();
    const run = await t.pawl.start(Flaky);
    await t.settle();
    await run.pause();
    await t.advance("2h");
    expect(await attemptsOf(run)).toEqual(["work 1 completed reattempted", "work 2 scheduled –"]);
    await run.resume();
    await t.speedrun(run);
    expect(at).toEqual([begin, begin + 86_400_000]);
  });

  test.each([
    { how: "returns", body: () => "done", end: "work 1 completed success", next: ["after 1 scheduled –"] },
    { how: "throws", body: boom, end: "work 1 failed paused_by_exception", next: [] },
    {
      how: "skips",
      body: (w: Workflow) => w.skip(),
      end: "work 1 skipped skipped_by_flow_control",
      next: ["after 1 scheduled –"],
    },
    { how: "pauses", body: (w: Workflow) => w.pause(), end: "work 1 canceled workflow_paused", next: [] },
  ])(
    "while executing: its own end is recorded ($how: $end), nothing new starts; the run is paused",
    async ({ body, end, next }) => {
      const started = gate();
      const finish = gate();
      const Busy = working(async (w) => {
        started.open();
        await finish.opened;
        return body(w);
      });
      const t = await start(Busy);
      const run = await t.pawl.start(Busy);
      void t.settle();
      await started.opened;
      await run.pause("a moment");
      await recorded(run, "run.paused");
      finish.open();
      await t.settle();
      expect(await attemptsOf(run)).toEqual([end, ...next]);
      expect(await run.status()).toBe("paused");
      await expectSound(t);
    },
  );

  test("while executing a resumable step: it is interrupted at its checkpoint, and continues from its cursor", async () => {
    const started = gate();
    const finish = gate();
    const done: number[] = [];
    class Looping extends Workflow {
      static {
        this.resumableStep("work", async (_w, iter) => {
          await iter.over([1, 2, 3], async (n) => {
            done.push(n);
            started.open();
            await finish.opened;
          });
        });
      }
    }
    const t = await start(Looping);
    const run = await t.pawl.start(Looping);
    void t.settle();
    await started.opened;
    await run.pause();
    await recorded(run, "run.paused");
    finish.open();
    await t.settle();
    expect(await run.status()).toBe("paused");
    expect(await attemptsOf(run)).toEqual(["work 1 completed continued", "work 2 scheduled –"]);
    expect(done).toEqual([1]);
    await run.resume();
    await t.settle();
    expect(await attemptsOf(run)).toEqual(["work 1 completed continued", "work 2 completed success"]);
    expect(done).toEqual([1, 2, 3]);
  });
});

describe("canceled from outside", () => {
  test("while scheduled: canceled, canceled_by_flow_control; the run is canceled", async () => {
    const Later = working(boom, { wait: "1 day" });
    const t = await start(Later);
    const run = await t.pawl.start(Later);
    await t.settle();
    await run.cancel();
    expect(await attemptsOf(run)).toEqual(["work 1 canceled canceled_by_flow_control"]);
    expect(await run.status()).toBe("canceled");
  });

  test("while executing: its own end is recorded, then the run is canceled", async () => {
    const started = gate();
    const finish = gate();
    const Busy = working(async () => {
      started.open();
      await finish.opened;
    });
    const t = await start(Busy);
    const run = await t.pawl.start(Busy);
    void t.settle();
    await started.opened;
    await run.cancel("not needed");
    await recorded(run, "run.cancel_requested");
    finish.open();
    await t.settle();
    expect(await attemptsOf(run)).toEqual(["work 1 completed success"]);
    expect(await run.get()).toMatchObject({ status: "canceled", canceledAt: t.clock.now });
    await expectSound(t);
  });

  test("while executing a resumable step: canceled_by_flow_control at its next checkpoint", async () => {
    const started = gate();
    const finish = gate();
    class Looping extends Workflow {
      static {
        this.resumableStep("work", async (_w, iter) => {
          await iter.over([1, 2, 3], async () => {
            started.open();
            await finish.opened;
          });
        });
      }
    }
    const t = await start(Looping);
    const run = await t.pawl.start(Looping);
    void t.settle();
    await started.opened;
    await run.cancel();
    await recorded(run, "run.cancel_requested");
    finish.open();
    await t.settle();
    expect(await attemptsOf(run)).toEqual(["work 1 canceled canceled_by_flow_control"]);
    expect(await run.status()).toBe("canceled");
  });
});

describe("its worker died", () => {
  forMemoryAnd("mysql", (kind) => {
    const database = databaseFor(kind);

    test("failed, abandoned; the run continues with a successor", async () => {
      const finish = gate();
      let bodies = 0;
      const Dying = working(async () => {
        bodies += 1;
        if (bodies === 1) await finish.opened;
      });
      const w = await database.world();
      const first = await w.worker([Dying]);
      const run = await w.pawl.start(Dying);
      await until(async () => (await attemptsOf(run)).includes("work 1 executing –"));
      await first.kill();
      await (await w.worker([Dying])).settle();
      expect(await attemptsOf(run)).toEqual([
        "work 1 failed abandoned",
        "work 2 completed success",
        "after 1 completed success",
      ]);
      const [abandoned, successor] = await run.executions();
      expect([abandoned?.successor, successor?.continuesFrom]).toEqual([successor?.id, abandoned?.id]);
      expect(await run.status()).toBe("completed");
      expect(bodies).toBe(2);
      finish.open();
      await expectSound(w);
    });
  });

  test("with onCrash pause: abandoned, and the run is paused until an operator decides", async () => {
    const started = gate();
    let bodies = 0;
    const Dying = working(
      async () => {
        bodies += 1;
        started.open();
        if (bodies === 1) await new Promise(() => {});
      },
      { onCrash: "pause" },
    );
    const w = await world();
    const first = await w.worker([Dying]);
    const run = await w.pawl.start(Dying);
    await started.opened;
    await first.kill();
    const second = await w.worker([Dying]);
    await second.settle();
    expect(await attemptsOf(run)).toEqual(["work 1 failed abandoned"]);
    expect(await run.status()).toBe("paused");
    await run.resume();
    await second.settle();
    expect(await attemptsOf(run)).toEqual([
      "work 1 failed abandoned",
      "work 2 completed success",
      "after 1 completed success",
    ]);
  });
});

describe("a terminal run", () => {
  test.each([
    { status: "completed", workflow: working(() => {}) },
    { status: "failed", workflow: working(boom, { onException: "fail" }) },
    { status: "canceled", workflow: working((w) => w.cancel()) },
  ])("that is $status never changes, however much time passes", async ({ status, workflow }) => {
    const t = await start(workflow);
    const run = await t.pawl.start(workflow);
    await t.settle();
    const before = { info: await run.get(), history: await run.history() };
    expect(before.info).toMatchObject({ status, finishedAt: t.clock.now, currentStep: null, currentExecution: null });
    await t.advance("40 days");
    expect({ info: await run.get(), history: await run.history() }).toEqual(before);
  });
});
