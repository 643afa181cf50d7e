/** Promises that user code drops or awaits late may reject in the meantime without ending the process. */
import {
  type AnyWorkflow,
  graph,
  type JobTools,
  job,
  PermanentError,
  type StepContext,
  step,
  Workflow,
  type WorkflowContext,
  type WorkflowDefinition,
  workflow,
} from "pawl";
import { testPawl } from "pawl/testing";
import { describe, expect, onTestFinished, test } from "vitest";
import { StepIterator } from "../../src/define/class/iterator.js";
import { silent } from "../support/virtual-worlds.js";
import { collectFatalErrors } from "./unhandled.js";

/** The members that return promises. A new member does not compile here until it has a case below. */
type Promising<Type> = {
  [Name in keyof Type]: Type[Name] extends (...args: any[]) => infer Returned
    ? [Returned] extends [never]
      ? never
      : [Returned] extends [Promise<unknown>]
        ? Name
        : never
    : never;
}[keyof Type];

const child = workflow("child", () => {
  throw new PermanentError("the child fails");
});
const fail = (): never => {
  throw new PermanentError("it fails");
};

/** Calls that make each member reject. A member that throws synchronously is treated like one that rejects. */
const cases: Record<Promising<WorkflowContext>, ((ctx: WorkflowContext) => Promise<unknown>)[]> = {
  step: [(ctx) => ctx.step("fails", fail), (ctx) => ctx.step("", fail)],
  transaction: [(ctx) => ctx.transaction("fails", fail)],
  sleep: [(ctx) => ctx.sleep("", 1), (ctx) => ctx.sleep("nap", Number.NaN)],
  sleepUntil: [(ctx) => ctx.sleepUntil("nap", Number.NaN)],
  waitForSignal: [(ctx) => ctx.waitForSignal("")],
  waitForAny: [(ctx) => ctx.waitForAny([])],
  waitForAll: [(ctx) => ctx.waitForAll([Symbol("x") as never])],
  race: [
    (ctx) => ctx.race({}),
    (ctx) => ctx.race({ first: ctx.step("fails", fail) }),
    (ctx) => ctx.race({ own: Promise.reject(new Error("of the arm")) }),
    (ctx) => ctx.race({ none: undefined as never }),
  ],
  run: [
    (ctx) => ctx.run(child),
    (ctx) => ctx.run("nowhere", 1),
    (ctx) => ctx.run(child, undefined, { name: "" }),
    (ctx) => ctx.run(child, Symbol("x") as never),
  ],
  start: [(ctx) => ctx.start("nowhere", 1), (ctx) => ctx.start(null as never, 1)],
  map: [
    (ctx) => ctx.map(child, [undefined, undefined]),
    (ctx) => ctx.map("nowhere", [1]),
    (ctx) => ctx.map(child, null as never),
    (ctx) => ctx.map(child, [], { concurrency: -1 }),
  ],
  branch: [
    (ctx) => ctx.branch("b", fail, { a: () => 1 }),
    (ctx) => ctx.branch("b", async () => fail(), { a: () => 1 }),
    (ctx) => ctx.branch("b", () => "no such case" as never, { a: () => 1 }),
    (ctx) => ctx.branch("b", () => "a", { a: fail }),
    (ctx) => ctx.branch("", () => "a", { a: () => 1 }),
  ],
};

/** Makes the call, does other work while the call fails, and awaits it only after the run was parked in between. */
async function dropThenAwait(ctx: WorkflowContext, ask: (ctx: WorkflowContext) => Promise<unknown>): Promise<string> {
  let asked: Promise<unknown>;
  try {
    asked = ask(ctx);
  } catch (error) {
    asked = Promise.reject(error);
    asked.catch(() => {});
  }
  await ctx.step("meanwhile", () => new Promise((resolve) => setTimeout(resolve, 1)));
  await ctx.sleep("later", "1 day");
  try {
    await asked;
  } catch (error) {
    return `caught ${(error as Error).name}`;
  }
  return "it did not fail";
}

const all = Object.entries(cases).flatMap(([member, asks]) =>
  asks.map((ask, index) => [`${member} ${index + 1}`, ask] as const),
);

/** Defines the same code in each style, for each case. */
const styles = {
  "the ctx of a function": (ask: (ctx: WorkflowContext) => Promise<unknown>) =>
    workflow("drops", (ctx) => dropThenAwait(ctx, ask)),
  "an instance of a class": (ask: (ctx: WorkflowContext) => Promise<unknown>) =>
    class Drops extends Workflow<unknown, void, string> {
      static {
        this.step("s", async (w) => w.finish(await dropThenAwait(w as unknown as WorkflowContext, ask)));
      }
    },
  "the ctx of a graph's step": (ask: (ctx: WorkflowContext) => Promise<unknown>) =>
    graph("drops", [step("s", (ctx: StepContext) => dropThenAwait(ctx, ask))]),
};

async function withPawl(...workflows: readonly AnyWorkflow[]) {
  const t = await testPawl({ workflows: [child, ...workflows], logger: silent });
  onTestFinished(() => t.close());
  return t;
}

describe.each(Object.entries(styles))("%s", (_style, define) => {
  test.each(all)("the promise returned by %s may reject before it is awaited", async (_name, ask) => {
    const fatal = collectFatalErrors();
    const drops = define(ask);
    const t = await withPawl(drops);
    const run = await t.pawl.start(drops as WorkflowDefinition<void, string>);
    await t.speedrun(run);
    expect(await run.result({ timeout: "100s" })).toMatch(/^caught /);
    await new Promise((resolve) => setImmediate(resolve));
    expect(fatal).toEqual([]);
  });
});

