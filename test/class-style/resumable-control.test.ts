/**
 * Flow control, policies and conditions in a resumable step: what happens to the run, and where the cursor is
 * afterwards.
 */
import { type ResumableStepOptions, type StepIterator, Workflow, type WorkflowClass } from "pawl";
import { beforeEach, describe, expect, test } from "vitest";
import { forMemoryAnd } from "../support/effort.js";
import { attemptsOf, expectSound } from "../support/run-checks.js";
import { databaseFor, start } from "../support/virtual-worlds.js";
import { gate } from "../support/waiting.js";

let done: unknown[] = [];
beforeEach(() => {
  done = [];
});

type Body = (w: Workflow, iter: StepIterator) => unknown;

let classes = 0;

/**
 * A class with a resumable step "loop" whose body the test provides, and a step "after". Each class has its own name,
 * because the tests share a database, and a run that one test leaves waiting may become due during the next.
 */
function loopClass(body: Body, options: ResumableStepOptions<Workflow> = {}): WorkflowClass<Workflow> {
  classes += 1;
  const name = `Looping_${classes}`;
  return class Looping extends Workflow {
    static {
      this.options({ name });
      this.resumableStep("loop", options, body);
      this.step("after", () => void done.push("after"));
    }
  };
}

/** Loops over 0, 1, 2, 3 and calls `act` at the third item of the first execution. */
const actAtItemTwo =
  (act: (w: Workflow) => unknown): Body =>
  (w, iter) =>
    iter.over([0, 1, 2, 3], (n) => {
      if (n === 2 && !iter.resumed) act(w);
      done.push(n);
    });

const boom = () => {
  throw new Error("boom");
};

forMemoryAnd("sqlite", (kind) => {
  const database = databaseFor(kind);

  async function settled(type: WorkflowClass<Workflow>) {
    const w = await database.world();
    const worker = await w.worker([type]);
    const run = await w.pawl.start(type);
    await worker.settle();
    return { w, worker, run };
  }

  test("skip() inside the loop ends the whole step, and the next step runs", async () => {
    const { w, run } = await settled(loopClass(actAtItemTwo((workflow) => workflow.skip())));
    expect(done).toEqual([0, 1, "after"]);
    expect(await attemptsOf(run)).toEqual(["loop 1 skipped skipped_by_flow_control", "after 1 completed success"]);
    await expectSound(w);
  });

  test("pause() inside the loop pauses the run; when it is resumed, the step continues at its cursor", async () => {
    const { w, worker, run } = await settled(loopClass(actAtItemTwo((workflow) => workflow.pause("look"))));
    expect(await run.get()).toMatchObject({ status: "paused", pauseReason: "look", currentStep: "loop" });
    await run.resume();
    await worker.settle();
    expect(done).toEqual([0, 1, 2, 3, "after"]);
    expect(await attemptsOf(run)).toEqual([
      "loop 1 canceled workflow_paused",
      "loop 2 completed success",
      "after 1 completed success",
    ]);
    await expectSound(w);
  });

  test("cancel() and finish() inside the loop end the run at that item", async () => {
    const canceled = await settled(loopClass(actAtItemTwo((workflow) => workflow.cancel("enough"))));
    expect(await canceled.run.get()).toMatchObject({ status: "canceled", error: { message: "enough" } });
    expect(await attemptsOf(canceled.run)).toEqual(["loop 1 canceled canceled_by_flow_control"]);
    await canceled.worker.worker.stop();
    const finished = await settled(loopClass(actAtItemTwo((workflow) => workflow.finish())));
    expect(await finished.run.status()).toBe("completed");
    expect(await attemptsOf(finished.run)).toEqual(["loop 1 completed success"]);
    expect(done).toEqual([0, 1, 0, 1]);
  });

  test("an exception with onException pause, reattempt, skip, cancel and fail has the same effect as in a plain step", async () => {
    const ends = {
      pause: ["paused", "loop 1 failed paused_by_exception"],
      reattempt: ["waiting", "loop 1 failed reattempted_by_exception", "loop 2 scheduled –"],
      skip: ["completed", "loop 1 failed skipped_by_exception", "after 1 completed success"],
      cancel: ["canceled", "loop 1 failed canceled_by_exception"],
      fail: ["failed", "loop 1 failed failed_by_exception"],
    } as const;
    for (const onException of Object.keys(ends) as (keyof typeof ends)[]) {
      const { w, worker, run } = await settled(loopClass(actAtItemTwo(boom), { onException }));
      expect([await run.status(), ...(await attemptsOf(run))]).toEqual(ends[onException]);
      await worker.worker.stop();
      await expectSound(w);
    }
  });

  test("after an exception the next execution continues at the cursor of the item that failed", async () => {
    const paused = await settled(loopClass(actAtItemTwo(boom)));
    expect(done).toEqual([0, 1]);
    await paused.run.resume();
    await paused.worker.settle();
    expect(done).toEqual([0, 1, 2, 3, "after"]);
  });

  test("set() has stored the cursor by the time it returns: a worker that dies at that moment loses nothing", async () => {
    const dead = gate();
    const w = await database.world();
    const Looping = loopClass(async (_workflow, iter) => {
      done.push(iter.cursor);
      if (iter.resumed) return;
      await iter.set({ page: "CiAKGjBpNDd2" });
      first.freeze();
      dead.open();
      await new Promise(() => {});
    });
    const first = await w.worker([Looping]);
    const run = await w.pawl.start(Looping);
    await dead.opened;
    await first.kill();
    await (await w.worker([Looping])).settle();
    expect(await run.status()).toBe("completed");
    expect(done).toEqual([null, { page: "CiAKGjBpNDd2" }, "after"]);
    await expectSound(w);
  });
});

