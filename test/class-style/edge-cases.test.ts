/** Unusual programs and their results: a run is never lost, and its behavior never changes without an error. */
import { discoverWorkflows, PermanentError, Workflow, workflow } from "pawl";
import { expect, test } from "vitest";
import { attemptsOf, recorded } from "../support/run-checks.js";
import { start, world } from "../support/virtual-worlds.js";
import { gate } from "../support/waiting.js";

const startAndSettle = async (type: any, input?: any, options?: any, others: any[] = []) => {
  const t = await start(type, ...others);
  const run = await t.pawl.start(type, input, options);
  await t.settle();
  return { t, run };
};

test("patched() is true for a run that reaches it with the new code, even in a later turn", async () => {
  const seen: boolean[] = [];
  class A extends Workflow {
    static {
      this.step("a", () => {});
      this.step("b", { wait: "1h" }, (w) => void seen.push(w.patched("p")));
    }
  }
  const t = await start(A);
  await t.speedrun(await t.pawl.start(A));
  expect(seen).toEqual([true]);
});

test("the first item of a loop does not share step names with the code before the loop", async () => {
  const executed: unknown[] = [];
  class A extends Workflow {
    static {
      this.resumableStep("s", async (w, iter) => {
        await w.step("send", () => void executed.push("intro"));
        await iter.over([1, 2, 3], (n) => w.step("send", () => void executed.push(n)));
      });
    }
  }
  await startAndSettle(A);
  expect(executed).toEqual(["intro", 1, 2, 3]);
});

test("items do not share random numbers with those of the previous execution", async () => {
  const ids: string[] = [];
  class A extends Workflow {
    static {
      this.resumableStep("s", { maxIterations: 2 }, (w, iter) =>
        iter.over([1, 2, 3, 4], () => void ids.push(w.uuid())),
      );
    }
  }
  await startAndSettle(A);
  expect(new Set(ids).size).toBe(4);
});

test("a step called on_failure is refused in a class with onFailure", async () => {
  class A extends Workflow {
    static {
      this.options({ onFailure: () => {} });
      this.step("on_failure", () => {});
      this.step("b", () => {
        throw new PermanentError("x");
      });
    }
  }
  const t = await start();
  await expect(t.pawl.start(A)).rejects.toThrow('has a step "on_failure"');
});

test("a step called on_failure is refused in a function with onFailure", async () => {
  const f = workflow("f", { onFailure: () => {} }, async (ctx) => {
    await ctx.step("on_failure", () => 1);
    throw new PermanentError("x");
  });
  const { run } = await startAndSettle(f);
  expect(await run.status()).toBe("failed");
});

test.each(["cancel", "pause"] as const)(
  "a reason for %s that cannot be stored does not crash the worker",
  async (leave) => {
    const unhandled: unknown[] = [];
    const before = process.rawListeners("unhandledRejection");
    process.removeAllListeners("unhandledRejection");
    process.on("unhandledRejection", (error) => unhandled.push(error));
    class A extends Workflow {
      static {
        this.step("s", (w) => w[leave](Symbol("x") as never));
      }
    }
    const t = await start(A);
    const run = await t.pawl.start(A);
    await Promise.race([t.settle(), new Promise((resolve) => setTimeout(resolve, 500))]);
    process.removeAllListeners("unhandledRejection");
    for (const one of before) process.on("unhandledRejection", one as never);
    expect(unhandled).toEqual([]);
    expect(await run.status()).toMatch(/paused|canceled/);
  },
);

class AboutUser extends Workflow<{ name: string }, void, string> {
  static heroType = "User";
  static loadHero = (id: string) => ({ name: `user ${id}` });
  static {
    this.step("s", (w) => w.finish(w.hero.name));
  }
}
test.each([
  ["without a hero", undefined],
  ["with a hero of another type", { type: "Company", id: "7" }],
])("a child %s is refused just like a start", async (_what, hero) => {
  class Parent extends Workflow<unknown, void, string> {
    static {
      this.step("p", async (w) =>
        w.finish(await w.run(AboutUser, undefined, hero === undefined ? {} : { hero }).catch((error) => error.code)),
      );
    }
  }
  const { run } = await startAndSettle(Parent, undefined, undefined, [AboutUser]);
  expect((await run.get()).output).toBe("INVALID_INPUT");
});

