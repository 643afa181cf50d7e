/**
 * The code of a run never sees the AsyncLocalStorage of the program that started it, or of another run; it keeps its
 * own.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import {
  type AnyWorkflow,
  connect,
  graph,
  type Logger,
  type Pawl,
  PermanentError,
  step,
  Workflow,
  workflow,
} from "pawl";
import { beforeEach, expect, onTestFinished, test } from "vitest";
import { forEachStore, type StoreKind, testDatabase } from "../support/databases.js";
import { silent } from "../support/virtual-worlds.js";
import { errorOf } from "../support/waiting.js";

const tenants = new AsyncLocalStorage<string>();
const names = ["A", "B", "C"];
const retry = { attempts: 2, initial: 1, jitter: false } as const;

/** The tenants that were seen, by place in the code. */
let seen = new Map<string, Set<string | undefined>>();
beforeEach(() => {
  seen = new Map();
});

function look(place: string): void {
  const here = seen.get(place) ?? new Set();
  seen.set(place, here.add(tenants.getStore()));
}

function failOnce(place: string, attempt: number): void {
  look(`${place}, attempt ${attempt}`);
  if (attempt === 1) throw new Error("once");
}

function choose(): "left" {
  look("a choice");
  return "left";
}

function holds(): boolean {
  look("a condition");
  return true;
}

const nobodyIn = (...places: string[]) => new Map(places.map((place) => [place, new Set([undefined])]));

async function working(kind: StoreKind, workflows: readonly AnyWorkflow[], logger: Logger = silent): Promise<Pawl> {
  const { url, drop } = await testDatabase(kind);
  onTestFinished(drop);
  const pawl = await connect(url, { logger });
  onTestFinished(() => pawl.close());
  // A worker that is started in the context of one tenant works for all of them.
  await tenants.run("the one who started the worker", () => pawl.worker({ workflows }).start());
  return pawl;
}

/**
 * Runs the work for three tenants at once, each in its own context, and checks that the context is intact afterwards.
 */
async function eachTenant(work: (tenant: string) => Promise<unknown>): Promise<void> {
  await Promise.all(
    names.map((tenant) =>
      tenants.run(tenant, async () => {
        await work(tenant);
        expect(tenants.getStore()).toBe(tenant);
      }),
    ),
  );
}

const leaf = workflow("leaf", async (ctx, n: number) => {
  look("a child");
  return ctx.step("double", () => {
    look("a step of a child");
    return n * 2;
  });
});

const everything = workflow(
  "everything",
  { retry, onFailure: () => look("onFailure"), onError: () => look("onError") },
  async (ctx, _tenant: string) => {
    look("the handler");
    await ctx.step("first", () => look("a step"));
    look("after a step");
    await ctx.step("flaky", ({ attempt }) => failOnce("a step", attempt));
    await ctx.step("async", async ({ attempt }) => {
      await new Promise(setImmediate);
      failOnce("an async step", attempt);
    });
    await ctx.step("patient", () => look("a step with a time limit"), { timeout: "1 hour" });
    await ctx.sleep("nap", 1);
    look("after a sleep");
    await ctx.step("late", () => look("a step after a sleep"));
    await ctx.run(leaf, 1);
    await ctx.map(leaf, [1, 2, 3]);
    await ctx.waitForSignal("go");
    look("after a signal");
    await ctx.branch("way", () => choose(), { left: () => look("a branch") });
    await ctx.step("undone", () => {}, { compensate: () => look("a compensation") });
    throw new PermanentError("the end");
  },
);

class Chain extends Workflow {
  static {
    const again = { onException: "reattempt", retry: { initial: 1, jitter: false } } as const;
    this.step("first", { ...again, if: () => holds() }, (w) => failOnce("a class's step", w.attempt));
    this.step("rests", async (w) => {
      await w.sleep("nap", 1);
      look("a class's step after a sleep");
    });
    this.resumableStep("loop", { maxIterations: 1 }, (_w, iter) => iter.over([1, 2, 3], () => look("an item")));
  }
  override beforeStepExecution() {
    look("before");
  }
  override async aroundStepExecution(_about: unknown, next: () => Promise<void>) {
    look("around");
    await next();
  }
  override afterStepExecution() {
    look("after");
  }
}

