/** Hostile input for workflow classes: invalid values, unusual programs, and bursts of concurrent commands. */
import { discoverWorkflows, type RunHandle, type StepIterator, Workflow, type WorkflowClass, workflow } from "pawl";
import { describe, expect, test } from "vitest";
import { forMemoryAnd } from "../support/effort.js";
import { attemptsOf, expectSound } from "../support/run-checks.js";
import { databaseFor, start, type World, world } from "../support/virtual-worlds.js";
import { errorOf, gate } from "../support/waiting.js";

/** Calls the static methods of a class with values that its types forbid, as plain JavaScript code can. */
type Declare = (type: any) => void;

function classWith(say: Declare, name = "Said") {
  return class extends Workflow {
    static {
      this.options({ name });
      say(this);
    }
  };
}

const registerClass = (type: WorkflowClass) => discoverWorkflows({ type })[0];
const invalid = { code: "INVALID_INPUT" };
const isInvalid = expect.objectContaining(invalid);
const someSymbol = Symbol("s");
const invalidDurations = [
  Number.NaN,
  -1,
  Number.POSITIVE_INFINITY,
  "",
  "soon",
  "-5 days",
  "1 fortnight",
  null,
  [],
  {},
  true,
];
const invalidNames = [
  5,
  null,
  "",
  " a",
  "a ",
  "x".repeat(201),
  "🐴".repeat(51),
  "a\u0000b",
  "\ud800",
  {},
  ["a"],
  someSymbol,
];
const invalidCounts = [Number.NaN, -1, 1.5, "5", null, {}, 5n];
const nonFunctions = [5, "f", {}, null, true];
const nonObjects = [null, 5, "x", [], true, someSymbol];

describe("an invalid class definition is refused immediately", () => {
  const classOptions: Record<string, readonly unknown[]> = {
    name: invalidNames,
    queue: invalidNames,
    version: invalidNames,
    timeout: invalidDurations,
    priority: [Number.NaN, 1.5, Number.POSITIVE_INFINITY, "1", null, 5n],
    input: [5, {}, null, () => {}],
    output: [5, {}, null, "zod"],
    mayProceedWithoutHero: [1, "yes", null],
    allowMultiple: [0, "no", null],
    onError: nonFunctions,
    onFailure: nonFunctions,
    onException: ["explode", 5, null, true, [null], ["pause", "explode"], {}, { action: "explode" }],
    maxReattempts: invalidCounts,
    terminalAction: ["reattempt", "explode", 5, null],
    wait: ["1h"],
    nothing: [1],
  };
  const stepOptions: Record<string, readonly unknown[]> = {
    wait: invalidDurations,
    timeout: invalidDurations,
    skipIf: [5, null, {}, []],
    if: [5, null, {}, []],
    beforeStep: invalidNames,
    afterStep: invalidNames,
    onCrash: ["ignore", 5, null],
    queue: invalidNames,
    priority: [Number.NaN, 1.5, "1", null],
    onException: [
      "explode",
      { action: "skip", when: "always" },
      { action: "reattempt", wait: Number.NaN },
      { action: "reattempt", terminalAction: "reattempt" },
      { action: "skip", on: "RangeError" },
      { action: "skip", on: [RangeError, 5] },
    ],
    maxReattempts: invalidCounts,
    retry: [{ attempts: 0 }, { initial: "soon" }, { factor: 0 }, { jitter: 2 }, { nothing: 1 }],
    maxIterations: [5],
    allowMultiple: [true],
  };
  const resumableOptions: Record<string, readonly unknown[]> = {
    maxRuntime: invalidDurations,
    maxIterations: [0, ...invalidCounts],
    checkpoint: ["never", true, null],
  };
  const each = (options: Record<string, readonly unknown[]>) =>
    Object.entries(options).flatMap(([name, values]) => values.map((value) => [name, value] as const));

  test.each(each(classOptions))("the option %s of a class cannot be %o", (name, value) => {
    expect(() => classWith((type) => type.options({ [name]: value }))).toThrow(isInvalid);
  });

  test.each(each(stepOptions))("the option %s of a step cannot be %o", (name, value) => {
    expect(() => classWith((type) => type.step("a", { [name]: value }, () => {}))).toThrow(isInvalid);
  });

  test.each(each(resumableOptions))("the option %s of a resumable step cannot be %o", (name, value) => {
    expect(() => classWith((type) => type.resumableStep("a", { [name]: value }, () => {}))).toThrow(isInvalid);
  });

  const calls: Record<string, Declare[]> = {
    options: nonObjects.map((value) => (type) => type.options(value)),
    "a step's options": nonObjects.map((value) => (type) => type.step("a", value, () => {})),
    "a step's name": [...invalidNames, "a/b", "a#2"].map((value) => (type) => type.step(value, {}, () => {})),
    "a step's function": nonFunctions.map((value) => (type) => type.step("a", {}, value)),
    "a step's parts": [
      (type) => type.step(),
      (type) => type.step({ wait: 1 }),
      (type) => type.step("a", () => {}, {}),
      (type) => type.step("a", {}, () => {}, 1),
      (type) => type.step(() => {}, "a"),
    ],
    "a function's name": [(type) => type.step(Object.defineProperty(() => {}, "name", { value: "a/b" }))],
    cancelIf: [5, null, {}, undefined].map((value) => (type) => type.cancelIf("ready", value)),
    removedSteps: ["a", undefined, 5, [5], [""]].map((value) => (type) => type.removedSteps(value)),
  };

  test.each(Object.entries(calls))(
    "an invalid value for %s is refused and leaves the class unchanged",
    (_what, says) => {
      for (const say of says) {
        const type = classWith((one) => one.step("first", () => {}));
        expect(() => say(type)).toThrow(isInvalid);
        // If a part of the refused call had been kept, the class would now have two steps named "a", or a condition
        // without a method.
        type.step("a", () => {});
        expect(registerClass(type)?.name).toBe("Said");
      }
    },
  );

  test.each<[string, Declare, RegExp]>([
    ["a name twice", (t) => ["a", "b", "a"].map((name) => t.step(name, () => {})), /two steps called "a"/],
    ["the name that a nameless step has", (t) => [t.step("step_2", () => {}), t.step(() => {})], /"step_2"/],
    ["a step beside itself", (t) => t.step("a", { afterStep: "a" }, () => {}), /cycle/],
    [
      "steps beside each other in a circle",
      (t) => {
        t.step("x", () => {});
        t.step("a", { afterStep: "c" }, () => {});
        t.step("b", { beforeStep: "a" }, () => {});
        t.step("c", { afterStep: "b" }, () => {});
      },
      /"a", "b", "c".*cycle/,
    ],
    [
      "both sides at once",
      (t) => [t.step("x", () => {}), t.step("a", { beforeStep: "x", afterStep: "x" }, () => {})],
      /both/,
    ],
    ["a loader that is none", (t) => (t.loadHero = 5), /loadHero/],
    ["a type of hero that is no name", (t) => (t.heroType = 5), /hero type/],
  ])("%s is refused when the class is first used", (_what, say, message) => {
    const type = classWith(say);
    expect(() => registerClass(type)).toThrow(
      expect.objectContaining({ code: "INVALID_INPUT", message: expect.stringMatching(message) }),
    );
  });
});

