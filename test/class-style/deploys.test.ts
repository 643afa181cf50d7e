/** New code meets runs of old code: what happens to a run whose steps were added, moved, renamed or removed. */
import { InvalidStateError, Workflow, type WorkflowClass } from "pawl";
import { beforeEach, describe, expect, test } from "vitest";
import { logOf } from "../support/run-checks.js";
import { type World, world } from "../support/virtual-worlds.js";
import { errorOf } from "../support/waiting.js";

let executed: string[] = [];
beforeEach(() => {
  executed = [];
});

/** A class called "Letter" with these steps, in this order. A step written as "name@" waits for an hour first. */
function letterWith(
  steps: readonly string[],
  removed: readonly string[] = [],
  aliases: Record<string, string[]> = {},
): WorkflowClass<Workflow> {
  return class Letter extends Workflow {
    static {
      this.options({ name: "Letter", aliases });
      this.removedSteps(removed);
      for (const step of steps) {
        const name = step.replace("@", "");
        this.step(name, step.endsWith("@") ? { wait: "1 hour" } : {}, () => void executed.push(name));
      }
    }
  };
}

/** Runs the old code until the run waits, lets the wait pass, and continues with the new code. */
async function runThroughDeploy(w: World, from: WorkflowClass<Workflow>, to: WorkflowClass<Workflow>) {
  const old = await w.worker([from]);
  const run = await w.pawl.start(from);
  w.clock.moveTo((await old.settle()) as number);
  await old.worker.stop();
  const { settle, worker } = await w.worker([to]);
  await settle();
  return { run, settle, worker };
}

describe("a run that waits for a step", () => {
  test("continues at that step, wherever it is now: steps inserted before it are not run, steps inserted after it are run", async () => {
    const { run } = await runThroughDeploy(
      await world(),
      letterWith(["open", "wait@", "close"]),
      letterWith(["first", "open", "between", "wait@", "after", "close"]),
    );
    expect(await run.status()).toBe("completed");
    expect(executed).toEqual(["open", "wait", "after", "close"]);
  });

  test("that is no longer in the code is paused, and the reason says what can be done", async () => {
    const w = await world();
    const { run } = await runThroughDeploy(w, letterWith(["open", "wait@", "close"]), letterWith(["open", "close"]));
    const { status, pauseReason, pausedAt, currentStep } = await run.get();
    expect({ status, currentStep }).toEqual({ status: "paused", currentStep: "wait" });
    expect(pauseReason).toContain('has no step "wait"');
    expect(pauseReason).toContain("removedSteps");
    expect(pausedAt).toEqual(new Date(w.clock.read()));
    const paused = (await run.history()).find(({ type }) => type === "run.paused");
    expect(paused?.data.error).toMatchObject({ name: "StepNotDefinedError", code: "STEP_NOT_DEFINED" });
    expect(await w.pawl.verify()).toMatchObject({ differences: [] });
  });

  test("that was renamed is paused, the reason suggests aliases and resume({ renamed }), and both work", async () => {
    for (const way of ["aliases", "renamed"] as const) {
      executed = [];
      const w = await world();
      const { run, settle, worker } = await runThroughDeploy(
        w,
        letterWith(["open", "wait@"]),
        letterWith(["open", "hold@"]),
      );
      expect((await run.get()).pauseReason).toBe(
        'Workflow "Letter" has no step "wait" (any more). If it has another name now, add this.options({ aliases: { newName: ["wait"] } }) and resume(), ' +
          'or resume({ renamed: { "wait": "newName" } }). Otherwise bring the step back and resume(), continue elsewhere with resumeAt(step), or list it in removedSteps.',
      );
      if (way === "renamed") {
        await run.resume({ renamed: { wait: "hold" } });
        await settle();
      } else {
        await worker.stop();
        const fixed = await w.worker([letterWith(["open", "hold@"], [], { hold: ["wait"] })]);
        await run.resume();
        await fixed.settle();
      }
      expect(await run.status()).toBe("completed");
      expect(executed).toEqual(["open", "hold"]);
    }
  });

  test("that its class lists in removedSteps skips that step", async () => {
    const { run } = await runThroughDeploy(
      await world(),
      letterWith(["open", "wait@", "close"]),
      letterWith(["open", "close"], ["wait"]),
    );
    expect(await run.status()).toBe("completed");
    expect(executed).toEqual(["open", "close"]);
    expect(await run.executions()).toMatchObject([
      { step: "open", outcome: "success" },
      { step: "wait", state: "skipped", outcome: "skipped_by_flow_control", startedAt: null },
      { step: "close", outcome: "success" },
    ]);
  });

  test("continues after the last completed step that the new code still has", async () => {
    const { run } = await runThroughDeploy(
      await world(),
      letterWith(["open", "sign", "wait@", "close"]),
      letterWith(["open", "stamp", "close"], ["sign", "wait"]),
    );
    expect(await run.status()).toBe("completed");
    expect(executed).toEqual(["open", "sign", "stamp", "close"]);
  });

  test("that is restored by a second deploy can be resumed", async () => {
    const w = await world();
    const { run, worker } = await runThroughDeploy(
      w,
      letterWith(["open", "wait@", "close"]),
      letterWith(["open", "close"]),
    );
    await worker.stop();
    const fixed = await w.worker([letterWith(["open", "wait@", "close"])]);
    await run.resume();
    await fixed.settle();
    expect(await run.status()).toBe("completed");
    expect(executed).toEqual(["open", "wait", "close"]);
  });
});