test("an iterator that is used after its step has ended does not move the cursor", async () => {
  let kept: any;
  const cursorsAtStart: unknown[] = [];
  class A extends Workflow {
    static {
      this.resumableStep("s", async (_w, iter) => {
        cursorsAtStart.push(iter.cursor);
        kept = iter;
        await iter.set(1);
      });
      this.step("z", async (w) => {
        await kept.set(77).catch(() => {});
        w.pause();
      });
    }
  }
  const { t, run } = await startAndSettle(A);
  await run.resumeAt("s");
  await t.settle();
  expect(cursorsAtStart).toEqual([null, null]);
});

test("a key function that returns undefined is an error, not an endless loop", async () => {
  let items = 0;
  class A extends Workflow {
    static {
      this.resumableStep("s", (_w, iter) =>
        iter.records({ fetch: () => [{ id: 1 }], key: (() => undefined) as never }, () => {
          items += 1;
          if (items > 100) throw new PermanentError("endless");
        }),
      );
    }
  }
  const { run } = await startAndSettle(A);
  expect(await run.status()).toBe("paused");
});

test.each([null, [() => true]])("`on` %o of a rule is refused", (on) => {
  expect(
    () =>
      class A extends Workflow {
        static {
          this.step("s", { onException: { action: "skip", on: on as never } }, () => {});
        }
      },
  ).toThrow();
});

test("next() called twice runs the step once", async () => {
  let bodyRuns = 0;
  class A extends Workflow {
    static {
      this.step("s", () => {
        bodyRuns += 1;
      });
    }
    override async aroundStepExecution(_e: unknown, next: () => Promise<void>) {
      await next();
      await next();
    }
  }
  await startAndSettle(A);
  expect(bodyRuns).toBe(1);
});
test("aroundStepExecution waits for a next() that it does not await", async () => {
  const go = gate();
  const executed: string[] = [];
  class A extends Workflow {
    static {
      this.step("s", async () => {
        await go.opened;
        executed.push("s");
      });
      this.step("z", () => {
        executed.push("z");
        go.open();
      });
    }
    override aroundStepExecution(_e: unknown, next: () => Promise<void>) {
      next();
    }
  }
  const t = await start(A);
  const run = await t.pawl.start(A);
  setTimeout(() => go.open(), 200);
  await t.settle();
  expect(executed).toEqual(["s", "z"]);
  expect(await run.status()).toBe("completed");
});

test("a step may name a field that holds a function", async () => {
  let sent = 0;
  class A extends Workflow {
    send = async () => {
      sent += 1;
    };
    static {
      this.step("send");
    }
  }
  await startAndSettle(A);
  expect(sent).toBe(1);
});

test.each(["toString", "constructor", "hasOwnProperty", "sleep", "beforeStepExecution"])(
  "step(%s) without a function is refused",
  (name) => {
    class A extends Workflow {
      static {
        (this as any).step(name);
      }
    }
    expect(() => discoverWorkflows({ A })).toThrow();
  },
);
test.each(["toString", "constructor", "__proto__", "sleep"])("the condition %s is refused", (name) => {
  class A extends Workflow {
    static {
      (this as any).cancelIf(name);
    }
  }
  expect(() => discoverWorkflows({ A })).toThrow();
});
test.each([
  ["constructor", 1],
  ["toString", 1],
  ["__proto__", 1],
  ["tags", "mail"],
  ["tags", null],
  ["retry", null],
  ["retry", 5],
  ["retry", true],
])("the option %s: %o is refused with an InvalidInputError", (name, value) => {
  expect(
    () =>
      class A extends Workflow {
        static {
          (this as any).options(Object.fromEntries([[name, value]]));
        }
      },
  ).toThrow(expect.objectContaining({ code: "INVALID_INPUT" }));
});

test.each([
  ["that waited for another attempt", "reattempt"],
  ["that was to be continued", "suspend"],
])("every execution has its own id, even after resumeAt to a step %s", async (_what, leave) => {
  class A extends Workflow {
    static {
      this.step("a", (w) => {
        if (w.attempt === 1) w[leave as "suspend"]({ wait: "1h" });
      });
    }
  }
  const { t, run } = await startAndSettle(A);
  await run.pause();
  await run.resumeAt("a");
  await t.speedrun(run);
  const ids = (await run.executions()).map(({ id }) => id);
  expect(new Set(ids).size).toBe(ids.length);
});