describe("a class", () => {
  test("that does not extend Workflow, has no name or is Workflow itself is refused everywhere", async () => {
    const t = await start();
    const begin = (type: any) => t.pawl.start(type, undefined);
    for (const type of [
      Workflow,
      class Stranger {},
      class extends Workflow {},
      Object.create(Workflow),
      null,
      {},
      5,
    ] as any[]) {
      expect(await errorOf(begin(type))).toMatchObject(invalid);
      expect(() => t.pawl.worker({ workflows: [type] })).toThrow(isInvalid);
      expect(await errorOf(t.pawl.runs({ workflow: type === null || type === 5 ? {} : type }))).toMatchObject(invalid);
    }
  });

  test("cannot share its name with another class or workflow in the same worker", async () => {
    const t = await start();
    const one = classWith((type) => type.step("a", () => {}), "Alike");
    const other = classWith((type) => type.step("b", () => {}), "Alike");
    expect(() => t.pawl.worker({ workflows: [one, other] })).toThrow(/"Alike"/);
    expect(() => t.pawl.worker({ workflows: [one, workflow("Alike", async () => 1)] })).toThrow(/"Alike"/);
    expect(() => t.pawl.worker({ workflows: [one, one] })).not.toThrow();
  });

  test("cannot be changed after its first use, nor can its parents; its sibling classes still can", () => {
    class Parent extends Workflow {}
    class Child extends Parent {}
    class Sibling extends Parent {}
    registerClass(Child);
    for (const say of [
      () => Child.step("late", () => {}),
      () => Child.resumableStep("late", () => {}),
      () => Child.options({ priority: 1 }),
      () => Child.cancelIf(true),
      () => Child.removedSteps(["a"]),
      () => Parent.step("late", () => {}),
    ])
      expect(say).toThrow(/already in use/);
    Sibling.step("late", () => {});
    expect(registerClass(Sibling)?.name).toBe("Sibling");
  });

  test("cannot be used before its definition is complete", () => {
    expect(
      () =>
        class Hasty extends Workflow {
          static {
            this.step("a", () => {});
            registerClass(this);
            this.step("b", () => {});
          }
        },
    ).toThrow(/already in use/);
  });

  test("whose constructor throws pauses the run, and the run completes after the constructor is fixed", async () => {
    let broken = false;
    class Sometimes extends Workflow {
      static {
        this.step("a", () => {});
      }
      constructor() {
        super();
        if (broken) throw new Error("not today");
      }
    }
    const t = await start(Sometimes);
    broken = true;
    const run = await t.pawl.start(Sometimes);
    await t.settle();
    expect((await run.get()).pauseReason).toContain("not today");
    broken = false;
    await run.resume();
    await t.speedrun(run);
    expect(await attemptsOf(run)).toEqual(["a 1 failed paused_by_exception", "a 2 completed success"]);
  });

  test("may have a method and a step called `then`; its instances are not treated as promises", async () => {
    class Thenable extends Workflow {
      static {
        this.step("then");
        this.step("self", (w) => w);
      }
      // biome-ignore lint/suspicious/noThenProperty: that is what is tried
      then(resolve?: unknown) {
        if (typeof resolve === "function") resolve("awaited by mistake");
        return "done";
      }
    }
    const t = await start(Thenable);
    const run = await t.pawl.start(Thenable);
    await t.speedrun(run);
    expect(await attemptsOf(run)).toEqual(["then 1 completed success", "self 1 completed success"]);
  });

  test("without steps completes immediately", async () => {
    class Empty extends Workflow {}
    const t = await start(Empty);
    const run = await t.pawl.start(Empty);
    await t.settle();
    expect(await run.status()).toBe("completed");
  });
});

