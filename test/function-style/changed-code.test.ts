/**
 * When the code of an open run changes, no effect is repeated: the worker replays the log first and runs new calls only
 * afterwards.
 */
import {
  type RunHandle,
  TransientError,
  type WorkerOptions,
  type WorkflowContext,
  type WorkflowOptions,
  workflow,
} from "pawl";
import { testPawl } from "pawl/testing";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { testDatabase } from "../support/databases.js";
import { forMemoryAnd } from "../support/effort.js";
import { logOf } from "../support/run-checks.js";
import { silent, type World, world } from "../support/virtual-worlds.js";
import { errorOf, gate, until } from "../support/waiting.js";

type Handler = (ctx: WorkflowContext<void>) => Promise<unknown>;
type Options = Pick<WorkflowOptions, "aliases">;
const shopWorkflow = (handler: Handler, options: Options = {}) => workflow("shop", options, handler);

let effects: string[] = [];
beforeEach(() => {
  effects = [];
});
/** A step with a visible effect. */
const effect = (ctx: WorkflowContext<any>, name: string, options?: object) =>
  ctx.step(name, () => void effects.push(name), options);

const original: Handler = async (ctx) => {
  await effect(ctx, "bill");
  await ctx.sleep("nap", "1h");
  await effect(ctx, "ship");
};

interface Deployed {
  readonly w: World;
  readonly run: RunHandle<any, any>;
  /** Replaces the worker by one with this code, then runs everything that is due or becomes due. */
  deploy(handler: Handler, options?: Options, workerOptions?: Partial<WorkerOptions>): Promise<void>;
  /** Stops the worker; there is none until the next deploy. */
  stop(): Promise<void>;
}

async function startRun(handler: Handler, w?: World): Promise<Deployed> {
  const currentWorld = w ?? (await world());
  let current = await currentWorld.worker([shopWorkflow(handler)]);
  const run = await currentWorld.pawl.start(shopWorkflow(handler));
  await current.settle();
  return {
    w: currentWorld,
    run,
    stop: () => current.worker.stop(),
    deploy: async (next, options, workerOptions) => {
      await current.worker.stop();
      current = await currentWorld.worker([shopWorkflow(next, options)], workerOptions);
      for (let due = await current.settle(); due !== null; due = await current.settle()) currentWorld.clock.moveTo(due);
    },
  };
}

const renamed: Handler = async (ctx) => {
  await effect(ctx, "charge");
  await ctx.sleep("nap", "1h");
  await effect(ctx, "ship");
};

async function reasonOf(run: RunHandle<any, any>): Promise<string> {
  const { status, pauseReason } = await run.get();
  expect(status).toBe("paused");
  return pauseReason as string;
}

forMemoryAnd("mysql", (kind) => {
  test("a renamed step does not run again: the run is paused, and the pause reason says how to continue", async () => {
    const database = await testDatabase(kind);
    onTestFinished(() => database.drop());
    const { w, run, deploy } = await startRun(original, await world(kind, database.url));
    await deploy(renamed);
    expect(effects).toEqual(["bill"]);
    const reason = await reasonOf(run);
    expect(reason).toContain('its log has the step "bill"');
    expect(reason).toContain('the code asks for "charge"');
    expect(reason).toContain('resume({ renamed: { bill: "charge" } })');
    await run.resume({ renamed: { bill: "charge" } });
    await deploy(renamed);
    expect(await run.status()).toBe("completed");
    expect(effects).toEqual(["bill", "ship"]);
    expect((await w.pawl.verify()).differences).toEqual([]);
  });
});

