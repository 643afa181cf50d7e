/** Steps of graphs and classes that were renamed, removed or changed inside under open runs: no effect is repeated. */
import { type AnyWorkflow, graph, type RunHandle, step, Workflow, type WorkflowContext } from "pawl";
import { beforeEach, describe, expect, test } from "vitest";
import { logOf } from "../support/run-checks.js";
import { world } from "../support/virtual-worlds.js";

let effects: string[] = [];
beforeEach(() => {
  effects = [];
});

const work = <const Name extends string>(name: Name, options = {}) =>
  step(name, ({ idempotencyKey }) => void effects.push(`${name} ${idempotencyKey.split(":")[1]}`), options);
const nap = step("nap", (ctx) => ctx.sleep("rest", "1 day"));

/**
 * Starts a run with the old code, and continues with each further definition; functions in the list run between the
 * deploys.
 */
async function runThroughDeploys(
  before: AnyWorkflow,
  ...steps: (AnyWorkflow | ((run: RunHandle<any, any>) => Promise<unknown>))[]
): Promise<RunHandle<any, any>> {
  const w = await world();
  let current = await w.worker([before]);
  const run = (await w.pawl.start(before as never, undefined as never)) as RunHandle<any, any>;
  await current.settle();
  for (const next of steps) {
    if (typeof next === "function" && !(next.prototype instanceof Workflow)) {
      await (next as (run: RunHandle<any, any>) => Promise<unknown>)(run);
      continue;
    }
    await current.worker.stop();
    current = await w.worker([next as AnyWorkflow]);
    for (let due = await current.settle(); due !== null; due = await current.settle()) w.clock.moveTo(due);
  }
  expect((await w.pawl.verify()).differences).toEqual([]);
  return run;
}

const expectPaused = (words: string) => async (run: RunHandle<any, any>) => {
  const { status, pauseReason } = await run.get();
  expect(status).toBe("paused");
  expect(pauseReason).toContain(words);
};

describe("a completed node of a graph that was renamed", () => {
  const bill = work("bill");
  const charge = work("charge");
  const ship = work("ship");
  const old = graph("g", [bill, nap.after(bill), ship.after(nap)]);
  const nodes = [charge, nap.after(charge), ship.after(nap)] as const;

  test("does not run again: the run is paused, and continues with an alias", async () => {
    const run = await runThroughDeploys(
      old,
      graph("g", nodes),
      expectPaused('its log has the step "bill"'),
      expectPaused('aliases: { charge: ["bill"] }'),
      (one) => one.resume(),
      graph("g", nodes, { aliases: { charge: ["bill"] } }),
    );
    expect(await run.status()).toBe("completed");
    expect(effects).toEqual(["bill bill", "ship ship"]);
  });

  test("continues when an operator says how it was renamed, or that it was removed", async () => {
    for (const options of [{ renamed: { bill: "charge" } }, { accept: ["bill", "charge"] }]) {
      effects = [];
      const run = await runThroughDeploys(old, graph("g", nodes), (one) => one.resume(options), graph("g", nodes));
      expect(await run.status()).toBe("completed");
      const again = "accept" in options ? ["charge charge"] : [];
      expect(effects.toSorted()).toEqual(["bill bill", ...again, "ship ship"]);
    }
  });

  test("continues when the graph says that it was removed", async () => {
    const run = await runThroughDeploys(old, graph("g", [nap, ship.after(nap)], { removedSteps: ["bill"] }));
    expect(await run.status()).toBe("completed");
    expect(effects).toEqual(["bill bill", "ship ship"]);
  });

  test("keeps its compensation", async () => {
    const compensated: string[] = [];
    const booking = (name: string) =>
      step(name, () => name, { compensate: (_ctx, output) => void compensated.push(`${name} ${output}`) });
    const fail = step(
      "fail",
      () => {
        throw new Error("no");
      },
      { retry: { attempts: 1 } },
    );
    const [first, second] = [booking("book"), booking("reserve")];
    const run = await runThroughDeploys(
      graph("g", [first, nap.after(first), fail.after(nap)]),
      graph("g", [second, nap.after(second), fail.after(nap)], { aliases: { reserve: ["book"] } }),
    );
    expect(await run.status()).toBe("failed");
    expect(compensated).toEqual(["reserve book"]);
  });
});