forMemoryAnd("postgres", (kind) => {
  const database = databaseFor(kind);
  const longest = "x".repeat(200);
  const odd = [
    "constructor",
    "__proto__",
    "toString",
    "then",
    "🐴".repeat(50),
    longest,
    "%_",
    "'\"`\\",
    "é",
    "e\u0301",
    "a",
    "A",
  ];

  test("unusual names and names of maximum length are accepted for classes, queues, heroes, steps and calls inside steps", async () => {
    const w = await database.world();
    class Kid extends Workflow<unknown, number, number> {
      static {
        this.options({ name: longest });
        this.step(longest, (k) => k.finish(k.input * 2));
      }
    }
    const done: unknown[] = [];
    const type = classWith((one) => {
      one.options({ queue: longest });
      for (const name of odd) {
        one.resumableStep(name, { wait: "1h", queue: name }, async (w: Workflow, iter: StepIterator) => {
          const inner = await w.step(name, () => name);
          await w.sleep(longest, "1h");
          const signal = await w.waitForSignal(name, { timeout: "1h" });
          const child = await w.run(Kid, 4, { name: longest });
          await iter.over([1, 2], () => w.step("item", () => name));
          done.push([inner, signal, child]);
        });
      }
    }, "L".repeat(200));
    const worker = await w.worker([type, Kid]);
    const run = await w.pawl.start(type, undefined, { hero: { type: longest, id: longest } });
    await runToEnd(w, worker, run);
    expect(done).toEqual(odd.map((name) => [name, null, 8]));
    expect(new Set((await run.executions()).map(({ id }) => id)).size).toBe(odd.length * 4);
    await expectSound(w);
  });

  test("every serializable cursor is restored unchanged; setting one that is not serializable keeps the previous cursor", async () => {
    const w = await database.world();
    const good: unknown[] = [
      0,
      -0,
      Number.NaN,
      Number.NEGATIVE_INFINITY,
      2n ** 100n,
      "",
      "a\u0000b\ud800",
      false,
      new Date(8.64e15),
      new Map([[{ key: 1 }, new Set([1n])]]),
      [["users", 5], [[["deep"]]], new Date(0), undefined],
      JSON.parse('{"__proto__":1,"constructor":2}'),
      new Uint8Array([0, 255]),
      "x".repeat(128 * 1024 - 2),
    ];
    const cycle: unknown[] = [];
    cycle.push(cycle);
    const bad: unknown[] = [
      () => {},
      someSymbol,
      cycle,
      Promise.resolve(1),
      [new WeakMap()],
      "x".repeat(128 * 1024 - 1),
    ];
    const back: unknown[] = [];
    const codes: string[] = [];
    class Cursors extends Workflow<unknown, number> {
      static {
        this.resumableStep("s", { maxIterations: 1 }, async (c, iter) => {
          if (iter.resumed) return void back.push(iter.cursor);
          for (const value of bad) {
            await iter.set(value).catch((error) => codes.push(error.code));
            expect(iter.cursor).toBe(null);
          }
          const skip = () => iter.skipTo(bad[0]);
          expect(skip).toThrow(expect.objectContaining({ code: "SERIALIZATION_ERROR" }));
          await iter.set(good[c.input]);
        });
      }
    }
    const worker = await w.worker([Cursors]);
    for (const [index, value] of good.entries()) {
      const run = await w.pawl.start(Cursors, index);
      await runToEnd(w, worker, run);
      expect(await attemptsOf(run), String(index)).toEqual(["s 1 completed continued", "s 2 completed success"]);
      expect(back.at(-1)).toEqual(value);
    }
    expect(codes.slice(-bad.length)).toEqual([...Array(5).fill("SERIALIZATION_ERROR"), "CURSOR_TOO_LARGE"]);
    await expectSound(w);
  });

  test("a burst of random commands and signals leaves every run in a consistent state", async () => {
    const w = await database.world();
    const Stormy = everyStepKind(kind);
    const worker = await w.worker([Stormy]);
    for (let seed = 1; seed <= (kind === "memory" ? 40 : 4); seed += 1) {
      const run = await w.pawl.start(Stormy);
      const accepted = await sendRandomCommands(w, worker, run, seed);
      expect(accepted, `seed ${seed}`).toBeGreaterThan(0);
      const { status, currentExecution } = await run.get();
      expect(status, `seed ${seed}`).toMatch(/completed|canceled/);
      expect(currentExecution).toBe(null);
      for (const one of await run.executions()) {
        expect(one.finishedAt, `seed ${seed}: ${one.id}`).toBeInstanceOf(Date);
        expect(one.outcome).not.toBe(null);
      }
    }
    await expectSound(w);
  });
});

/** Advances the clock until no run has anything due. */
async function runToEnd(
  w: World,
  worker: { settle(): Promise<number | null> },
  run: RunHandle<any, any>,
): Promise<void> {
  for (let due = await worker.settle(); due !== null; due = await worker.settle()) w.clock.moveTo(due);
  expect((await run.get()).finishedAt, JSON.stringify(await run.get())).not.toBe(null);
}

/**
 * Has a step in every state that a command can meet: scheduled, sleeping, waiting, interrupted, failing and
 * reattempted.
 */