describe("a renamed step", () => {
  test("is reported with the result of each remedy, and later steps are not reported as missing", async () => {
    const { run, deploy } = await startRun(original);
    await deploy(renamed);
    expect(await reasonOf(run)).toBe(
      `Run ${run.id} cannot be replayed: its log has the step "bill", the sleep "nap", which the code has not asked for yet, and the code asks for "charge", which the log does not have; some of the recorded calls may come after "charge" and not have been reached yet. ` +
        "Nothing that is new was run. What you can do: deploy code that makes these calls again, and resume(); " +
        'if "charge" is "bill" under another name, define the workflow with aliases: { charge: ["bill"] } and resume(), or resume({ renamed: { bill: "charge" } }); ' +
        'if "charge" was added before steps that the run has recorded, call it with { added: true } and resume(), or resume({ accept: ["charge"] }): then "charge" is run; ' +
        "if its name differs on every replay (it is made of a date or a random number), give it a fixed name first: then only renamed helps; " +
        'if "bill" was removed on purpose, resume({ accept: ["bill", "nap"] }): then "charge" is run.',
    );
    await run.resume({ accept: ["bill", "nap"] });
    await deploy(renamed);
    expect(await run.status()).toBe("completed");
    expect(effects).toEqual(["bill", "charge", "ship"]);
  });

  test("is matched to its old name by the aliases that the message suggests", async () => {
    const { run, deploy } = await startRun(original);
    await deploy(renamed);
    expect(await reasonOf(run)).toContain('aliases: { charge: ["bill"] }');
    await run.resume();
    await deploy(renamed, { aliases: { charge: ["bill"] } });
    expect(await run.status()).toBe("completed");
    expect(effects).toEqual(["bill", "ship"]);
  });

  test("keeps its idempotency key, its number and its compensation", async () => {
    const keys: string[] = [];
    const compensated: string[] = [];
    const pay =
      (name: string, fail: boolean): Handler =>
      async (ctx) => {
        for (let n = 0; n < 2; n += 1)
          await ctx.step(name, ({ idempotencyKey }) => void keys.push(idempotencyKey), {
            compensate: ({ idempotencyKey }) => void compensated.push(idempotencyKey),
          });
        await ctx.sleep("nap", "1h");
        await ctx.step(name, ({ idempotencyKey }) => void keys.push(idempotencyKey));
        if (fail) throw new Error("undo it all");
      };
    const { run, deploy } = await startRun(pay("bill", false));
    await deploy(pay("charge", true), { aliases: { charge: ["bill"] } });
    expect(await run.status()).toBe("failed");
    expect(keys).toEqual([`${run.id}:bill`, `${run.id}:bill#2`, `${run.id}:bill#3`]);
    expect(compensated).toEqual([`${run.id}:bill#2#compensate`, `${run.id}:bill#compensate`]);
  });

  test("that must be compensated, but whose compensation is no longer in the code, pauses the canceled run with a warning and the remedies", async () => {
    const booking =
      (name: string): Handler =>
      async (ctx) => {
        await ctx.step(name, () => void effects.push(name), { compensate: () => void effects.push("undo") });
        await ctx.waitForSignal("never");
      };
    const remedies: { options: Options; act: (run: RunHandle<any, any>) => Promise<void>; compensated: string[] }[] = [
      { options: { aliases: { charge: ["bill"] } }, act: (run) => run.resume(), compensated: ["undo"] },
      { options: {}, act: (run) => run.resume({ renamed: { bill: "charge" } }), compensated: ["undo"] },
      { options: {}, act: (run) => run.cancel("enough", { force: true }), compensated: [] },
    ];
    for (const { options, act, compensated } of remedies) {
      effects = [];
      const warnings: unknown[][] = [];
      const w = await world("memory", "memory:", { ...silent, warn: (...args) => void warnings.push(args) });
      const { run, deploy, stop } = await startRun(booking("bill"), w);
      await stop();
      await run.cancel("too late");
      await deploy(booking("charge"));
      const reason = await reasonOf(run);
      expect(reason).toBe(
        'Step "bill" must be compensated (the run was canceled: too late), but the code no longer defines a compensate function for it. Nothing new was run. What you can do: ' +
          "deploy code that has the step with its compensate function, and resume(); " +
          'if the step was renamed, define the workflow with aliases: { newName: ["bill"] } and resume(), or resume({ renamed: { "bill": "newName" } }); ' +
          "to end the run without compensation, call cancel(reason, { force: true }).",
      );
      expect(warnings).toEqual([
        [`Run ${run.id} (shop) is paused: ${reason}`, expect.objectContaining({ code: "STEP_NOT_DEFINED" })],
      ]);
      await stop();
      await act(run);
      await deploy(booking("charge"), options);
      expect(await run.status()).toBe("canceled");
      expect(effects).toEqual(["bill", ...compensated]);
    }
  });

  test("has its new name in a new run", async () => {
    const { run, deploy } = await startRun(async (ctx) => void (await ctx.sleep("nap", "1h")));
    await deploy(
      async (ctx) => {
        await ctx.sleep("nap", "1h");
        await effect(ctx, "charge");
      },
      { aliases: { charge: ["bill"] } },
    );
    expect(await logOf(run)).toContain("step.completed charge");
  });

  test("cannot be given a name that another step has or had", () => {
    expect(() => shopWorkflow(original, { aliases: { charge: ["bill"], pay: ["bill"] } })).toThrow(
      /"bill".*one step only/,
    );
    expect(() => shopWorkflow(original, { aliases: { charge: ["charge"] } })).toThrow(/one step only/);
    expect(() => shopWorkflow(original, { aliases: { charge: "bill" as never } })).toThrow(/list/);
  });

  test("beside a branch that waits is detected before anything new runs", async () => {
    const both =
      (name: string): Handler =>
      async (ctx) => {
        await Promise.all([
          effect(ctx, name),
          (async () => {
            await ctx.waitForSignal("go");
            await effect(ctx, "after signal");
          })(),
        ]);
        await ctx.sleep("nap", "1h");
      };
    const { run, deploy } = await startRun(both("bill"));
    await run.signal("go");
    await deploy(both("charge"));
    expect(effects).toEqual(["bill"]);
    await reasonOf(run);
  });
});

