/** Hooks around step executions behave the same in a class, a function and a graph. */
import {
  type AnyWorkflow,
  graph,
  InvalidInputError,
  Pawl,
  type StepExecution,
  type StepHooks,
  step,
  Workflow,
  type WorkflowContext,
  type WorkflowDefinition,
  workflow,
} from "pawl";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import type { Fence, Store } from "../../src/store/contract/store.js";
import { MemoryStore } from "../../src/store/memory/index.js";
import { testDatabase } from "../support/databases.js";
import { forMemoryAnd } from "../support/effort.js";
import { silent, start, world } from "../support/virtual-worlds.js";
import { errorOf, gate } from "../support/waiting.js";

let calls: string[] = [];
beforeEach(() => {
  calls = [];
});

type Body = (ctx: Pick<WorkflowContext, "attempt" | "skip">) => unknown;

interface HookedSteps {
  readonly hooks: StepHooks;
  readonly first?: Body;
  readonly second?: Body;
}

const describeExecution = ({ step: name, attempt, error, flow }: StepExecution) =>
  [name, attempt, error === undefined ? null : `error ${(error as Error).message}`, flow ?? null]
    .filter((part) => part !== null)
    .join(" ");

const tracing: StepHooks = {
  beforeStepExecution: (execution) => void calls.push(`before ${describeExecution(execution)}`),
  afterStepExecution: async (execution) => void calls.push(`after ${describeExecution(execution)}`),
  aroundStepExecution: async (execution, next) => {
    calls.push(`around ${describeExecution(execution)}`);
    await next();
    calls.push(`around ${describeExecution(execution)} ends`);
  },
};

const noop = () => {};

/** The same two steps in every style. A step that throws is retried at once, with three attempts in all. */
const styles: readonly [string, (hookedSteps: HookedSteps) => AnyWorkflow][] = [
  [
    "class",
    ({ hooks, first = noop, second = noop }) => {
      class Hooked extends Workflow {
        static {
          const onException = { action: "reattempt", wait: 0, maxReattempts: 2, terminalAction: "fail" } as const;
          this.options({ name: "Hooked", onException });
          this.step("first", first);
          this.step("second", second);
        }
        override beforeStepExecution(execution: StepExecution) {
          return hooks.beforeStepExecution?.(execution, this);
        }
        override afterStepExecution(execution: StepExecution) {
          return hooks.afterStepExecution?.(execution, this);
        }
        override aroundStepExecution(execution: StepExecution, next: () => Promise<void>) {
          return hooks.aroundStepExecution === undefined ? next() : hooks.aroundStepExecution(execution, next, this);
        }
      }
      return Hooked;
    },
  ],
  [
    "function",
    ({ hooks, first = noop, second = noop }) =>
      workflow("hooked_function", { ...hooks, retry: { attempts: 3, initial: 0 } }, async (ctx) => {
        await ctx.step("first", ({ attempt }) => first({ attempt, skip: () => ctx.skip() }));
        await ctx.step("second", ({ attempt }) => second({ attempt, skip: () => ctx.skip() }));
      }),
  ],
  [
    "graph",
    ({ hooks, first = noop, second = noop }) => {
      const one = step("first", (ctx) => first(ctx));
      const two = step("second", (ctx) => second(ctx));
      return graph("hooked_graph", [one, two.after(one)], { ...hooks, retry: { attempts: 3, initial: 0 } });
    },
  ],
];