function everyStepKind(kind: string) {
  return class extends Workflow {
    static {
      this.options({ name: `Stormy ${kind}` });
      this.step("scheduled", { wait: "1h" }, () => {});
      this.step("resting", async (w) => {
        await w.sleep("nap", "1h");
        await w.step("inner", () => 1);
      });
      this.step("waiting", (w) => w.waitForSignal("go", { timeout: "1 day" }));
      this.resumableStep("looping", { maxIterations: 2 }, (_w, iter) => iter.over([1, 2, 3, 4, 5], () => {}));
      this.step("failing", (w) => {
        if (w.attempt < 3) throw new Error("not yet");
      });
      this.step("last", { wait: "1h", onException: "reattempt" }, (w) => {
        if (w.attempt < 2) throw new Error("not yet");
      });
    }
  };
}

function seeded(seed: number): () => number {
  let state = seed * 7919;
  return () => (state = (state * 1_664_525 + 1_013_904_223) % 4_294_967_296) / 4_294_967_296;
}

/**
 * Sends random commands, several at a time, while the run makes progress, then lets it end. Returns how many commands
 * were accepted.
 */
async function sendRandomCommands(
  w: World,
  worker: { settle(): Promise<number | null> },
  run: RunHandle<any, any>,
  seed: number,
): Promise<number> {
  const random = seeded(seed);
  const steps = ["scheduled", "resting", "waiting", "looping", "failing", "last"];
  const commands = [
    () => run.pause("storm"),
    () => run.resume(),
    () => run.resume({ output: 5 }),
    () => run.skip(),
    () => run.signal("go", seed),
    () => run.signal("go", seed, { key: "once" }),
    () => run.resumeAt(steps[Math.floor(random() * steps.length)] as string),
    () => (random() < 0.05 ? run.cancel("storm") : run.pause("again")),
  ];
  let accepted = 0;
  for (let gust = 0; ; gust += 1) {
    const going = worker.settle();
    const some = Array.from({ length: gust < 30 ? Math.floor(random() * 6) : 0 }, async () => {
      if (random() < 0.5) await new Promise((resolve) => setImmediate(resolve));
      await (commands[Math.floor(random() * commands.length)] as () => Promise<void>)();
    });
    for (const answer of await Promise.allSettled(some)) {
      if (answer.status === "fulfilled") accepted += 1;
      else expect(answer.reason).toMatchObject({ code: "INVALID_STATE" });
    }
    await going;
    const due = await worker.settle();
    const { finishedAt, status } = await run.get();
    if (finishedAt !== null) return accepted;
    expect(status).not.toBe("running");
    if (due !== null) w.clock.moveTo(due);
    // No more commands are sent from here on, so a run that is not paused must be waiting for something.
    else if (status === "paused") await run.resume().catch((error) => expect(error.code).toBe("INVALID_STATE"));
    else if (gust > 30) throw new Error(`seed ${seed}: the run is ${status} and waits for nothing`);
  }
}

describe("values that a step throws", () => {
  const revoked = () => {
    const { proxy, revoke } = Proxy.revocable({}, {});
    revoke();
    return proxy;
  };
  const throwing = () => {
    throw new Error("in the getter");
  };
  const thrown: Record<string, unknown> = {
    undefined: undefined,
    null: null,
    "0": 0,
    "a string": "boom",
    "a function": () => {},
    "a symbol": someSymbol,
    "a revoked proxy": revoked(),
    "something like flow control": { action: { kind: "cancel", reason: null }, isHandled: false },
    "an error whose message throws": Object.defineProperty(new Error("x"), "message", { get: throwing }),
    "a frozen object without prototype": Object.freeze(Object.create(null)),
    "an error of a megabyte": new Error("x".repeat(1_000_000)),
  };

  test.each(Object.entries(thrown))(
    "%s pauses the run with a reason, and the run continues when it is resumed",
    async (_name, value) => {
      let repaired = false;
      const told: unknown[] = [];
      class Throwing extends Workflow {
        static {
          this.options({ onError: (error) => void told.push(error) });
          this.step("s", () => {
            if (!repaired) throw value;
          });
        }
      }
      const t = await start(Throwing);
      const run = await t.pawl.start(Throwing);
      await t.settle();
      expect(await run.get()).toMatchObject({
        status: "paused",
        pauseReason: expect.stringMatching(/^Step "s" failed: /),
      });
      expect((await run.executions())[0]?.error).toBeInstanceOf(Error);
      expect(told).toHaveLength(1);
      repaired = true;
      await run.resume();
      await t.speedrun(run);
      expect(await attemptsOf(run)).toEqual(["s 1 failed paused_by_exception", "s 2 completed success"]);
      await expectSound(t);
    },
  );

  test.each(Object.entries(thrown))("%s is handled by the onException rules", async (_name, value) => {
    class Ruled extends Workflow {
      static {
        this.step(
          "s",
          {
            onException: [
              { on: [RangeError, TypeError], action: "skip" },
              { on: (error) => error === value, action: "cancel" },
              "skip",
            ],
          },
          () => {
            throw value;
          },
        );
      }
    }
    const t = await start(Ruled);
    const run = await t.pawl.start(Ruled);
    await t.speedrun(run);
    expect(await run.status()).toMatch(/canceled|completed/);
    await expectSound(t);
  });

  test.each<[string, unknown]>([
    ["a function", () => {}],
    ["a generator, whose code would never run", (function* () {})()],
    ["a promise inside", { later: Promise.resolve(1) }],
    ["something that cannot be read", new Proxy({}, { get: throwing })],
    ["too much", "x".repeat(1_048_577)],
  ])("%s as the output of a step pauses the run without another attempt", async (_name, value) => {
    class Returning extends Workflow {
      static {
        this.step("s", { onException: "reattempt", maxReattempts: 1, retry: { initial: 0 } }, () => value);
      }
    }
    const t = await start(Returning);
    const run = await t.pawl.start(Returning);
    await errorOf(t.speedrun(run));
    expect(await run.status()).toBe("paused");
    await expectSound(t);
  });

  test.each([() => {}, someSymbol, "x".repeat(1_048_577)])(
    "finish(%o) fails the run with a clear error",
    async (value) => {
      class Finishing extends Workflow<unknown, void, any> {
        static {
          this.step("s", (w) => w.finish(value));
        }
      }
      const t = await start(Finishing);
      const run = await t.pawl.start(Finishing);
      await t.speedrun(run);
      expect((await run.get()).error?.message).toMatch(/Cannot store the output of workflow "Finishing"/);
    },
  );
});