describe("a step that was inserted before recorded ones", () => {
  const inserted =
    (options?: object): Handler =>
    async (ctx) => {
      await effect(ctx, "check", options);
      await original(ctx);
    };

  test("is not run: the run is paused, and resume({ accept }) runs the step", async () => {
    const { run, deploy } = await startRun(original);
    await deploy(inserted());
    expect(effects).toEqual(["bill"]);
    expect(await reasonOf(run)).toContain('resume({ accept: ["check"] })');
    await run.resume({ accept: ["check"] });
    await deploy(inserted());
    expect(await run.status()).toBe("completed");
    expect(effects).toEqual(["bill", "check", "ship"]);
  });

  test("is run when the call says that it was added; in new runs it is a normal step", async () => {
    const { w, run, deploy } = await startRun(original);
    await deploy(inserted({ added: true }));
    expect(await run.status()).toBe("completed");
    expect(effects).toEqual(["bill", "check", "ship"]);
    expect(await logOf(run)).toContain("call.added check");
    const fresh = await w.pawl.start(shopWorkflow(inserted({ added: true })));
    await deploy(inserted({ added: true }));
    expect(await fresh.status()).toBe("completed");
    expect(await logOf(fresh)).not.toContain("call.added check");
  });

  test("may be a wait, a child, a map or a branch, and the code after it finds its records", async () => {
    const child = workflow("child", (ctx, n: number) => ctx.step("work", () => n * 2));
    const changed: Handler = async (ctx) => {
      await ctx.sleep("cool", "1 day", { added: true });
      const signal = await ctx.waitForSignal("late", { timeout: "1 day", added: true });
      const one = await ctx.run(child, 1, { added: true });
      const many = await ctx.map(child, [1, 2], { name: "many", added: true });
      const way = await ctx.branch("way", () => "left" as const, { left: () => "left" }, { added: true });
      await original(ctx);
      return [signal, one, [...many], way];
    };
    const w = await world();
    const old = await w.worker([shopWorkflow(original), child]);
    const run = await w.pawl.start(shopWorkflow(original));
    await old.settle();
    await old.worker.stop();
    const next = await w.worker([shopWorkflow(changed), child]);
    for (let due = await next.settle(); due !== null; due = await next.settle()) w.clock.moveTo(due);
    expect(await run.result()).toEqual([null, 2, [2, 4], "left"]);
    expect(effects).toEqual(["bill", "ship"]);
  });

  test("does not swap the results of parallel branches", async () => {
    const opened = gate();
    const loops =
      (added: boolean): Handler =>
      async (ctx) => {
        const results: string[] = [];
        await Promise.all(
          ["x", "y"].map(async (branch) => {
            // The later branch completes the new step first.
            const work = () => (branch === "x" ? opened.opened : opened.open());
            if (added) await ctx.step("new", work, { added: true });
            results.push(`${branch}:${await ctx.step("item", () => branch)}`);
            results.push(`${branch}:${await ctx.step("more", () => branch)}`);
          }),
        );
        await ctx.sleep("nap", "1h");
        return results.toSorted();
      };
    const { run, deploy } = await startRun(loops(false));
    await deploy(loops(true));
    expect(await run.result()).toEqual(["x:x", "x:x", "y:y", "y:y"]);
  });
});

