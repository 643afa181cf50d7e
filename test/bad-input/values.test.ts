import { isDeepStrictEqual } from "node:util";
import { workflow } from "pawl";
import { describe, expect, onTestFinished, test } from "vitest";
import { type StoreKind, testDatabase } from "../support/databases.js";
import { forMemoryAnd } from "../support/effort.js";
import { start, world } from "../support/virtual-worlds.js";
import { errorOf } from "../support/waiting.js";

const limit = 1_048_576;
const deep = (levels: number): unknown => {
  let value: unknown = "bottom";
  for (let level = 0; level < levels; level += 1) value = [value];
  return value;
};
const cyclic: Record<string, unknown> = {};
cyclic.self = cyclic;

/** Values that are restored unchanged everywhere. */
const good: Record<string, unknown> = {
  "a key called __proto__": JSON.parse('{"__proto__":{"polluted":true},"constructor":{"prototype":1}}'),
  NUL: "a\u0000b",
  "a key with NUL": { "a\u0000b": 1 },
  "a lone surrogate": "\ud800 and \udfff",
  "an emoji": "🐴 👩‍👩‍👧‍👦",
  "-0": -0,
  NaN: Number.NaN,
  infinities: [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY],
  bigint: 2n ** 200n,
  Date: new Date(8.64e15),
  Map: new Map<unknown, unknown>([[{ key: 1 }, new Set([Number.NaN, -0])]]),
  "typed arrays": [new Uint8Array([1, 2, 255]), new Float64Array([-0, Number.NaN])],
  undefined: undefined,
  "undefined inside": { a: undefined, b: [undefined, null] },
  null: null,
  quotes: `'";--\\ \n\r\t \u2028\u2029`,
  "an empty string": "",
  "text that looks encoded": { $: "Date", "@": ["x"], "~": 1 },
  "a big integer": Number.MAX_SAFE_INTEGER,
  "the smallest number": 5e-324,
};

/** Values that are refused without any loss. */
const bad: Record<string, unknown> = {
  "a function": () => {},
  "a symbol": Symbol("s"),
  "a cycle": cyclic,
  "20,000 levels": deep(20_000),
  "a promise": Promise.resolve(1),
  "a WeakMap": new WeakMap(),
  "a function inside": { list: [1, { fn: () => {} }] },
  "too much": "x".repeat(limit + 1),
};
const refused = /SERIALIZATION_ERROR|PAYLOAD_TOO_LARGE/;

const everywhere = workflow("everywhere", async (ctx, value: unknown) => {
  const stepped = await ctx.step("step", () => value);
  const signaled = await ctx.waitForSignal("go");
  await ctx.sleep("replay", "1h");
  return { value, stepped, signaled };
});

async function fresh(kind: StoreKind) {
  const database = await testDatabase(kind);
  onTestFinished(() => database.drop());
  const w = await world(kind, database.url);
  return { w, worker: await w.worker([everywhere]) };
}