describe("code that never returns", () => {
  const places: Record<string, (hang: () => Promise<never>) => WorkflowClass> = {
    "in a step": (hang) => classWith((type) => type.step("s", hang)),
    "in a condition": (hang) => classWith((type) => type.step("s", { skipIf: hang }, () => {})),
    "in cancelIf": (hang) =>
      classWith((type) => {
        type.cancelIf(hang);
        type.step("s", () => {});
      }),
    "in the loader of heroes": (hang) =>
      classWith((type) => {
        type.loadHero = hang;
        type.step("s", () => {});
      }),
    "in a loop": (hang) =>
      classWith((type) => type.resumableStep("s", (_w: Workflow, iter: StepIterator) => iter.over([1], hang))),
  };
  const hangingAfter = (begun: () => void) => () => {
    begun();
    return new Promise<never>(() => {});
  };

  test.each(Object.entries(places))("%s can be canceled", async (_place, make) => {
    const began = gate();
    const type = make(hangingAfter(() => began.open()));
    const w = await world();
    const worker = await w.worker([type]);
    const run = await w.pawl.start(type, undefined, { hero: { type: "User", id: "1" } });
    const going = worker.settle();
    await began.opened;
    await run.cancel("enough");
    await going;
    expect(await run.get()).toMatchObject({ status: "canceled", error: { message: "enough" } });
    await expectSound(w);
  });

  test.each(Object.entries(places))(
    "%s is abandoned when its worker stops, and the next worker calls it again",
    async (_place, make) => {
      let began = gate();
      const type = make(hangingAfter(() => began.open()));
      const w = await world();
      const first = await w.worker([type], { grace: 0 });
      const run = await w.pawl.start(type, undefined, { hero: { type: "User", id: "1" } });
      void first.settle();
      await began.opened;
      await first.worker.stop();
      expect(await run.status()).not.toBe("running");
      began = gate();
      const second = await w.worker([type], { grace: 0 });
      void second.settle();
      await began.opened;
      expect(await run.status()).toBe("running");
    },
  );
});

describe("heroes", () => {
  const about = { hero: { type: "User", id: "1" } };
  const fail = () => {
    throw new Error("no");
  };

  test.each([
    "42",
    5,
    {},
    { type: "User" },
    { id: "1" },
    { type: "User", id: 42 },
    { type: "User", id: "" },
    { type: 5, id: "1" },
    { type: "User", id: null },
    { type: "User", id: "x".repeat(201) },
  ])("%o is refused as a hero, and no run is started", async (hero) => {
    const t = await start(classWith((type) => type.step("s", () => {})));
    const type = classWith((one) => one.step("s", () => {}));
    expect(await errorOf(t.pawl.start(type, undefined, { hero: hero as never }))).toMatchObject(invalid);
    expect((await t.pawl.runs()).runs).toEqual([]);
  });

  test.each<[string, () => unknown, string]>([
    ["a promise of undefined", async () => undefined, "canceled"],
    ["a promise of null", async () => null, "canceled"],
    ["0, which counts as a hero", () => 0, "completed"],
    ["an empty text, which counts as a hero", async () => "", "completed"],
    ["something that cannot be read", () => new Proxy({}, { get: fail }), "paused"],
    ["an error", fail, "paused"],
    ["a rejection with nothing", () => Promise.reject(), "paused"],
  ])("a hero loader that returns %s", async (_what, load, status) => {
    const seen: unknown[] = [];
    const type = classWith((one) => {
      one.loadHero = load;
      one.step("s", (w: Workflow) => void seen.push(w.hero));
    });
    const t = await start(type);
    const run = await t.pawl.start(type, undefined, about);
    await t.settle();
    expect(await run.status()).toBe(status);
    expect(seen).toHaveLength(status === "completed" ? 1 : 0);
    await expectSound(t);
  });

  test("a run that was paused because its hero loader failed completes after the loader is fixed and the run is resumed", async () => {
    let down = true;
    const type = classWith((one) => {
      one.loadHero = async (id: string) => {
        if (down) throw new Error("the database is down");
        return { id };
      };
      one.step("s", () => {});
    });
    const t = await start(type);
    const run = await t.pawl.start(type, undefined, about);
    await t.settle();
    expect((await run.get()).pauseReason).toContain("the database is down");
    down = false;
    await run.resume();
    await t.speedrun(run);
    expect(await run.status()).toBe("completed");
  });

  test("a hero loader that hangs is ended by the timeout of the step", async () => {
    const type = classWith((one) => {
      one.loadHero = () => new Promise(() => {});
      one.step("s", { timeout: 10, onException: "skip" }, () => {});
    });
    const t = await start(type);
    const run = await t.pawl.start(type, undefined, about);
    await t.settle();
    expect(await attemptsOf(run)).toEqual(["s 1 failed timed_out"]);
    expect(await run.status()).toBe("completed");
  });
});