describe("a step that was removed", () => {
  const without: Handler = async (ctx) => {
    await ctx.sleep("nap", "1h");
    await effect(ctx, "ship");
  };

  test("pauses the run before any later step runs, and its removal can be accepted", async () => {
    const { run, deploy } = await startRun(original);
    await deploy(without);
    expect(effects).toEqual(["bill"]);
    expect(await reasonOf(run)).toContain('if "bill" was removed on purpose, resume({ accept: ["bill"] })');
    await run.resume({ accept: ["bill"] });
    await deploy(without);
    expect(await run.status()).toBe("completed");
    expect(effects).toEqual(["bill", "ship"]);
  });

  test("is matched again when the original code is deployed again", async () => {
    const { run, deploy } = await startRun(original);
    await deploy(without);
    await run.resume();
    await deploy(original);
    expect(await run.status()).toBe("completed");
    expect(effects).toEqual(["bill", "ship"]);
  });
});

test("a step whose name differs on every replay does not run repeatedly; with a fixed name, resume({ renamed }) helps", async () => {
  let count = 0;
  const random: Handler = async (ctx) => {
    await effect(ctx, `bill ${(count += 1)}`);
    await ctx.sleep("nap", "1h");
    await effect(ctx, "ship");
  };
  const { run, deploy } = await startRun(random);
  for (let month = 0; month < 3; month += 1) {
    await deploy(random);
    expect(await reasonOf(run)).toContain("differs on every replay");
    await run.resume({ accept: ["bill 2"] });
  }
  expect(effects).toEqual(["bill 1"]);
  await deploy(random);
  await run.resume({ renamed: { "bill 1": "charge" } });
  await deploy(renamed);
  expect(await run.status()).toBe("completed");
  expect(effects).toEqual(["bill 1", "ship"]);
});

describe("code that ends before it has replayed the log", () => {
  const compensated: string[] = [];
  const booked: Handler = async (ctx) => {
    await ctx.step("book", () => void effects.push("book"), { compensate: () => void compensated.push("book") });
    await ctx.sleep("nap", "1h");
    await effect(ctx, "ship");
  };
  const endings: Record<string, Handler> = {
    throws: async () => {
      throw new Error("a slip of the pen");
    },
    returns: async () => "done",
    finishes: async (ctx) => ctx.finish("done"),
    cancels: async (ctx) => ctx.cancel("done"),
    skips: async (ctx) => ctx.skip(),
    pauses: async (ctx) => {
      ctx.pause("mine");
    },
  };

  for (const [how, handler] of Object.entries(endings))
    test(`because it ${how} neither ends the run nor compensates anything`, async () => {
      compensated.length = 0;
      const { run, deploy } = await startRun(booked);
      await deploy(handler);
      const reason = await reasonOf(run);
      expect(reason).toContain('"book"');
      if (how === "throws") expect(reason).toContain("a slip of the pen");
      expect(compensated).toEqual([]);
      await run.resume();
      await deploy(booked);
      expect(await run.status()).toBe("completed");
      expect(effects).toEqual(["book", "ship"]);
    });

  test("with a TransientError is retried", async () => {
    let attempts = 0;
    const { run, deploy } = await startRun(booked);
    await deploy(async (ctx) => {
      attempts += 1;
      if (attempts === 1) throw new TransientError("not yet", { retryAfter: "1 minute" });
      await booked(ctx);
    });
    expect(await run.status()).toBe("completed");
  });

  test("in a run that is being canceled does not prevent the compensation", async () => {
    compensated.length = 0;
    const { run, deploy } = await startRun(booked);
    await run.cancel("changed my mind");
    await deploy(async (ctx) => {
      await ctx.step("book", () => {}, { compensate: () => void compensated.push("book") });
    });
    expect(await run.status()).toBe("canceled");
    expect(compensated).toEqual(["book"]);
  });
});