describe("the body of a step that continues after it was parked", () => {
  const body = (calls: (ctx: WorkflowContext<any>) => Promise<unknown>) => {
    const only = step("only", (ctx) => calls(ctx));
    return graph("g", [only]);
  };
  const recordStep = (ctx: WorkflowContext<any>, name: string, options = {}) =>
    ctx.step(name, () => void effects.push(name), options);
  const original = body(async (ctx) => {
    await recordStep(ctx, "bill");
    await ctx.sleep("rest", "1h");
    await recordStep(ctx, "ship");
  });

  test("does not repeat a recorded call under another name", async () => {
    const changed = body(async (ctx) => {
      await recordStep(ctx, "charge");
      await ctx.sleep("rest", "1h");
      await recordStep(ctx, "ship");
    });
    const run = await runThroughDeploys(
      original,
      changed,
      expectPaused('"only/bill"'),
      (one) => one.resume(),
      original,
    );
    expect(await run.status()).toBe("completed");
    expect(effects).toEqual(["bill", "ship"]);
  });

  test("that ends without replaying its recorded calls does not end the step", async () => {
    const run = await runThroughDeploys(
      original,
      body(async () => "early"),
      expectPaused('"only/bill"'),
      (one) => one.resume({ accept: ["bill", "rest"] }),
      body(async () => "early"),
    );
    expect(await run.status()).toBe("completed");
    expect(effects).toEqual(["bill"]);
  });

  test("may contain an inserted call that is marked as added", async () => {
    const run = await runThroughDeploys(
      original,
      body(async (ctx) => {
        await recordStep(ctx, "check", { added: true });
        await recordStep(ctx, "bill");
        await ctx.sleep("rest", "1h");
        await recordStep(ctx, "ship");
      }),
    );
    expect(await run.status()).toBe("completed");
    expect(effects).toEqual(["bill", "check", "ship"]);
  });

  test("does not have to replay the calls of an earlier attempt", async () => {
    let attempts = 0;
    const only = step(
      "only",
      async (ctx) => {
        attempts += 1;
        if (attempts <= 2) {
          await recordStep(ctx, "first try");
          await ctx.sleep("first rest", "1h");
          if (attempts === 2) throw new Error("another attempt goes another way");
        }
        await recordStep(ctx, "second try");
        await ctx.sleep("second rest", "1h");
        await recordStep(ctx, "last");
      },
      { retry: { attempts: 2 } },
    );
    const code = graph("g", [only]);
    const run = await runThroughDeploys(code, code);
    expect(await run.status()).toBe("completed");
    expect(effects).toEqual(["first try", "second try", "last"]);
  });
});

describe("a step of a class that was renamed", () => {
  const letter = (names: readonly string[], aliases?: Record<string, readonly string[]>) =>
    class Letter extends Workflow {
      static {
        this.options({ name: "Letter", ...(aliases === undefined ? {} : { aliases }) });
        for (const name of names)
          this.step(
            name,
            name === "wait" ? { wait: "1 hour" } : {},
            (w) => void effects.push(`${name} ${w.idempotencyKey.split(":")[1]}`),
          );
      }
    };

  test("does not run again when an alias names it", async () => {
    const run = await runThroughDeploys(
      letter(["write", "wait", "send"]),
      letter(["compose", "wait", "send"], { compose: ["write"] }),
    );
    expect(await run.status()).toBe("completed");
    expect(effects).toEqual(["write write", "wait wait", "send send"]);
  });

  test("is the position of the run when an alias names it", async () => {
    const run = await runThroughDeploys(
      letter(["write", "wait", "send"]),
      letter(["write", "pause", "send"]),
      expectPaused('has no step "wait"'),
      (one) => one.resume(),
      letter(["write", "pause", "send"], { pause: ["wait"] }),
    );
    expect(await run.status()).toBe("completed");
    expect(effects).toEqual(["write write", "pause wait", "send send"]);
    expect(await logOf(run)).not.toContain("step.completed pause");
  });

  test("is skipped when an operator accepts that it was removed", async () => {
    const run = await runThroughDeploys(
      letter(["write", "wait", "send"]),
      letter(["write", "send"]),
      expectPaused('has no step "wait"'),
      (one) => one.resume({ accept: ["wait"] }),
      letter(["write", "send"]),
    );
    expect(await run.status()).toBe("completed");
    expect(effects).toEqual(["write write", "send send"]);
  });
});
