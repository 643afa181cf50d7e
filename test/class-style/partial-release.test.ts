/** A run that was paused at several steps, of which an operator released only one, is paused again at the others. */
import { PermanentError, Workflow } from "pawl";
import { expect, test } from "vitest";
import { expectSound } from "../support/run-checks.js";
import { start } from "../support/virtual-worlds.js";

const boom = () => {
  throw new PermanentError("boom");
};

/** Two tasks that pause the run, and a third one with a scheduled attempt. */
function taskClass(dependsOn: string[], added: readonly string[] = []) {
  return class extends Workflow {
    static {
      this.options({ name: "Partly", onException: "pause" });
      this.task("left", { onException: { on: PermanentError, action: "pause" } }, boom);
      this.task("right", { onException: { on: PermanentError, action: "pause" } }, boom);
      this.task("late", { dependsOn, onException: { action: "reattempt", wait: "1 day" } }, () => {
        throw new Error("not yet");
      });
      for (const name of added) this.task(name, () => name);
    }
  };
}

async function releaseOneAfterDeploy(deployed: ReturnType<typeof taskClass>) {
  const before = taskClass([]);
  const t = await start(before);
  const run = await t.pawl.start(before);
  await t.settle();
  expect(await run.status()).toBe("paused");
  await t.deploy([deployed]);
  await run.resume({ output: "by hand" });
  await t.settle();
  await expectSound(t);
  const pausedExecutions = (await run.executions()).filter(({ outcome }) => outcome === "paused_by_exception");
  expect(pausedExecutions.map(({ step }) => step).sort()).toEqual(["left", "right"]);
  return run.get();
}

test("a run of which one paused step was released is paused again at the other, even if its code has changed meanwhile", async () => {
  expect(await releaseOneAfterDeploy(taskClass([], ["more"]))).toMatchObject({ status: "waiting" });
  expect(await releaseOneAfterDeploy(taskClass(["left", "right"]))).toMatchObject({
    status: "paused",
    pauseReason: expect.stringMatching(/^Step "(left|right)" failed: boom$/),
  });
});