describe("ctx.patched", () => {
  test("may be removed from the code", async () => {
    const patched: Handler = async (ctx) => {
      if (ctx.patched("p")) await effect(ctx, "new");
      await ctx.sleep("nap", "1h");
      await effect(ctx, "ship");
    };
    const { run, deploy } = await startRun(patched);
    await deploy(async (ctx) => {
      await effect(ctx, "new");
      await ctx.sleep("nap", "1h");
      const q = ctx.patched("q");
      await effect(ctx, "ship");
      return q;
    });
    expect(await run.result()).toBe(true);
    expect(effects).toEqual(["new", "ship"]);
  });

  test("returns the same answer for the whole turn", async () => {
    const answers: boolean[][] = [];
    const { run, deploy } = await startRun(original);
    await deploy(async (ctx) => {
      const seen = [ctx.patched("p")];
      await effect(ctx, "bill");
      await ctx.sleep("nap", "1h");
      seen.push(ctx.patched("p"));
      await effect(ctx, "ship");
      seen.push(ctx.patched("p"));
      answers.push(seen);
    });
    expect(await run.status()).toBe("completed");
    expect(answers.at(-1)).toEqual([false, false, false]);
  });
});

test("a recorded call continues although other recorded calls are missing: a retry that is due is not blocked", async () => {
  let attempts = 0;
  const flaky =
    (name: string): Handler =>
    async (ctx) => {
      const retried = ctx.step("flaky", () => {
        attempts += 1;
        if (attempts < 2) throw new Error("again");
        effects.push("flaky");
      });
      await effect(ctx, name);
      await retried;
    };
  const { run, deploy } = await startRun(flaky("bill"));
  await deploy(flaky("charge"));
  expect(effects).toEqual(["bill", "flaky"]);
  await reasonOf(run);
});

test("code that awaits other promises between recorded steps has a grace period to reach them", async () => {
  const opened = gate();
  const { run, deploy } = await startRun(async (ctx) => {
    const other = effect(ctx, "other").then(() => ctx.sleep("nap", "1h"));
    await effect(ctx, "bill");
    await other;
  });
  setTimeout(() => opened.open(), 20);
  const next: Handler = async (ctx) => {
    const other = opened.opened.then(() => effect(ctx, "other")).then(() => ctx.sleep("nap", "1h"));
    await effect(ctx, "bill");
    await effect(ctx, "new");
    await other;
  };
  await deploy(next, {}, { replayGrace: "1 hour" });
  expect(await run.status()).toBe("completed");
  expect(effects).toEqual(["other", "bill", "new"]);
});

test("skip() and resume({ output }) of a run whose code does not match its log say which command is needed", async () => {
  const { run, deploy } = await startRun(original);
  await deploy(renamed);
  for (const attempt of [run.skip(), run.resume({ output: 1 })])
    expect((await errorOf(attempt)).message).toMatch(/resume\(\{ accept, renamed \}\).*force: true/);
  await run.cancel("enough", { force: true });
  expect(await run.status()).toBe("canceled");
});

test("a worker that stops while new calls are withheld leaves the run unchanged", async () => {
  const w = await world();
  const old = await w.worker([shopWorkflow(original)]);
  const run = await w.pawl.start(shopWorkflow(original));
  await old.settle();
  await old.worker.stop();
  await run.signal("wake"); // The code does not wait for this signal, but it wakes the run.
  w.clock.moveTo(w.clock.read() + 3_600_000);
  const next = await w.worker([shopWorkflow(renamed)], { replayGrace: "1 hour" });
  const settled = next.settle();
  await until(async () => (await run.status()) === "running");
  await next.worker.stop();
  await settled;
  expect(await run.status()).toBe("waiting");
  expect(effects).toEqual(["bill"]);
});

test("crashTest detects a step name that differs on every replay, and reports it", async () => {
  let count = 0;
  const random = workflow("random", async (ctx) => {
    await ctx.step(`charge ${(count += 1)}`, () => 1);
    await ctx.step("last", () => 2);
  });
  const t = await testPawl({ workflows: [random], logger: silent });
  onTestFinished(() => t.close());
  expect((await errorOf(t.crashTest(random, undefined))).message).toMatch(/is paused.*cannot be replayed/s);
});