describe("resumeAt", () => {
  test("moves a paused run to another step at once, and the chain continues from there", async () => {
    const w = await world();
    const { run, settle } = await runThroughDeploy(
      w,
      letterWith(["open", "wait@", "close"]),
      letterWith(["open", "other@", "close"]),
    );
    await run.resumeAt("other");
    await settle();
    expect(await run.status()).toBe("completed");
    expect(executed).toEqual(["open", "other", "close"]);
    expect(await logOf(run)).toEqual([
      "run.started",
      "step.completed open",
      "step.scheduled wait",
      "shape.changed",
      "run.paused",
      "run.moved",
      "run.resumed",
      "step.completed other",
      "step.completed close",
      "run.completed",
    ]);
    expect(await run.executions()).toMatchObject([
      { step: "open", outcome: "success" },
      { step: "wait", state: "canceled", outcome: "canceled_by_flow_control" },
      { step: "other", outcome: "success" },
      { step: "close", outcome: "success" },
    ]);
    expect(await w.pawl.verify()).toMatchObject({ differences: [] });
  });

  test("to a completed step runs it again as another attempt, and the steps after it", async () => {
    const w = await world();
    const { settle } = await w.worker([letterWith(["a", "b", "c@"])]);
    const run = await w.pawl.start(letterWith(["a", "b", "c@"]));
    await settle();
    await run.pause();
    await run.resumeAt("a");
    const due = await settle();
    expect(executed).toEqual(["a", "b", "a", "b"]);
    w.clock.moveTo(due as number);
    await settle();
    expect(executed).toEqual(["a", "b", "a", "b", "c"]);
    const attempts = (await run.executions()).map(({ step, attempt, outcome }) => `${step} ${attempt} ${outcome}`);
    expect(attempts).toEqual([
      "a 1 success",
      "b 1 success",
      "c 1 canceled_by_flow_control",
      "a 2 success",
      "b 2 success",
      "c 2 success",
    ]);
  });

  test("to a step that does not exist pauses the run again", async () => {
    const w = await world();
    const { run, settle } = await runThroughDeploy(w, letterWith(["open", "wait@"]), letterWith(["open"]));
    await run.resumeAt("nowhere");
    await settle();
    expect(await run.get()).toMatchObject({ status: "paused", pauseReason: expect.stringContaining('"nowhere"') });
    await run.resumeAt("open");
    await settle();
    expect(await run.status()).toBe("completed");
  });

  test("of a run that is not paused is refused, and nothing changes", async () => {
    const w = await world();
    const { settle } = await w.worker([letterWith(["a", "b@"])]);
    const run = await w.pawl.start(letterWith(["a", "b@"]));
    await settle();
    const before = await run.history();
    expect(await errorOf(run.resumeAt("a"))).toBeInstanceOf(InvalidStateError);
    expect(await run.history()).toEqual(before);
    w.clock.moveTo(w.clock.read() + 3_600_000);
    await settle();
    expect(await errorOf(run.resumeAt("a"))).toBeInstanceOf(InvalidStateError);
  });
});