describe.each(styles)("%s", (_style, make) => {
  /** Returns how the run ended, and the executions of its steps. */
  async function runToEnd(hookedSteps: HookedSteps) {
    const definition = make(hookedSteps) as WorkflowDefinition<void, void>;
    const t = await start(definition);
    const run = await t.pawl.start(definition);
    await t.settle();
    const executions = (await run.executions()).map((one) => `${one.step} ${one.attempt} ${one.outcome}`);
    expect((await t.pawl.verify()).differences).toEqual([]);
    return { status: await run.status(), executions };
  }

  test("are called before, around and after each execution, with the flow control or the error that ended it", async () => {
    const first: Body = (ctx) => {
      calls.push("first");
      if (ctx.attempt === 1) throw new Error("boom");
    };
    const second: Body = (ctx) => {
      calls.push("second");
      ctx.skip();
    };
    expect(await runToEnd({ hooks: tracing, first, second })).toEqual({
      status: "completed",
      executions: ["first 1 reattempted_by_exception", "first 2 success", "second 1 skipped_by_flow_control"],
    });
    expect(calls).toEqual([
      "before first 1",
      "around first 1",
      "first",
      "after first 1 error boom",
      "before first 2",
      "around first 2",
      "first",
      "around first 2 ends",
      "after first 2",
      "before second 1",
      "around second 1",
      "second",
      "after second 1 skip",
    ]);
  });

  test.each(["beforeStepExecution", "aroundStepExecution"] as const)(
    "an exception in %s counts as the step's own, and the body does not run",
    async (name) => {
      const hook = () => {
        calls.push("hook");
        throw new Error("no");
      };
      const first = () => void calls.push("first");
      expect(await runToEnd({ hooks: { [name]: hook }, first })).toEqual({
        status: "failed",
        executions: [
          "first 1 reattempted_by_exception",
          "first 2 reattempted_by_exception",
          "first 3 failed_by_exception",
        ],
      });
      expect(calls).toEqual(["hook", "hook", "hook"]);
    },
  );

  test("an exception in afterStepExecution counts as the step's own, unless the step has thrown one", async () => {
    const hooks: StepHooks = {
      afterStepExecution: ({ attempt }) => {
        if (attempt < 3) throw new Error("no");
      },
    };
    expect((await runToEnd({ hooks })).executions).toEqual([
      "first 1 reattempted_by_exception",
      "first 2 reattempted_by_exception",
      "first 3 success",
      "second 1 reattempted_by_exception",
      "second 2 reattempted_by_exception",
      "second 3 success",
    ]);
  });

  test("a hook may use flow control to leave the step, and can read the run", async () => {
    const hooks: StepHooks = {
      beforeStepExecution: (execution, ctx) => {
        calls.push(`${ctx.runId.length} ${ctx.executionId === execution.id} ${ctx.attempt}`);
        if (execution.step === "second") ctx.skip();
      },
    };
    const second = () => void calls.push("second");
    expect(await runToEnd({ hooks, second })).toEqual({
      status: "completed",
      executions: ["first 1 success", "second 1 skipped_by_flow_control"],
    });
    expect(calls).toEqual(["36 true 1", "36 true 1"]);
  });

  test("aroundStepExecution must call next() exactly once", async () => {
    const never = await runToEnd({ hooks: { aroundStepExecution: () => {} } });
    expect(never).toMatchObject({
      status: "failed",
      executions: expect.arrayContaining(["first 3 failed_by_exception"]),
    });
    const twice: StepHooks = {
      aroundStepExecution: async (_execution, next) => {
        await next();
        await next();
      },
    };
    expect(await runToEnd({ hooks: twice })).toMatchObject({ status: "failed" });
  });

  test("a step does not begin for a worker that has lost its run while the hook was running", async () => {
    const store = new MemoryStore();
    const losing = new Proxy<Store>(store, {
      get: (target, name) => {
        const value = Reflect.get(target, name) as unknown;
        if (name !== "heartbeat") return typeof value === "function" ? value.bind(target) : value;
        return async (fence: Fence) => ({ ...(await store.heartbeat(fence)), isAlive: calls.length !== 1 });
      },
    });
    const opened = gate();
    const definition = make({
      hooks: {
        beforeStepExecution: async ({ step: name }) => {
          calls.push(`before ${name}`);
          if (calls.length === 1) await opened.opened;
        },
      },
      first: () => void calls.push("first"),
    }) as WorkflowDefinition<void, void>;
    const pawl = new Pawl(losing, silent);
    onTestFinished(() => pawl.close());
    await pawl.worker({ workflows: [definition], lease: 600, poll: 20 }).start();
    await (await pawl.start(definition)).result();
    const ofNewOwner = ["before first", "before first", "first", "before second"];
    expect(calls).toEqual(ofNewOwner);
    opened.open();
    for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    expect(calls).toEqual(ofNewOwner);
  });
});