test("the result of a started child may reject before it is awaited", async () => {
  const fatal = collectFatalErrors();
  const drops = workflow("drops", async (ctx) => {
    const handle = await ctx.start(child);
    const result = handle.result();
    void handle.result();
    await ctx.sleep("later", "1 day");
    return result.catch((error: Error) => error.name);
  });
  const t = await withPawl(drops);
  const run = await t.pawl.start(drops);
  await t.speedrun(run);
  expect(await run.result({ timeout: "100s" })).toBe("RunFailedError");
  expect(fatal).toEqual([]);
});

test("promises returned by the ctx of a job may be dropped", async () => {
  const fatal = collectFatalErrors();
  const drops = job("Drops", async (_args: void, { ctx }: JobTools) => {
    void ctx.run(child);
    void ctx.start("nowhere", 1);
    void ctx.branch("b", fail, { a: () => 1 });
    await ctx.sleep("later", "1 day");
  });
  const t = await testPawl({ workflows: [child], jobs: [drops], logger: silent });
  onTestFinished(() => t.close());
  const run = await t.pawl.build("g", (g) => void g.node("n", { job: drops }));
  await t.speedrun(run);
  expect(await run.status()).toBe("completed");
  expect(fatal).toEqual([]);
});

/** The methods of the iterator. Those that only read, or that leave the step immediately, return no promise. */
const iterators: Record<Promising<Omit<StepIterator, "cursor">>, ((iter: StepIterator) => Promise<unknown>)[]> = {
  set: [(iter) => iter.set(() => {})],
  advance: [
    (iter) => {
      void iter.set("a text");
      return iter.advance();
    },
  ],
  checkpoint: [(iter) => iter.checkpoint()],
  over: [(iter) => iter.over(null as never, fail), (iter) => iter.over([1, 2], fail)],
  records: [
    (iter) => iter.records({ fetch: fail, key: "id" as never }, fail),
    (iter) => iter.records({ fetch: () => 7 as never, key: "id" as never }, fail),
    (iter) => iter.records({ fetch: () => [{}], key: (): string => fail() }, () => {}),
  ],
  batches: [(iter) => iter.batches({ fetch: async () => fail(), key: "id" as never }, fail)],
  each: [
    (iter) => iter.each(null as never, fail),
    (iter) =>
      iter.each(
        (async function* () {
          yield [1, 1] as const;
          fail();
        })(),
        () => {},
      ),
  ],
};
const plain = ["constructor", "cursor", "resumed", "advanced", "description", "skipTo", "total"];

test("every member of the iterator has a case in these tests", () => {
  const members = Object.getOwnPropertyNames(StepIterator.prototype).filter((name) => !plain.includes(name));
  expect(members.sort()).toEqual(Object.keys(iterators).sort());
});

test.each(
  Object.entries(iterators).flatMap(([member, asks]) =>
    asks.map((ask, index) => [`${member} ${index + 1}`, ask] as const),
  ),
)("the promise returned by %s of an iterator may be dropped", async (_name, ask) => {
  const fatal = collectFatalErrors();
  let kept: StepIterator | undefined;
  class Drops extends Workflow {
    static {
      this.resumableStep("s", async (w, iter) => {
        void ask(iter);
        kept = iter;
        await w.sleep("later", "1 day");
      });
    }
  }
  const t = await withPawl(Drops);
  const run = await t.pawl.start(Drops);
  await t.speedrun(run);
  expect(await run.status()).toBe("completed");
  // The step is over, so its iterator refuses every further call.
  void (kept as StepIterator).set(1);
  void (kept as StepIterator).checkpoint();
  await new Promise((resolve) => setImmediate(resolve));
  expect(fatal).toEqual([]);
});

test("the promise of a second next() in aroundStepExecution may be dropped", async () => {
  const fatal = collectFatalErrors();
  class Twice extends Workflow {
    static {
      this.step("s", () => {});
    }
    override async aroundStepExecution(_about: unknown, next: () => Promise<void>) {
      await next();
      void next();
    }
  }
  const t = await withPawl(Twice);
  const run = await t.pawl.start(Twice);
  await t.speedrun(run);
  expect(await run.status()).toBe("completed");
  expect(fatal).toEqual([]);
});

test("code that catches an error of a branch, a child or a map may continue with a promise that Pawl does not know", async () => {
  const goesOn = workflow("goes_on", async (ctx) => {
    await ctx.branch("b", fail, { a: () => 1 }).catch(() => {});
    await ctx.start("nowhere", 1).catch(() => {});
    await ctx.map("nowhere", [1]).catch(() => {});
    // If one of the calls still counted as pending, the run would be parked here and nothing would wake it.
    await new Promise((resolve) => setTimeout(resolve, 20));
    return "went on";
  });
  const t = await withPawl(goesOn);
  const run = await t.pawl.start(goesOn);
  await t.settle();
  expect(await run.status()).toBe("completed");
});

test("a step that returns promises without awaiting them fails, and their rejections do not end the process", async () => {
  const fatal = collectFatalErrors();
  const load = async (id: number) => {
    throw new Error(`cannot load ${id}`);
  };
  const forgets = workflow("forgets", { retry: { attempts: 1 } }, (ctx) =>
    ctx.step("load", () => ({ items: [1, 2, 3].map(load), more: { last: load(4) } })),
  );
  const t = await withPawl(forgets);
  const run = await t.pawl.start(forgets);
  await t.settle();
  expect(await run.status()).toBe("failed");
  expect((await run.get()).error?.message).toContain("$.items[0] is a Promise");
  await new Promise((resolve) => setImmediate(resolve));
  expect(fatal).toEqual([]);
});