describe("conditions and hooks", () => {
  const askers: Record<string, (ask: (w: Workflow) => unknown) => Declare> = {
    skipIf: (ask) => (type) => type.step("s", { skipIf: ask }, () => {}),
    if: (ask) => (type) => type.step("s", { if: ask }, () => {}),
    cancelIf: (ask) => (type) => {
      type.cancelIf(ask);
      type.step("s", () => {});
    },
    beforeStepExecution: (ask) => (type) => {
      type.step("s", () => {});
      type.prototype.beforeStepExecution = function () {
        return ask(this);
      };
    },
  };

  test.each(Object.entries(askers))("%s cannot make durable calls, and the error says so", async (_where, say) => {
    const durable: ((w: Workflow) => Promise<unknown>)[] = [
      (w) => w.step("a", () => 1),
      (w) => w.sleep("a", "1h"),
      (w) => w.waitForSignal("a"),
      (w) => w.run("Said", undefined),
      (w) => w.map("Said", [undefined]),
      (w) => w.branch("a", () => "b", { b: () => 1 }),
    ];
    for (const ask of durable) {
      const type = classWith(say(ask));
      const t = await start(type);
      const run = await t.pawl.start(type);
      await t.settle();
      expect((await run.get()).pauseReason).toMatch(/^Step "s" failed: A (condition|hook) cannot wait for/);
      expect(await attemptsOf(run)).toEqual(["s 1 failed paused_by_exception"]);
      await expectSound(t);
    }
  });

  test.each(Object.entries(askers))(
    "a rejection in %s fails the step before its body runs, and the policy of the step decides what follows",
    async (_where, say) => {
      const type = classWith((one) => {
        one.options({ onException: "skip" });
        say(() => Promise.reject())(one);
      });
      const t = await start(type);
      const run = await t.pawl.start(type);
      await t.speedrun(run);
      expect(await attemptsOf(run)).toEqual(["s 1 failed skipped_by_exception"]);
    },
  );

  test("a hook that does not call next() pauses the run with that reason", async () => {
    class Lazy extends Workflow {
      static {
        this.step("s", () => {});
      }
      override async aroundStepExecution() {}
    }
    const t = await start(Lazy);
    const run = await t.pawl.start(Lazy);
    await t.settle();
    expect((await run.get()).pauseReason).toMatch(/did not call next\(\)/);
  });

  test("a hook that modifies its argument affects nothing else", async () => {
    const after: unknown[] = [];
    class Meddling extends Workflow {
      static {
        this.step("s", () => {});
      }
      override beforeStepExecution(execution: any) {
        Object.assign(execution, { step: "other", attempt: 99 });
      }
      override afterStepExecution() {
        after.push(this.attempt);
      }
    }
    const t = await start(Meddling);
    const run = await t.pawl.start(Meddling);
    await t.speedrun(run);
    expect(await attemptsOf(run)).toEqual(["s 1 completed success"]);
    expect(after).toEqual([1]);
  });
});

describe("a workflow instance that is kept after its step", () => {
  test("cannot change a run that has ended, and its durable calls never resolve", async () => {
    let kept: Workflow | null = null;
    class Keeping extends Workflow {
      static {
        this.step("s", (w) => void (kept = w));
      }
    }
    const t = await start(Keeping);
    const run = await t.pawl.start(Keeping);
    await t.settle();
    const before = await run.history();
    const w = kept as unknown as Workflow;
    let cameBack = false;
    const late = [w.step("late", () => 1), w.sleep("late", 0), w.waitForSignal("late"), w.map(Keeping, [undefined])];
    for (const one of late) one.finally(() => (cameBack = true));
    for (const leave of [() => w.cancel(), () => w.pause(), () => w.skip(), () => w.finish(), () => w.suspend()])
      expect(leave).toThrow();
    await t.advance("1h");
    expect(cameBack).toBe(false);
    expect(await run.history()).toEqual(before);
    expect((await t.pawl.runs()).runs).toHaveLength(1);
    await expectSound(t);
  });

  test("cannot affect the next step", async () => {
    let kept: Workflow | null = null;
    class Keeping extends Workflow {
      static {
        this.step("first", (w) => void (kept = w));
        this.step("second", () => {
          expect(() => (kept as unknown as Workflow).cancel("too late")).toThrow();
        });
      }
    }
    const t = await start(Keeping);
    const run = await t.pawl.start(Keeping);
    await t.speedrun(run);
    expect(await attemptsOf(run)).toEqual(["first 1 completed success", "second 1 completed success"]);
  });
});

