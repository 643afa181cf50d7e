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
import { type StoreKind, testDatabase } from "../support/databases.js";
import { forMemoryAnd } from "../support/effort.js";
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

function recordTenant(place: string): void {
  const seenHere = seen.get(place) ?? new Set();
  seen.set(place, seenHere.add(tenants.getStore()));
}

function failOnce(place: string, attempt: number): void {
  recordTenant(`${place}, attempt ${attempt}`);
  if (attempt === 1) throw new Error("once");
}

function choose(): "left" {
  recordTenant("a choice");
  return "left";
}

function condition(): boolean {
  recordTenant("a condition");
  return true;
}

const noTenantIn = (...places: string[]) => new Map(places.map((place) => [place, new Set([undefined])]));

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
async function forEachTenant(work: (tenant: string) => Promise<unknown>): Promise<void> {
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
  recordTenant("a child");
  return ctx.step("double", () => {
    recordTenant("a step of a child");
    return n * 2;
  });
});

const everything = workflow(
  "everything",
  { retry, onFailure: () => recordTenant("onFailure"), onError: () => recordTenant("onError") },
  async (ctx, _tenant: string) => {
    recordTenant("the handler");
    await ctx.step("first", () => recordTenant("a step"));
    recordTenant("after a step");
    await ctx.step("flaky", ({ attempt }) => failOnce("a step", attempt));
    await ctx.step("async", async ({ attempt }) => {
      await new Promise(setImmediate);
      failOnce("an async step", attempt);
    });
    await ctx.step("patient", () => recordTenant("a step with a time limit"), { timeout: "1 hour" });
    await ctx.sleep("nap", 1);
    recordTenant("after a sleep");
    await ctx.step("late", () => recordTenant("a step after a sleep"));
    await ctx.run(leaf, 1);
    await ctx.map(leaf, [1, 2, 3]);
    await ctx.waitForSignal("go");
    recordTenant("after a signal");
    await ctx.branch("way", () => choose(), { left: () => recordTenant("a branch") });
    await ctx.step("undone", () => {}, { compensate: () => recordTenant("a compensation") });
    throw new PermanentError("the end");
  },
);

class Chain extends Workflow {
  static {
    const again = { onException: "reattempt", retry: { initial: 1, jitter: false } } as const;
    this.step("first", { ...again, if: () => condition() }, (w) => failOnce("a class's step", w.attempt));
    this.step("rests", async (w) => {
      await w.sleep("nap", 1);
      recordTenant("a class's step after a sleep");
    });
    this.resumableStep("loop", { maxIterations: 1 }, (_w, iter) => iter.over([1, 2, 3], () => recordTenant("an item")));
  }
  override beforeStepExecution() {
    recordTenant("before");
  }
  override async aroundStepExecution(_about: unknown, next: () => Promise<void>) {
    recordTenant("around");
    await next();
  }
  override afterStepExecution() {
    recordTenant("after");
  }
}

const one = step("one", (ctx) => failOnce("a node", ctx.attempt), {
  retry,
  compensate: () => recordTenant("undoing a node"),
});
const two = step("two", () => recordTenant("a node of a crowd"), { concurrency: 1 });
const three = step("three", () => {
  recordTenant("the last node");
  throw new PermanentError("the end");
});
const plan = graph("plan", [one, two.after(one), three.after(two)]);

forMemoryAnd("mysql", (kind) => {
  test("runs that tenants start at the same time run without a tenant, in every piece of code", async () => {
    const pawl = await working(kind, [everything, leaf]);
    await forEachTenant(async (tenant) => {
      const run = await pawl.start(everything, tenant);
      await run.signal("go");
      expect(tenants.getStore()).toBe(tenant);
      expect(await errorOf(run.result())).toMatchObject({ message: expect.stringContaining("the end") });
    });
    expect(seen).toEqual(
      noTenantIn(
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
    await forEachTenant(async () => {
      const [chain, graphRun] = await Promise.all([pawl.start(Chain), pawl.start(plan, null)]);
      await chain.result();
      await errorOf(graphRun.result());
    });
    expect(seen).toEqual(
      noTenantIn(
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
    await forEachTenant(async (tenant) => errorOf((await pawl.start(own, tenant)).result()));
    const places = ["attempt 1", "attempt 2", "compensation", "after a sleep"];
    expect(seen).toEqual(
      new Map(names.flatMap((tenant) => places.map((place) => [`${tenant} ${place}`, new Set([tenant])]))),
    );
  });

  test("a tenant that code sets with enterWith() does not reach another run", async () => {
    const enters = workflow("enters", async (ctx, tenant: string) => {
      recordTenant("a run begins");
      tenants.enterWith(tenant);
      await ctx.step("work", () => {});
      await ctx.sleep("nap", 1);
      return tenants.getStore() ?? null;
    });
    const pawl = await working(kind, [enters]);
    await forEachTenant(async (tenant) => expect(await (await pawl.start(enters, tenant)).result()).toBe(tenant));
    expect(seen).toEqual(noTenantIn("a run begins"));
  });
});

test("log lines of a run are written without a tenant", async () => {
  const debug = () => recordTenant("the logger");
  const pawl = await working("memory", [leaf], { ...silent, debug });
  await forEachTenant(async (tenant) => (await pawl.start(leaf, tenant.length)).result());
  expect(seen.get("the logger")).toEqual(new Set([undefined]));
});