const one = step("one", (ctx) => failOnce("a node", ctx.attempt), { retry, compensate: () => look("undoing a node") });
const two = step("two", () => look("a node of a crowd"), { concurrency: 1 });
const three = step("three", () => {
  look("the last node");
  throw new PermanentError("the end");
});
const plan = graph("plan", [one, two.after(one), three.after(two)]);

forEachStore((kind) => {
  test("runs that tenants start at the same time run without a tenant, in every piece of code", async () => {
    const pawl = await working(kind, [everything, leaf]);
    await eachTenant(async (tenant) => {
      const run = await pawl.start(everything, tenant);
      await run.signal("go");
      expect(tenants.getStore()).toBe(tenant);
      expect(await errorOf(run.result())).toMatchObject({ message: expect.stringContaining("the end") });
    });
    expect(seen).toEqual(
      nobodyIn(
        "the handler",
        "a step",
        "after a step",
        "a step, attempt 1",
        "onError",
        "a step, attempt 2",
        "an async step, attempt 1",
        "an async step, attempt 2",
        "a step with a time limit",
        "after a sleep",
        "a step after a sleep",
        "a child",
        "a step of a child",
        "after a signal",
        "a choice",
        "a branch",
        "a compensation",
        "onFailure",
      ),
    );
  });

  test("classes and graphs run without a tenant, too: steps, hooks, conditions, items, nodes, compensations", async () => {
    const pawl = await working(kind, [Chain, plan]);
    await eachTenant(async () => {
      const [chain, graphRun] = await Promise.all([pawl.start(Chain), pawl.start(plan, null)]);
      await chain.result();
      await errorOf(graphRun.result());
    });
    expect(seen).toEqual(
      nobodyIn(
        "a condition",
        "before",
        "around",
        "after",
        "a class's step, attempt 1",
        "a class's step, attempt 2",
        "a class's step after a sleep",
        "an item",
        "a node, attempt 1",
        "a node, attempt 2",
        "a node of a crowd",
        "the last node",
        "undoing a node",
      ),
    );
  });

  test("a tenant that the code itself sets is visible in its steps, their further attempts and compensations", async () => {
    const own = workflow("own", { retry }, (ctx, tenant: string) =>
      tenants.run(tenant, async () => {
        const see = (place: string) => seen.set(`${tenant} ${place}`, new Set([tenants.getStore()]));
        await ctx.step("flaky", ({ attempt }) => {
          see(`attempt ${attempt}`);
          if (attempt === 1) throw new Error("once");
        });
        await ctx.step("undone", () => {}, { compensate: () => see("compensation") });
        await ctx.sleep("nap", 1);
        see("after a sleep");
        throw new PermanentError("the end");
      }),
    );
    const pawl = await working(kind, [own]);
    await eachTenant(async (tenant) => errorOf((await pawl.start(own, tenant)).result()));
    const places = ["attempt 1", "attempt 2", "compensation", "after a sleep"];
    expect(seen).toEqual(
      new Map(names.flatMap((tenant) => places.map((place) => [`${tenant} ${place}`, new Set([tenant])]))),
    );
  });

  test("a tenant that code sets with enterWith() does not reach another run", async () => {
    const enters = workflow("enters", async (ctx, tenant: string) => {
      look("a run begins");
      tenants.enterWith(tenant);
      await ctx.step("work", () => {});
      await ctx.sleep("nap", 1);
      return tenants.getStore() ?? null;
    });
    const pawl = await working(kind, [enters]);
    await eachTenant(async (tenant) => expect(await (await pawl.start(enters, tenant)).result()).toBe(tenant));
    expect(seen).toEqual(nobodyIn("a run begins"));
  });
});

test("log lines of a run are written without a tenant", async () => {
  const debug = () => look("the logger");
  const pawl = await working("memory", [leaf], { ...silent, debug });
  await eachTenant(async (tenant) => (await pawl.start(leaf, tenant.length)).result());
  expect(seen.get("the logger")).toEqual(new Set([undefined]));
});
