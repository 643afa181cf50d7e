/** No run stays open without an execution, whatever happens in its code, its schemas and its timeout. */
import { type FailureInfo, graph, step, Workflow, workflow } from "pawl";
import { expect, test } from "vitest";
import { refusing } from "../support/standard-schemas.js";
import { start } from "../support/virtual-worlds.js";
import { errorOf } from "../support/waiting.js";
import { collectFatalErrors } from "./unhandled.js";

/** Throws in the first calls, as many as `times` says, and then returns. */
function fails(times: number): () => void {
  let calls = 0;
  return () => {
    calls += 1;
    if (calls <= times) throw new Error(`call ${calls}`);
  };
}

test("a run that times out ends although its onFailure has to be retried", async () => {
  const fatal = collectFatalErrors();
  const slow = workflow("slow", { timeout: "1 hour", onFailure: fails(2) }, (ctx) => ctx.sleep("long", "2 days"));
  const t = await start(slow);
  const run = await t.pawl.start(slow);
  await t.speedrun(run, { maxExecutions: 50 });
  expect(await run.status()).toBe("failed");
  expect((await run.history()).filter(({ node }) => node === "on_failure").map(({ type }) => type)).toEqual([
    "step.failed",
    "step.failed",
    "step.completed",
  ]);
  expect(fatal).toEqual([]);
});

test("a run that times out ends although its compensation has to be retried", async () => {
  const fatal = collectFatalErrors();
  const unbook = fails(2);
  const slow = workflow("slow", { timeout: "1 hour", onFailure: fails(1) }, async (ctx) => {
    await ctx.step("book", () => 1, { compensate: unbook });
    await ctx.sleep("long", "2 days");
  });
  const t = await start(slow);
  const run = await t.pawl.start(slow);
  await t.speedrun(run, { maxExecutions: 50 });
  expect(await run.status()).toBe("failed");
  expect(fatal).toEqual([]);
});

test("a run that timed out can be canceled while its onFailure is retried", async () => {
  const slow = workflow("slow", { timeout: "1 hour", onFailure: fails(3), retry: { initial: "1 day" } }, (ctx) =>
    ctx.sleep("long", "2 days"),
  );
  const t = await start(slow);
  const run = await t.pawl.start(slow);
  await t.advance("2 hours");
  await run.cancel();
  await t.settle();
  expect(await run.status()).toBe("canceled");
});

const told: unknown[] = [];
const onFailure = ({ input, error }: FailureInfo) => void told.push([input, error.name]);

const refused = {
  function: workflow("refused", { input: refusing, onFailure }, () => "ran"),
  class: class Refused extends Workflow<unknown, object> {
    static {
      this.options({ name: "refused", input: refusing, onFailure });
      this.step("s", () => {});
    }
  },
  graph: graph("refused", [step("s", () => "ran")], { input: refusing, onFailure }),
};

test.each(Object.entries(refused))(
  "a run of a %s that was started by name with an input that its schema refuses fails, and its onFailure is called",
  async (_style, definition) => {
    told.length = 0;
    const t = await start(definition);
    const run = await t.pawl.workflow("refused").trigger({ n: 9 });
    await t.settle();
    expect(await run.status()).toBe("failed");
    expect((await errorOf(run.result({ timeout: "100s" }))).cause).toMatchObject({ name: "InvalidInputError" });
    expect(told).toEqual([[{ n: 9 }, "InvalidInputError"]]);
  },
);

test("onFailure of a run that timed out while it was parked receives the input", async () => {
  told.length = 0;
  const slow = workflow("slow", { timeout: "1 hour", onFailure }, (ctx, _input: object) => ctx.sleep("long", "2 days"));
  const t = await start(slow);
  const run = await t.pawl.start(slow, { n: 9 });
  await t.speedrun(run);
  expect(told).toEqual([[{ n: 9 }, "TimeoutError"]]);
});