describe("a resumable step", () => {
  async function ended(body: (iter: StepIterator, w: Workflow) => unknown, options = {}) {
    const type = classWith((one) =>
      one.resumableStep("s", options, (w: Workflow, iter: StepIterator) => body(iter, w)),
    );
    const t = await start(type);
    const run = await t.pawl.start(type);
    const problem = await t.speedrun(run).then(
      () => null,
      (error: Error) => error.message,
    );
    await expectSound(t);
    return { t, run, problem };
  }

  test.each<[string, (iter: StepIterator) => unknown, RegExp]>([
    ["over(null)", (iter) => iter.over(null as never, () => {}), /iterable/],
    ["over(5)", (iter) => iter.over(5 as never, () => {}), /iterable/],
    [
      "over with the cursor of something else",
      (iter) => iter.set("a").then(() => iter.over([1], () => {})),
      /whole number/,
    ],
    ["records without fetch", (iter) => iter.records({ key: "id" } as never, () => {}), /fetch/],
    ["pages of size 0", (iter) => iter.records({ fetch: () => [], key: "id" as never, size: 0 }, () => {}), /size/],
    [
      "pages of size NaN",
      (iter) => iter.batches({ fetch: () => [], key: "id" as never, size: Number.NaN }, () => {}),
      /size/,
    ],
    ["items without their key", (iter) => iter.records({ fetch: () => [{}], key: "id" as never }, () => {}), /"id"/],
    [
      "the same page for ever",
      (iter) => iter.records({ fetch: () => [{ id: 1 }], key: "id" }, () => {}),
      /ends with that item again/,
    ],
    [
      "the same batch for ever",
      (iter) => iter.batches({ fetch: () => [{ id: 1 }], key: "id" }, () => {}),
      /ends with that item again/,
    ],
    ["advance of a text", (iter) => iter.set("a").then(() => iter.advance()), /whole number/],
    ["advance of a fraction", (iter) => iter.advance({ from: 1.5 }), /whole number/],
    ["advance of NaN", (iter) => iter.set(Number.NaN).then(() => iter.advance()), /whole number/],
    ["a negative total", (iter) => iter.total(-1), /whole number/],
    ["half a total", (iter) => iter.total(1.5), /whole number/],
    ["a wait that is none", (iter) => iter.skipTo(1, { wait: "soon" }), /wait of skipTo/],
    ["a negative wait", (iter) => iter.skipTo(1, { wait: -1 }), /wait of skipTo/],
  ])("that does %s is paused with a clear error", async (_what, body, message) => {
    const { run, problem } = await ended(body);
    expect(problem).toMatch(message);
    expect(await attemptsOf(run)).toEqual(["s 1 failed paused_by_exception"]);
  });

  test("ends when its collection shrinks between executions, and also visits items that are added while it runs", async () => {
    const seen: number[] = [];
    await ended((iter) => iter.over(iter.resumed ? [1] : [1, 2, 3, 4], (n) => seen.push(n)), { maxIterations: 2 });
    expect(seen).toEqual([1, 2]);
    const growing = [1];
    const { run } = await ended((iter) => iter.over(growing, (n) => n < 5 && growing.push(n + 1)));
    expect(growing).toEqual([1, 2, 3, 4, 5]);
    expect(await run.status()).toBe("completed");
  });

  test("that sets its cursor many times concurrently, awaited or not, ends at the last value", async () => {
    for (const checkpoint of ["awaited", "relaxed"]) {
      const { run } = await ended(
        async (iter) => {
          for (let n = 1; n <= 50; n += 1) void iter.set(n);
          await Promise.all([iter.set(51), iter.set(52)]);
        },
        { checkpoint, maxIterations: 100 },
      );
      expect(await attemptsOf(run)).toEqual(["s 1 completed success"]);
    }
    const { run } = await ended(
      async (iter) => {
        if (iter.cursor === 3) return;
        await Promise.all([iter.set(1), iter.set(2), iter.set(3)]);
      },
      { maxIterations: 2 },
    );
    expect(await attemptsOf(run)).toEqual(["s 1 completed continued", "s 2 completed success"]);
  });

  test("cannot suppress skipTo by catching what it throws", async () => {
    const cursors: unknown[] = [];
    const { run } = await ended(async (iter) => {
      cursors.push(iter.cursor);
      if (iter.cursor === 10) return;
      try {
        iter.skipTo(10, { wait: "1 day" });
      } catch {}
    });
    expect(cursors).toEqual([null, 10]);
    expect(await attemptsOf(run)).toEqual(["s 1 completed continued", "s 2 completed success"]);
  });

  test("with maxIterations 1 is interrupted after each item and processes each item once", async () => {
    const seen: number[] = [];
    const { run } = await ended((iter) => iter.over([1, 2, 3], (n) => seen.push(n)), { maxIterations: 1 });
    expect(seen).toEqual([1, 2, 3]);
    expect(await attemptsOf(run)).toHaveLength(4);
    expect((await ended((iter) => iter.over([1, 2], () => {}), { maxRuntime: 0 })).problem).toBe(null);
  });

  test("that is rewound repeatedly starts without a cursor each time", async () => {
    const seen: unknown[] = [];
    const { run } = await ended(async (iter, w) => {
      seen.push(iter.cursor, iter.resumed, await w.step("inner", () => w.attempt));
      await iter.set("somewhere");
      if (w.attempt < 3) w.reattempt({ rewind: true, wait: "1h" });
    });
    expect(seen).toEqual([null, false, 1, null, false, 2, null, false, 3]);
    expect(await run.status()).toBe("completed");
  });

  test("whose iterator is kept cannot change a run that has ended", async () => {
    let kept: StepIterator | null = null;
    const { t, run } = await ended(async (iter) => {
      kept = iter;
      await iter.set(1);
    });
    const before = await run.progress();
    const iter = kept as unknown as StepIterator;
    const over = () => iter.over([1, 2, 3, 4, 5], () => {});
    for (const late of [() => iter.set(2), () => iter.advance(), () => iter.checkpoint(), over]) await errorOf(late());
    expect(() => iter.skipTo(5)).toThrow();
    await t.settle();
    expect(await run.progress()).toEqual(before);
    await expectSound(t);
  });
});