forMemoryAnd("sqlite", (kind) => {
  test("every storable value is restored unchanged as input, step output, signal payload and result", async () => {
    const { w, worker } = await fresh(kind);
    for (const [name, value] of Object.entries(good)) {
      const run = await w.pawl.start(everywhere, value);
      await run.signal("go", value);
      for (let due = await worker.settle(); due !== null; due = await worker.settle()) w.clock.moveTo(due);
      const result = (await run.result({ timeout: "100s" })) as Record<string, unknown>;
      for (const place of ["value", "stepped", "signaled"])
        expect(isDeepStrictEqual(result[place], value), `${name} as ${place}`).toBe(true);
      expect(isDeepStrictEqual((await run.get()).input, value), name).toBe(true);
    }
    expect(({} as Record<string, unknown>).polluted).toBeUndefined();
    expect((await w.pawl.verify()).differences).toEqual([]);
  });

  test("a payload of exactly the maximum size is stored everywhere, and one more byte is refused everywhere", async () => {
    const { w, worker } = await fresh(kind);
    const sized = workflow("sized", async (ctx) => {
      const most = await ctx.step("most", () => "x".repeat(limit - 2));
      const problem = await ctx
        .step("more", () => "x".repeat(limit - 1))
        .catch((error: { code: string }) => error.code);
      const signaled = (await ctx.waitForSignal("go")) as string;
      return { most: most.length, problem, signaled: signaled.length };
    });
    const second = await w.worker([sized]);
    const run = await w.pawl.start(sized);
    await run.signal("go", "x".repeat(limit - 2));
    expect(await errorOf(run.signal("go", "x".repeat(limit - 1)))).toMatchObject({ code: "PAYLOAD_TOO_LARGE", limit });
    await second.settle();
    expect(await run.result({ timeout: "100s" })).toEqual({
      most: limit - 2,
      problem: "PAYLOAD_TOO_LARGE",
      signaled: limit - 2,
    });
    const largest = await w.pawl.start(everywhere, "x".repeat(limit - 2));
    expect(await errorOf(w.pawl.start(everywhere, "x".repeat(limit - 1)))).toMatchObject({
      code: "PAYLOAD_TOO_LARGE",
      limit,
    });
    await worker.settle();
    expect(await largest.status()).toBe("waiting");
  });

  test("forty starts with an input of a megabyte each all succeed", async () => {
    const { w } = await fresh(kind);
    const runs = await w.pawl.startMany(
      everywhere,
      Array.from({ length: 40 }, (_, n) => `${n}`.padEnd(1_000_000, "x")),
    );
    expect((await w.pawl.runs({ workflow: everywhere, limit: 100 })).runs).toHaveLength(40);
    const last = await (runs[39] as (typeof runs)[number]).get();
    expect((last.input as string).slice(0, 3)).toBe("39x");
  });

  test("forty runs with an output of a megabyte each are all written by one flush", async () => {
    const { w } = await fresh(kind);
    const big = workflow("big", (ctx, n: number) =>
      ctx.step("big", () => `${n}`.padEnd(1_000_000, "x")).then((text) => text.length),
    );
    const worker = await w.worker([big]);
    const runs = await w.pawl.startMany(
      big,
      Array.from({ length: 40 }, (_, n) => n),
    );
    await worker.settle();
    expect(await Promise.all(runs.map((run) => run.result({ timeout: "100s" })))).toEqual(Array(40).fill(1_000_000));
  });
});

describe("a value that cannot be stored", () => {
  test.each(Object.entries(bad))("%s as input is refused, and no run is started", async (_name, value) => {
    const t = await start(everywhere);
    expect((await errorOf(t.pawl.start(everywhere, value))).code).toMatch(refused);
    expect((await errorOf(t.pawl.startMany(everywhere, [1, value]))).code).toMatch(refused);
    expect((await t.pawl.runs()).runs).toEqual([]);
  });

  test.each(Object.entries(bad))(
    "%s as a step's output fails the step with a clear error, without a retry",
    async (_name, value) => {
      let executed = 0;
      const wf = workflow("bad-output", (ctx) =>
        ctx.step("make", () => {
          executed += 1;
          return { inside: value };
        }),
      );
      const t = await start(wf);
      const run = await t.pawl.start(wf);
      await t.speedrun(run);
      const { cause } = await errorOf(run.result());
      expect(cause.code).toMatch(refused);
      expect(cause.message).toContain('step "make"');
      expect(executed).toBe(1);
    },
  );

  test.each(Object.entries(bad))(
    "%s as a step's recorded input fails the step, not the worker",
    async (_name, value) => {
      const wf = workflow("bad-step-input", (ctx) =>
        ctx.step("make", () => 1, { input: value, retry: { attempts: 1 } }),
      );
      const t = await start(wf);
      const run = await t.pawl.start(wf);
      await t.speedrun(run);
      expect((await errorOf(run.result())).cause.code).toMatch(refused);
    },
  );

  test.each(Object.entries(bad))(
    "%s as a signal's payload is refused with an error for the sender, and the run keeps waiting",
    async (_name, value) => {
      const t = await start(everywhere);
      const run = await t.pawl.start(everywhere, 1);
      await t.settle();
      expect((await errorOf(run.signal("go", value))).code).toMatch(refused);
      await run.signal("go", "good");
      await t.speedrun(run);
      expect(((await run.result()) as Record<string, unknown>).signaled).toBe("good");
    },
  );

  test.each(Object.entries(bad))("%s as the workflow's output fails the run", async (_name, value) => {
    const wf = workflow("bad-result", async () => ({ value }));
    const t = await start(wf);
    const run = await t.pawl.start(wf);
    await t.speedrun(run);
    expect((await errorOf(run.result())).cause.code).toMatch(refused);
  });

  test.each(Object.entries(bad))(
    "%s as a child's input throws in the parent, and no child is started",
    async (_name, value) => {
      const child = workflow("child", async (_ctx, _value: unknown) => 1);
      const parent = workflow("parent", (ctx) => ctx.run(child, value).catch((error: { code: string }) => error.code));
      const t = await start(parent, child);
      const run = await t.pawl.start(parent);
      await t.speedrun(run);
      expect(await run.result()).toMatch(refused);
      expect((await t.pawl.runs({ workflow: child })).runs).toEqual([]);
    },
  );

  test.each(Object.entries(bad))(
    "%s given to resume({ output }) is refused, and the run stays paused",
    async (_name, value) => {
      const { PauseError } = await import("pawl");
      const wf = workflow("paused", (ctx) =>
        ctx.step("ask", () => {
          throw new PauseError("ask");
        }),
      );
      const t = await start(wf);
      const run = await t.pawl.start(wf);
      await t.settle();
      expect((await errorOf(run.resume({ output: value }))).code).toMatch(refused);
      expect(await run.status()).toBe("paused");
    },
  );

  test.each(Object.entries(bad))("%s given to ctx.finish fails the run", async (_name, value) => {
    const wf = workflow("bad-finish", async (ctx) => ctx.finish({ value }));
    const t = await start(wf);
    const run = await t.pawl.start(wf);
    await t.speedrun(run);
    expect((await errorOf(run.result())).cause.code).toMatch(refused);
  });
});