describe("function style", () => {
  test("hooks are not called for replayed steps, compensations and onFailure; they are called for transactional steps", async () => {
    const wf = workflow("parts", { ...tracing, onFailure: () => {} }, async (ctx) => {
      await ctx.step("done", () => {}, { compensate: () => {} });
      await ctx.sleep("night", "8 hours");
      await ctx.step("last", () => {});
      throw new Error("enough");
    });
    const t = await start(wf);
    const run = await t.pawl.start(wf);
    await t.speedrun(run);
    expect((await run.executions()).map(({ step: name }) => name)).toEqual([
      "done",
      "last",
      "done#compensate",
      "on_failure",
    ]);
    expect(calls.filter((one) => one.startsWith("before"))).toEqual(["before done 1", "before last 1"]);
  });

  test("a hook cannot record anything, and the error says so", async () => {
    const hooks: StepHooks = { beforeStepExecution: (_execution, ctx) => (ctx as WorkflowContext).sleep("nap", 1) };
    const wf = workflow("recording", { ...hooks, retry: { attempts: 1 } }, (ctx) => ctx.step("a", () => {}));
    const t = await start(wf);
    const run = await t.pawl.start(wf);
    await t.settle();
    expect((await errorOf(run.result())).cause.message).toBe(
      'A hook cannot wait for "nap" or record it; do that before or after the step.',
    );
  });

  test("a hook that is not a function is refused by the definition", async () => {
    const hooks = { beforeStepExecution: "log" } as unknown as StepHooks;
    const refused = await errorOf(
      (async () => {
        workflow("misfit", hooks, async () => {});
      })(),
    );
    expect(refused).toBeInstanceOf(InvalidInputError);
    expect(refused.message).toBe('beforeStepExecution of workflow "misfit" must be a function.');
    const ofGraph = () => graph("misfit", [step("a", () => {})], { afterStepExecution: 1 } as unknown as StepHooks);
    expect(ofGraph).toThrow('afterStepExecution of workflow "misfit" must be a function.');
  });

  forMemoryAnd("mysql", (kind) => {
    test("hooks of a transactional step are called while its transaction is open: an error in a hook rolls it back", async () => {
      const database = await testDatabase(kind);
      onTestFinished(() => database.drop());
      const w = await world(kind, database.url);
      const hooks: StepHooks = {
        ...tracing,
        afterStepExecution: ({ attempt }) => {
          if (attempt === 1) throw new Error("not yet");
        },
      };
      const wf = workflow("booked", { ...hooks, retry: { attempts: 2, initial: 0 } }, (ctx) =>
        ctx.transaction("book", (_tx, { attempt }) => attempt),
      );
      const { settle } = await w.worker([wf]);
      const run = await w.pawl.start(wf);
      await settle();
      expect(await run.result()).toBe(2);
      expect(calls.filter((one) => one.startsWith("before"))).toEqual(["before book 1", "before book 2"]);
    });
  });
});

test("a graph node that is parked in the middle is one execution for its hooks", async () => {
  const nap = step("nap", async (ctx) => {
    await ctx.sleep("night", "8 hours");
    return ctx.step("inner", () => "rested");
  });
  const rested = graph("rested", [nap], tracing);
  const t = await start(rested);
  const run = await t.pawl.start(rested);
  await t.speedrun(run);
  expect(await run.result()).toBe("rested");
  expect(calls.filter((one) => !one.startsWith("around"))).toEqual(["before nap 1", "after nap 1"]);
});