describe("conditions of a resumable step", () => {
  test("skipIf is evaluated again before each continuation; once it is true, the remaining items are skipped", async () => {
    const Looping = loopClass((_w, iter) => iter.over([0, 1, 2, 3], (n) => void done.push(n)), {
      maxIterations: 2,
      skipIf: () => done.length >= 2,
    });
    const t = await start(Looping);
    const run = await t.pawl.start(Looping);
    await t.speedrun(run);
    expect(done).toEqual([0, 1, "after"]);
    expect(await attemptsOf(run)).toEqual([
      "loop 1 completed continued",
      "loop 2 skipped skipped_by_condition",
      "after 1 completed success",
    ]);
  });

  test("cancelIf is evaluated again before each continuation", async () => {
    class Stopping extends Workflow {
      static {
        this.cancelIf(() => done.length >= 2);
        this.resumableStep("loop", { maxIterations: 2 }, (_w, iter) =>
          iter.over([0, 1, 2, 3], (n) => void done.push(n)),
        );
      }
    }
    const t = await start(Stopping);
    const run = await t.pawl.start(Stopping);
    await t.speedrun(run);
    expect(done).toEqual([0, 1]);
    expect(await run.status()).toBe("canceled");
  });

  test("wait applies before the first execution, not before each continuation", async () => {
    const at: number[] = [];
    const Looping: WorkflowClass<Workflow> = loopClass(
      (_w, iter) => {
        at.push(t.clock.read() - begin);
        return iter.over([0, 1, 2], () => {});
      },
      { wait: "2 days", maxIterations: 1 },
    );
    const t = await start(Looping);
    const begin = t.clock.read();
    await t.speedrun(await t.pawl.start(Looping));
    expect(new Set(at)).toEqual(new Set([2 * 86_400_000]));
    expect(at.length).toBeGreaterThan(1);
  });
});

describe("records", () => {
  test("continue after the cursor although the record that it names was deleted meanwhile", async () => {
    const table = new Map([1, 2, 3, 4, 5].map((id) => [id, { id }]));
    const fetch = (after: number | null, limit: number) =>
      [...table.values()].filter(({ id }) => id > (after ?? 0)).slice(0, limit);
    const Looping = loopClass(
      (_w, iter) =>
        iter.records({ fetch, key: "id" }, ({ id }) => {
          done.push(id);
          if (id === 2) table.delete(id);
        }),
      { maxIterations: 2 },
    );
    const t = await start(Looping);
    const run = await t.pawl.start(Looping);
    await t.speedrun(run);
    expect(table.has(2)).toBe(false);
    expect(done).toEqual([1, 2, 3, 4, 5, "after"]);
    expect((await attemptsOf(run))[0]).toBe("loop 1 completed continued");
  });

  test("may have any key that can be stored and ordered, such as a time", async () => {
    const table = [3, 1, 2].map((day) => ({ createdAt: new Date(Date.UTC(2026, 0, day)) }));
    const fetch = (after: Date | null, limit: number) =>
      table
        .filter(({ createdAt }) => after === null || createdAt > after)
        .sort((a, b) => a.createdAt.getTime() - b.createdAt.getTime())
        .slice(0, limit);
    const Looping = loopClass(
      (_w, iter) =>
        iter.records({ fetch, key: "createdAt" }, ({ createdAt }) => void done.push(createdAt.toISOString())),
      { maxIterations: 1 },
    );
    const t = await start(Looping);
    await t.speedrun(await t.pawl.start(Looping));
    expect(done).toEqual(["2026-01-01T00:00:00.000Z", "2026-01-02T00:00:00.000Z", "2026-01-03T00:00:00.000Z", "after"]);
  });
});