test("two concurrent loops over one iterator are refused, or end", async () => {
  class A extends Workflow {
    static {
      this.resumableStep("s", { maxIterations: 2 }, (w, iter) =>
        Promise.all([
          iter.over([1, 2, 3], () => w.step("a", () => {})),
          iter.over([1, 2, 3], () => w.step("a", () => {})),
        ]),
      );
    }
  }
  const { run } = await startAndSettle(A);
  expect(await run.status()).not.toBe("waiting");
});

test("a plain step that suspends itself forever is paused too", async () => {
  let n = 0;
  class A extends Workflow {
    static {
      this.step("s", (w) => {
        n += 1;
        if (n < 1_500) w.suspend();
      });
    }
  }
  const { run } = await startAndSettle(A);
  expect(await run.status()).toBe("paused");
});

test("afterStepExecution receives every thrown value", async () => {
  const received: unknown[] = [];
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  class A extends Workflow {
    static {
      this.step("s", () => {
        throw proxy;
      });
    }
    override afterStepExecution(e: { error?: unknown }) {
      received.push("error" in e);
    }
  }
  await startAndSettle(A);
  expect(received).toEqual([true]);
});

test("the cursor of a step that an operator skipped is cleared", async () => {
  const cursorsAtStart: unknown[] = [];
  class A extends Workflow {
    static {
      this.resumableStep("s", async (_w, iter) => {
        cursorsAtStart.push(iter.cursor);
        await iter.set(5);
        throw new Error("x");
      });
      this.step("z", (w) => w.pause());
    }
  }
  const { t, run } = await startAndSettle(A);
  await run.skip();
  await t.settle();
  await run.resumeAt("s");
  await t.settle();
  expect(cursorsAtStart).toEqual([null, null]);
});

test("an abstract class whose methods are implemented by subclasses does not break discoverWorkflows", () => {
  abstract class Frame extends Workflow {
    static {
      this.step("fill");
    }
    abstract fill(): void;
  }
  class Filled extends Frame {
    fill() {}
  }
  expect(discoverWorkflows({ Frame, Filled, Workflow }).map(({ name }) => name)).toEqual(["Filled"]);
});

test("options are copied when they are passed", async () => {
  const options: { wait?: string } = {};
  class A extends Workflow {
    static {
      for (const name of ["a", "b"]) {
        if (name === "b") options.wait = "1h";
        this.step(name, options, () => {});
      }
    }
  }
  const { run } = await startAndSettle(A);
  expect(await attemptsOf(run)).toEqual(["a 1 completed success", "b 1 scheduled –"]);
});

test("a page is a list, and all of its items are processed, even undefined ones", async () => {
  const executed: unknown[] = [];
  class A extends Workflow {
    static {
      this.resumableStep("s", (_w, iter) =>
        iter.records(
          {
            fetch: (after: number | null) => (after === null ? [1, undefined] : []) as (number | undefined)[],
            key: ((n: number | undefined) => n ?? 9) as never,
          },
          (n) => void executed.push(n),
        ),
      );
    }
  }
  await startAndSettle(A);
  expect(executed).toEqual([1, undefined]);
});

test("a step that was renamed after it completed does not run again: the run is paused", async () => {
  const executed: string[] = [];
  const cursorsAtStart = gate();
  const go = gate();
  const classWithStep = (name: string) =>
    class extends Workflow {
      static {
        this.options({ name: "W" });
        this.step(name, async () => {
          executed.push("charge");
          cursorsAtStart.open();
          await go.opened;
        });
        this.step("ship", () => void executed.push("ship"));
      }
    };
  const w = await world();
  const Old = classWithStep("charge");
  const old = await w.worker([Old]);
  const run = await w.pawl.start(Old);
  const settledOld = old.settle();
  await cursorsAtStart.opened;
  await run.pause();
  await recorded(run, "run.paused");
  go.open();
  await settledOld;
  await old.worker.stop();
  const next = await w.worker([classWithStep("charge_card")]);
  await run.resume();
  await next.settle();
  expect(executed).toEqual(["charge"]);
  expect(await run.get()).toMatchObject({ status: "paused", pauseReason: expect.stringContaining('no step "charge"') });
});

test("a body draws the same random numbers when it continues after a wait, whatever its conditions and hooks draw", async () => {
  const ids: string[] = [];
  class A extends Workflow {
    static {
      this.step("s", { skipIf: (w) => w.random() > 2 }, async (w) => {
        ids.push(w.uuid());
        await w.sleep("nap", "1h");
      });
    }
  }
  const t = await start(A);
  await t.speedrun(await t.pawl.start(A));
  expect(new Set(ids).size).toBe(1);
});
