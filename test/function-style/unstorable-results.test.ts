/** Functions that return the result of a database driver, which cannot be stored: `() => pool.query(…)`. */
import { graph, PermanentError, step, Workflow, workflow } from "pawl";
import { expect, test } from "vitest";
import { start } from "../support/virtual-worlds.js";
import { errorOf } from "../support/waiting.js";

/** Answers like pg, whose result objects contain functions. */
function fakePool() {
  const queries: string[] = [];
  const query = async (sql: string) => {
    queries.push(sql);
    return { rows: [], _types: { getTypeParser: () => null } };
  };
  return { queries, query };
}

const alreadyRunMessage =
  "The step's function has already run and its effects remain; only its return value cannot be recorded. " +
  "Return plain data from it, or nothing: async () => { await … }.";
const unstorableMessage = (of: string) =>
  `Cannot store the output of step "${of}": $._types.getTypeParser is a function (getTypeParser); pass plain data instead. ${alreadyRunMessage}`;

test("the return value of a step's compensate function is discarded, in functions and graphs", async () => {
  const db = fakePool();
  const asFunction = workflow("as-function", async (ctx) => {
    await ctx.step("charge", () => 1, { compensate: () => db.query("refund") });
    throw new PermanentError("no stock");
  });
  const charge = step("charge", () => 1, { compensate: () => db.query("refund of the graph") });
  const ship = step("ship", () => {
    throw new PermanentError("no stock");
  });
  const asGraph = graph("as-graph", [charge, ship.after(charge)]);
  const t = await start(asFunction, asGraph);
  for (const run of [await t.pawl.start(asFunction), await t.pawl.start(asGraph)]) {
    await t.speedrun(run);
    expect(await run.status()).toBe("failed");
    const compensation = (await run.history()).find(({ node }) => node === "charge#compensate");
    expect(compensation).toMatchObject({ type: "step.completed", data: { output: undefined } });
  }
  expect(db.queries).toEqual(["refund", "refund of the graph"]);
});

test("the return value of onFailure is discarded", async () => {
  const db = fakePool();
  const failing = workflow("failing", { onFailure: () => db.query("note") }, () => {
    throw new PermanentError("no stock");
  });
  const t = await start(failing);
  const run = await t.pawl.start(failing);
  await t.speedrun(run);
  const called = (await run.history()).filter(({ node }) => node === "on_failure").map(({ type }) => type);
  expect({ called, queries: db.queries }).toEqual({ called: ["step.completed"], queries: ["note"] });
});

test("a step whose output cannot be stored fails with an error that says that it has run, and how to fix it", async () => {
  const db = fakePool();
  const paying = workflow("paying", (ctx) => ctx.step("charge", () => db.query("charge")));
  const t = await start(paying);
  const run = await t.pawl.start(paying);
  await t.speedrun(run);
  expect((await errorOf(run.result())).cause.message).toBe(unstorableMessage("charge"));
  expect(db.queries).toEqual(["charge"]);
});

test("a run that is paused because an output cannot be stored names the commands that do not run the step again, and they work", async () => {
  const db = fakePool();
  class Paying extends Workflow {
    static {
      this.step("charge", () => db.query("charge"));
      this.step("ship", () => {});
    }
  }
  const t = await start(Paying);
  for (const command of ["resume", "skip"] as const) {
    const run = await t.pawl.start(Paying);
    await t.settle();
    expect((await run.get()).pauseReason).toBe(
      `Step "charge" failed: ${unstorableMessage("charge")} resume() runs the step again; resume({ output }) or skip() continues without running it again.`,
    );
    if (command === "resume") await run.resume({ output: null });
    else await run.skip();
    await t.settle();
    expect(await run.status()).toBe("completed");
  }
  expect(db.queries).toEqual(["charge", "charge"]);
});

test("the error of a transactional step does not say that its effects remain, because they are rolled back", async () => {
  const paying = workflow("paying", (ctx) => ctx.transaction("charge", async () => ({ parse: () => null })));
  const t = await start(paying);
  const run = await t.pawl.start(paying);
  await t.speedrun(run);
  expect((await errorOf(run.result())).cause.message).toBe(
    'Cannot store the output of step "charge": $.parse is a function (parse); pass plain data instead.',
  );
});
