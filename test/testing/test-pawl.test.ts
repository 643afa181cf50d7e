/** Which database a test uses, and the errors for a database that does not fit. */
import { type AnyWorkflow, discoverWorkflows, graph, job, signal, step, Workflow, workflow } from "pawl";
import { testPawl } from "pawl/testing";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { emptyDatabase, isLeftOut, type TestDatabase, testDatabase } from "../support/databases.js";
import { forMemoryAnd } from "../support/effort.js";

test("a value in workflows that is not a workflow is named in the error; discoverWorkflows selects the workflows of a module", async () => {
  const [quick, resize] = [workflow("quick", async () => "done"), job("Resize", () => "small")];
  const exported = { quick, resize, shipped: signal("shipped") };
  const all = Object.values(exported) as unknown as AnyWorkflow[];
  await expect(testPawl({ workflows: all })).rejects.toThrow(
    'workflows[2] is not a workflow but the signal "shipped". ',
  );
  const t = await testPawl({ workflows: discoverWorkflows(exported) });
  onTestFinished(() => t.close());
  const [run, graph] = [await t.pawl.start(quick), await t.pawl.build("sizes", (g) => g.node("a", { job: resize }))];
  await t.speedrun(run);
  await t.speedrun(graph);
  expect([await run.status(), await graph.status()]).toEqual(["completed", "completed"]);
});

forMemoryAnd("sqlite", (kind) => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await testDatabase(kind);
  });
  afterAll(() => database.drop());

  async function openTestPawl(...workflows: AnyWorkflow[]) {
    const t = await testPawl({ workflows, store: database.url });
    onTestFinished(() => t.close());
    return t;
  }

  test("nothing is executed before the test says so, whatever is started, signaled or resumed meanwhile", async () => {
    let executed = 0;
    const waits = workflow("waits", async (ctx) => {
      await ctx.step("before", () => void (executed += 1));
      await ctx.waitForSignal("go");
      await ctx.step("after", () => void (executed += 1));
    });
    const t = await openTestPawl(waits);
    const run = await t.pawl.start(waits);
    await severalTicks();
    expect([await run.status(), executed]).toEqual(["pending", 0]);
    await t.settle();
    expect([await run.status(), executed]).toEqual(["waiting", 1]);
    await run.pause();
    await run.signal("go");
    await run.resume();
    await severalTicks();
    expect(executed).toBe(1);
    await t.settle();
    expect([await run.status(), executed]).toEqual(["completed", 2]);
  });

  test("speedrunCurrentStep runs one step at a time, however long the test waits in between, and returns null at the end", async () => {
    class Chain extends Workflow {
      static {
        this.options({ name: "Chain" });
        this.step("first", () => {});
        this.step("second", { wait: "2 days" }, () => {});
        this.step("third", () => {});
      }
    }
    const t = await openTestPawl(Chain);
    const run = await t.pawl.start(Chain);
    await severalTicks();
    for (const expected of ["first", "second", "third"]) {
      expect((await t.speedrunCurrentStep(run))?.step).toBe(expected);
      await severalTicks();
      const ended = (await run.executions()).filter(({ state }) => state === "completed");
      expect(ended.at(-1)?.step).toBe(expected);
    }
    expect(await t.speedrunCurrentStep(run)).toBeNull();
    expect(await run.status()).toBe("completed");
    expect(await t.speedrunCurrentStep(run)).toBeNull();
  });

  test("speedrunCurrentStep runs one step of functions and graphs, too", async () => {
    const two = workflow("two", async (ctx) => {
      await ctx.step("one", () => {});
      await ctx.step("two", () => {});
    });
    const [a, b] = [step("a", () => {}), step("b", () => {})];
    const line = graph("line", [a, b.after(a)]);
    const t = await openTestPawl(two, line);
    const run = await t.pawl.start(two);
    expect((await t.speedrunCurrentStep(run))?.step).toBe("one");
    expect((await run.executions()).map(({ step }) => step)).toEqual(["one"]);
    await t.speedrun(run);
    const other = await t.pawl.start(line);
    expect((await t.speedrunCurrentStep(other))?.step).toBe("a");
    expect((await other.executions()).filter(({ finishedAt }) => finishedAt !== null)).toHaveLength(1);
    await t.speedrun(other);
    expect([await run.status(), await other.status()]).toEqual(["completed", "completed"]);
  });
});

/** Waits for several ticks, so that any unexpected background work would become visible. */
async function severalTicks(): Promise<void> {
  for (let tick = 0; tick < 50; tick += 1) await new Promise((resolve) => setImmediate(resolve));
}

describe("a transactional step on the memory store", () => {
  test("that uses its tx gets an error that says that there is no SQL, and what to do", async () => {
    const writes = workflow("writes", (ctx) =>
      ctx.transaction("write", (tx) => tx.query("SELECT 1"), { retry: { attempts: 1 } }),
    );
    const t = await testPawl({ workflows: [writes] });
    onTestFinished(() => t.close());
    const run = await t.pawl.start(writes);
    await t.speedrun(run);
    expect((await run.get()).error).toMatchObject({
      code: "INVALID_INPUT",
      message: expect.stringMatching(/memory store has no SQL.*no tx\.query.*testPawl\(\{ store: /),
    });
  });

  test("that passes its tx to a query builder gets the same error, and not one about an undefined constructor", async () => {
    // Drizzle reads the class name of its client first.
    const builder = (client: any) => ({ client, kind: client.constructor.name as string });
    const writes = workflow("writes", (ctx) =>
      ctx.transaction("write", (tx) => builder(tx).client.prepare("SELECT 1"), { retry: { attempts: 1 } }),
    );
    const t = await testPawl({ workflows: [writes] });
    onTestFinished(() => t.close());
    const run = await t.pawl.start(writes);
    await t.speedrun(run);
    expect((await run.get()).error?.message).toMatch(/memory store has no SQL.*no tx\.prepare/);
  });

  test("that does not use its tx, or only passes it on, is a step like any other", async () => {
    const harmless = workflow("harmless", (ctx) =>
      ctx.transaction("write", async (tx) => {
        await tx;
        return `${JSON.stringify(tx)} ${typeof tx}`;
      }),
    );
    const t = await testPawl({ workflows: [harmless] });
    onTestFinished(() => t.close());
    const run = await t.pawl.start(harmless);
    await t.speedrun(run);
    expect(await run.result()).toBe("{} object");
  });
});

describe.skipIf(isLeftOut("postgres"))("on PostgreSQL", () => {
  test("a test may have its own schema, for its crash tests as well", async () => {
    const database = await emptyDatabase("postgres");
    onTestFinished(() => database.drop());
    const quick = workflow("quick", (ctx) => ctx.step("only", () => "done"));
    const t = await testPawl({ workflows: [quick], store: database.url, schema: "tests_of_mine" });
    const run = await t.pawl.start(quick);
    await t.speedrun(run);
    expect(await run.result()).toBe("done");
    await t.crashTest(quick, undefined, { points: 1 });
    await t.close();
    expect(await schemasWithRuns(database.url)).toEqual(["tests_of_mine"]);
  });
});

async function schemasWithRuns(url: string): Promise<string[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const { rows } = await client.query("SELECT schemaname FROM pg_tables WHERE tablename = 'pawl_runs' ORDER BY 1");
    return rows.map(({ schemaname }) => schemaname as string);
  } finally {
    await client.end();
  }
}