describe("a thrown value", () => {
  const thrown: Record<string, unknown> = {
    "a string": "boom",
    null: null,
    undefined: undefined,
    "a number": 42,
    "an object": { code: "E1", message: "boom" },
    "a function": () => {},
    "a symbol": Symbol("boom"),
    "a cyclic error": Object.assign(new Error("boom"), { self: cyclic }),
    "an error that is its own cause": (() => {
      const error = new Error("boom");
      error.cause = error;
      return error;
    })(),
    "an error with a huge message": new Error("x".repeat(3_000_000)),
    "an error with NUL and surrogates": new Error("a\u0000b\ud800"),
    "an error whose message throws": Object.defineProperty(new Error("x"), "message", {
      get: () => {
        throw new Error("in the getter");
      },
    }),
    "an AggregateError": new AggregateError([new Error("one"), "two"], "both"),
    "a revoked proxy": (() => {
      const { proxy, revoke } = Proxy.revocable({}, {});
      revoke();
      return proxy;
    })(),
    "a frozen object without prototype": Object.freeze(Object.create(null)),
  };

  test.each(Object.entries(thrown))(
    "%s in a step fails the step and the run, with a readable error",
    async (_name, value) => {
      const wf = workflow("throwing", (ctx) =>
        ctx.step(
          "throw",
          () => {
            throw value;
          },
          { retry: { attempts: 2 } },
        ),
      );
      const t = await start(wf);
      const run = await t.pawl.start(wf);
      await t.speedrun(run);
      expect(await run.status()).toBe("failed");
      expect((await run.get()).error).toBeInstanceOf(Error);
      expect(await errorOf(run.result())).toMatchObject({ code: "RUN_FAILED" });
      expect(await run.executions()).toHaveLength(2);
      expect((await t.pawl.verify()).differences).toEqual([]);
    },
  );

  test.each(Object.entries(thrown))(
    "%s in the handler fails the run, with and without onFailure",
    async (_name, value) => {
      let told: unknown = null;
      const handler = () => {
        throw value;
      };
      const wf = workflow("throwing", async () => handler());
      const sync = workflow("throwing-sync", handler as never);
      const told1 = workflow("throwing-told", { onFailure: ({ error }) => void (told = error) }, async () => handler());
      const t = await start(wf, sync, told1);
      for (const definition of [wf, sync, told1]) {
        const run = await t.pawl.start(definition as typeof wf);
        await t.speedrun(run);
        expect(await run.status()).toBe("failed");
        expect(await errorOf(run.result())).toMatchObject({ code: "RUN_FAILED" });
      }
      expect(told).toBeInstanceOf(Error);
    },
  );
});