describe("flow control with invalid values", () => {
  test.each([{ wait: Number.NaN }, { wait: -1 }, { wait: "soon" }, null])(
    "reattempt and suspend with %o pause the run",
    async (given) => {
      for (const leave of ["reattempt", "suspend"] as const) {
        const type = classWith((one) => one.step("s", (w: Workflow) => w[leave](given as never)));
        const t = await start(type);
        const run = await t.pawl.start(type);
        await t.settle();
        expect(await attemptsOf(run)).toEqual(["s 1 failed paused_by_exception"]);
      }
    },
  );

  test.each(["", " a", "a#2", "x".repeat(201), 5, null, undefined, {}, someSymbol])(
    "resumeAt(%o) is refused",
    async (step) => {
      const type = classWith((one) => one.step("s", (w: Workflow) => w.pause()));
      const t = await start(type);
      const run = await t.pawl.start(type);
      await t.settle();
      expect(await errorOf(run.resumeAt(step as never))).toMatchObject(invalid);
      expect(await run.status()).toBe("paused");
    },
  );
});

describe("a deploy", () => {
  const did: string[] = [];
  const chain = (
    ...steps: readonly (readonly [name: string, options?: object, fn?: (w: any, iter?: any) => unknown])[]
  ) =>
    classWith((type) => {
      for (const [name, options = {}, fn = () => void did.push(name)] of steps)
        ("maxIterations" in options ? type.resumableStep : type.step).call(type, name, options, fn);
    }, "Deployed");
  const later = { wait: "1h" };
  const nap = async (w: Workflow) => {
    await w.sleep("nap", "1h");
    did.push("old");
  };

  /** The old code executes the run until it is parked; the new code then executes it as far as possible. */
  async function deploy(before: Parameters<World["worker"]>[0][number], after: Parameters<World["worker"]>[0][number]) {
    did.length = 0;
    const w = await world();
    const old = await w.worker([before]);
    const run = await w.pawl.workflow("Deployed").trigger(undefined as never);
    await old.settle();
    expect(await run.status()).toBe("waiting");
    await old.worker.stop();
    const worker = await w.worker([after]);
    for (let due = await worker.settle(); due !== null; due = await worker.settle()) w.clock.moveTo(due);
    await expectSound(w);
    return { w, run, worker };
  }

  test.each<[string, WorkflowClass, Parameters<World["worker"]>[0][number], string, string[]]>([
    [
      "that turns the chain round",
      chain(["a"], ["b", later], ["c"]),
      chain(["c"], ["b", later], ["a"]),
      "completed",
      ["a", "b"],
    ],
    ["that gives the step a shorter wait", chain(["a", { wait: "9h" }]), chain(["a", { wait: 1 }]), "completed", ["a"]],
    [
      "that makes a resting step resumable",
      chain(["a", {}, nap]),
      chain(["a", { maxIterations: 1 }, (_w, iter) => iter.over([1, 2], () => void did.push("new"))]),
      "completed",
      ["new", "new"],
    ],
    [
      "that makes a resumable step plain",
      chain(["a", { maxIterations: 9 }, (w, iter) => iter.set(1).then(() => nap(w))], ["b"]),
      chain(["a"], ["b"]),
      "paused",
      ["a"],
    ],
    // A body that returns after a sleep without having asked for that sleep is not the body that started.
    ["that no longer rests", chain(["a", {}, nap], ["b"]), chain(["a"], ["b"]), "paused", ["a"]],
    [
      "that makes of a sleep something else of that name",
      chain(["a", {}, nap]),
      chain(["a", {}, (w) => w.step("nap", () => 1)]),
      "paused",
      [],
    ],
    ["that leaves no steps at all", chain(["a"], ["b", later]), chain(), "paused", ["a"]],
    [
      "that makes a function of the class",
      chain(["a"], ["b", later]),
      workflow("Deployed", async (ctx) => {
        await ctx.step("a", () => did.push("again"));
        await ctx.step("b", () => did.push("b"));
      }),
      "completed",
      ["a", "b"],
    ],
  ])("%s", async (_what, before, after, status, expected) => {
    const { run } = await deploy(before, after);
    expect(await run.status()).toBe(status);
    expect(did).toEqual(expected);
  });

  test.each<[string, readonly ((run: RunHandle) => Promise<void>)[], string[]]>([
    ["elsewhere", [(run) => run.resumeAt("bb")], ["a", "bb", "c"]],
    ["elsewhere, at the second try", [(run) => run.resumeAt("b"), (run) => run.resumeAt("c")], ["a", "c"]],
    ["past it", [(run) => run.skip()], ["a", "bb", "c"]],
    ["nowhere", [(run) => run.cancel()], ["a"]],
  ])("that removes the run's current step can be recovered from: %s", async (_way, commands, expected) => {
    const { w, run, worker } = await deploy(chain(["a"], ["b", later], ["c"]), chain(["a"], ["bb"], ["c"]));
    for (const command of commands) {
      expect(await run.status()).toBe("paused");
      await command(run);
      await worker.settle();
    }
    expect((await run.get()).finishedAt).not.toBe(null);
    expect(did).toEqual(expected);
    await expectSound(w);
  });
});
