/**
 * What the compiler knows of workflow classes: `npm run check` fails when an expected error disappears. Mistakes that
 * the compiler cannot see are reported when a class is first used, before anything runs.
 */
import { readdirSync, readFileSync } from "node:fs";
import {
  type ChildHandle,
  connect,
  discoverWorkflows,
  type HeroRef,
  InvalidInputError,
  job,
  type MapResult,
  type Pawl,
  type RunHandle,
  type StepExecution,
  type StepIterator,
  StepNotDefinedError,
  Workflow,
  type WorkflowClass,
  workflow,
} from "pawl";
import { testPawl } from "pawl/testing";
import { describe, expect, expectTypeOf, onTestFinished, test } from "vitest";
import { z } from "zod";

declare const pawl: Pawl;
/** The body is type-checked and never called. */
const typeCheckOnly = (_body: () => unknown) => {};

interface User {
  readonly name: string;
  readonly deactivated: boolean;
}
declare const users: { find(id: string): Promise<User | undefined> };

class Onboarding extends Workflow<User, { ids: number[] }, string> {
  static readonly heroType = "User";
  static loadHero = (id: string) => users.find(id);
  readonly patient = true;
  readonly limit = 5;
  get unsubscribed() {
    return this.hero.deactivated;
  }
  get greeting() {
    return `Dear ${this.hero.name}`;
  }
  async isRich() {
    return this.input.ids.length > this.limit;
  }
  isNamed(name: string) {
    return this.hero.name === name;
  }
  async send_reminder() {}
}

const user = { type: "User", id: "42" } as const;

test("onFailure of a class gets the input of its runs", () => {
  typeCheckOnly(() => {
    class Telling extends Workflow<unknown, { ids: number[] }> {
      static {
        this.options({ onFailure: ({ input }) => expectTypeOf(input).toEqualTypeOf<{ ids: number[] }>() });
      }
    }
    return Telling;
  });
});

describe("a step's method", () => {
  test("is a method of the class", () => {
    typeCheckOnly(() => {
      Onboarding.step("send_reminder");
      Onboarding.step("send_reminder", { wait: "2 days" });
      // @ts-expect-error: there is no such method
      Onboarding.step("send_remindr");
      // @ts-expect-error: no such method, even with options
      Onboarding.step("send_remindr", { wait: "2 days" });
      // @ts-expect-error: a number is not a method
      Onboarding.step("limit");
      // @ts-expect-error: nor is a getter
      Onboarding.step("greeting");
      // @ts-expect-error: a method of Workflow itself is not a step
      Onboarding.step("sleep");
      // @ts-expect-error: a hook is not a step
      Onboarding.step("beforeStepExecution");
      Onboarding.resumableStep("send_reminder", { maxIterations: 5 });
      // @ts-expect-error: there is no such method
      Onboarding.resumableStep("send_remindr");
    });
  });

  test("may be inherited, or declared abstract by a parent", () => {
    typeCheckOnly(() => {
      class Later extends Onboarding {
        static {
          this.step("send_reminder");
          this.step("own");
          // @ts-expect-error: neither class has this method
          this.step("other");
        }
        own() {}
      }
      abstract class AbstractBase extends Workflow {
        static {
          this.step("fill");
          // @ts-expect-error: no abstract method of this name
          this.step("spill");
        }
        abstract fill(): void;
      }
      return [Later, AbstractBase];
    });
  });

  test("a step with a function may have any name; a step without a name and a function is refused", () => {
    typeCheckOnly(() => {
      Onboarding.step("anything", () => {});
      Onboarding.step("anything", { wait: "1h" }, async () => {});
      Onboarding.step({ wait: "1h" }, async () => {});
      Onboarding.step(async function receipt() {});
      // @ts-expect-error: a step needs something to do
      Onboarding.step({ wait: "1h" });
      // @ts-expect-error: a step needs a name or a function
      Onboarding.step();
      // @ts-expect-error: a name is a string
      Onboarding.step(5, () => {});
      // @ts-expect-error: this is not a function
      Onboarding.step("anything", {}, 5);
    });
  });
});

describe("the workflow in a step", () => {
  test("is the class itself, with its hero, its input and its own members", () => {
    typeCheckOnly(() => {
      Onboarding.step("a", (w) => {
        expectTypeOf(w).toEqualTypeOf<Onboarding>();
        expectTypeOf(w.hero).toEqualTypeOf<User>();
        expectTypeOf(w.input).toEqualTypeOf<{ ids: number[] }>();
        expectTypeOf(w.greeting).toEqualTypeOf<string>();
        expectTypeOf(w.idempotencyKey).toEqualTypeOf<string>();
        expectTypeOf(w.cancel).returns.toEqualTypeOf<never>();
        // @ts-expect-error: the hero is read-only
        w.hero = { name: "Eve", deactivated: false };
        // @ts-expect-error: no such member
        w.greting;
      });
      Onboarding.step("b", { wait: 1 }, (w) => expectTypeOf(w).toEqualTypeOf<Onboarding>());
      Onboarding.step({ wait: 1 }, (w) => expectTypeOf(w).toEqualTypeOf<Onboarding>());
      Onboarding.step((w) => expectTypeOf(w).toEqualTypeOf<Onboarding>());
    });
  });

  test("is the subclass in a subclass, also in the static block", () => {
    typeCheckOnly(() => {
      class Later extends Onboarding {
        static {
          this.step("a", (w) => expectTypeOf(w.own).toEqualTypeOf<() => number>());
          this.resumableStep("b", (w) => expectTypeOf(w.own()).toEqualTypeOf<number>());
          this.cancelIf((w) => w.own() > 1);
        }
        own() {
          return 1;
        }
      }
      return Later;
    });
  });

  test("has all typed members of ctx", () => {
    typeCheckOnly(() => {
      Onboarding.step("a", async (w) => {
        expectTypeOf(await w.step("x", () => 1 as const)).toEqualTypeOf<1>();
        expectTypeOf(await w.waitForSignal<{ by: string }>("y")).toEqualTypeOf<{ by: string } | null>();
        expectTypeOf(w.now()).toEqualTypeOf<Date>();
        // @ts-expect-error: a duration is missing
        await w.sleep("z");
        // @ts-expect-error: no such option
        w.reattempt({ rewnd: true });
      });
    });
  });

  test("knows the members of a class without hero or input", () => {
    typeCheckOnly(() => {
      class Plain extends Workflow {
        static {
          this.step("a", (w) => {
            expectTypeOf(w.hero).toEqualTypeOf<unknown>();
            expectTypeOf(w.input).toEqualTypeOf<void>();
          });
        }
      }
      return Plain;
    });
  });
});

describe("the hero", () => {
  test("of a class with steps needs a loader, unless it is only a reference", () => {
    typeCheckOnly(async () => {
      class Unloaded extends Workflow<User> {
        static {
          // @ts-expect-error: there is no loader for the user
          this.step("a");
          // @ts-expect-error: no loader, even with a function
          this.step("b", () => {});
          // @ts-expect-error: no loader, even with options
          this.step("c", { wait: 1 }, () => {});
          // @ts-expect-error: no loader, even for a task
          this.task("d", () => {});
          // @ts-expect-error: no loader, even for a resumable step
          this.resumableStep("e", () => {});
        }
        a() {}
      }
      // @ts-expect-error: there is no loader for the user
      await pawl.start(Unloaded, undefined, { hero: user });
      class MayBeGone extends Workflow<User | null> {
        static {
          // @ts-expect-error: there is no loader for the optional user
          this.step("a", () => {});
        }
      }
      class Strange extends Workflow<User> {
        static loadHero = (_id: string) => ({ title: "not a user" });
        static {
          // @ts-expect-error: the loader does not return a user
          this.step("a", () => {});
        }
      }
      class Reference extends Workflow<HeroRef> {
        static {
          this.step("a", (w) => expectTypeOf(w.hero.id).toEqualTypeOf<string>());
        }
      }
      class Untyped extends Workflow<any> {
        static {
          this.step("a", () => {});
        }
      }
      class Heroless extends Workflow<null> {
        static {
          this.step("a", () => {});
        }
      }
      /** An abstract class whose subclasses have the loader. */
      abstract class AbstractBase extends Workflow<User> {
        static {
          this.step("a", (w) => expectTypeOf(w.hero).toEqualTypeOf<User>());
        }
      }
      class Child extends AbstractBase {
        static loadHero = (id: string) => users.find(id);
        static {
          this.step("b", () => {});
        }
      }
      class Orphan extends AbstractBase {
        static {
          // @ts-expect-error: neither class has a loader
          this.step("b", () => {});
        }
      }
      return [MayBeGone, Strange, Reference, Untyped, Heroless, Child, Orphan];
    });
  });
});

describe("`this`", () => {
  test("in a function of a step is the workflow", () => {
    typeCheckOnly(() => {
      Onboarding.step("a", function () {
        expectTypeOf(this).toEqualTypeOf<Onboarding>();
        expectTypeOf(this.hero).toEqualTypeOf<User>();
      });
      Onboarding.step("a", { wait: 1 }, async function (w) {
        expectTypeOf(this).toEqualTypeOf(w);
      });
      Onboarding.step(async function receipt() {
        expectTypeOf(this.greeting).toEqualTypeOf<string>();
      });
      Onboarding.task("a", function () {
        expectTypeOf(this).toEqualTypeOf<Onboarding>();
      });
      Onboarding.resumableStep("a", async function (_w, iter) {
        expectTypeOf(this).toEqualTypeOf<Onboarding>();
        expectTypeOf(iter).toEqualTypeOf<StepIterator>();
      });
      Onboarding.step("a", function () {
        // @ts-expect-error: no such member
        this.hera;
      });
    });
  });
});

describe("a job", () => {
  const resize = job("Resize", (_args: { file: string }) => 1);
  const tick = job("Tick", () => {});

  test("of a step gets arguments of its type", () => {
    typeCheckOnly(() => {
      Onboarding.step("a", { job: resize, args: { file: "a" } });
      Onboarding.step("a", { job: resize, args: (w) => ({ file: w.hero.name }) });
      Onboarding.step("a", { job: resize, args: async (w) => ({ file: w.greeting }), wait: "1h" });
      Onboarding.step("a", { job: tick });
      Onboarding.step("a", { job: "Resize", args: { any: "thing" } });
      Onboarding.step("a", { job: "Resize" });
      Onboarding.step("send_reminder", { job: resize, args: { file: "a" } });
      // @ts-expect-error: a string, not a number
      Onboarding.step("a", { job: resize, args: { file: 5 } });
      // @ts-expect-error: no such argument
      Onboarding.step("a", { job: resize, args: { file: "a", quality: 5 } });
      // @ts-expect-error: the arguments are missing
      Onboarding.step("a", { job: resize });
      // @ts-expect-error: a string, not a number
      Onboarding.step("a", { job: resize, args: (w) => ({ file: w.limit }) });
      // @ts-expect-error: the hero has no such member
      Onboarding.step("a", { job: resize, args: (w) => ({ file: w.hero.nam }) });
      // @ts-expect-error: the job takes no arguments
      Onboarding.step("a", { job: tick, args: 5 });
      // @ts-expect-error: neither a job nor a function
      Onboarding.step("a", { job: tick }, () => {});
      // @ts-expect-error: no such option
      Onboarding.step("a", { job: tick, wiat: "1h" });
    });
  });
});

describe("heroOf", () => {
  class Numbered extends Workflow<{ readonly id: number; readonly name: string }> {
    static readonly heroType = "Customer";
    static loadHero = (id: string) => ({ id: Number(id), name: "" });
  }

  test("takes the hero of the class or an id, and keeps the type", () => {
    typeCheckOnly(() => {
      expectTypeOf(Numbered.heroOf({ id: 42, name: "Ada" })).toEqualTypeOf<HeroRef<"Customer">>();
      expectTypeOf(Numbered.heroOf(42)).toEqualTypeOf<HeroRef<"Customer">>();
      // @ts-expect-error: a customer has a name
      Numbered.heroOf({ id: 42 });
      // @ts-expect-error: users have no id here
      Onboarding.heroOf({ name: "Ada", deactivated: false });
      class Untyped extends Workflow<User> {}
      // @ts-expect-error: the class has no heroType
      Untyped.heroOf("42");
    });
  });

  test("converts a number to a string", () => {
    expect(Numbered.heroOf({ id: 42, name: "Ada" })).toEqual({ type: "Customer", id: "42" });
    expect(Numbered.heroOf(42n)).toEqual({ type: "Customer", id: "42" });
    expect(Numbered.heroOf("a-42")).toEqual({ type: "Customer", id: "a-42" });
  });

  test("says in its error what is missing", () => {
    class Untyped extends Workflow {}
    expect(() => (Untyped as any).heroOf("42")).toThrow(
      'Untyped.heroOf(hero) needs the hero\'s type; add static readonly heroType = "…" to the class.',
    );
    expect(() => (Numbered as any).heroOf({ name: "Ada" })).toThrow(
      "Numbered.heroOf(hero) takes a hero with an `id`, or the id itself: a string or a whole number, not undefined.",
    );
    expect(() => Numbered.heroOf(Number.NaN)).toThrow("a string or a whole number");
    expect(() => Numbered.heroOf("")).toThrow("must not be empty");
  });
});

describe("the output", () => {
  test("of finish() has the output type of the class", () => {
    typeCheckOnly(() => {
      Onboarding.step("a", (w) => w.finish("done"));
      Onboarding.step("a", (w) => w.finish());
      // @ts-expect-error: a string, not a number
      Onboarding.step("a", (w) => w.finish(5));
      class Nothing extends Workflow<User> {
        static loadHero = (id: string) => users.find(id);
        static {
          // @ts-expect-error: the class has no output
          this.step("a", (w) => w.finish("done"));
        }
      }
      return Nothing;
    });
  });
});

describe("conditions", () => {
  test("are members that can be true, functions of the workflow, or booleans", () => {
    typeCheckOnly(() => {
      Onboarding.step("a", { skipIf: "unsubscribed" }, () => {});
      Onboarding.step("a", { skipIf: "isRich" }, () => {});
      Onboarding.step("a", { if: "patient" }, () => {});
      Onboarding.step("a", { if: true }, () => {});
      Onboarding.step("a", { skipIf: async (w) => w.hero.deactivated }, () => {});
      Onboarding.resumableStep("a", { skipIf: (w) => w.input.ids.length === 0 }, () => {});
      Onboarding.cancelIf("unsubscribed", "isRich", (w) => w.hero.deactivated, false);
      // @ts-expect-error: there is no such member
      Onboarding.step("a", { skipIf: "unsubscribd" }, () => {});
      // @ts-expect-error: no such member, for `if` either
      Onboarding.step("a", { if: "unsubscribd" }, () => {});
      // @ts-expect-error: a string is neither true nor false
      Onboarding.step("a", { skipIf: "greeting" }, () => {});
      // @ts-expect-error: a condition gets no argument
      Onboarding.step("a", { skipIf: "isNamed" }, () => {});
      // @ts-expect-error: not a boolean
      Onboarding.step("a", { skipIf: (w) => w.hero.name }, () => {});
      // @ts-expect-error: a number is not a boolean
      Onboarding.step("a", { skipIf: 1 }, () => {});
      // @ts-expect-error: the step of a method takes the same conditions
      Onboarding.step("send_reminder", { skipIf: "unsubscribd" });
      // @ts-expect-error: a resumable step takes the same conditions
      Onboarding.resumableStep("a", { if: "unsubscribd" }, () => {});
      // @ts-expect-error: the class takes the same conditions
      Onboarding.cancelIf("unsubscribd");
      // @ts-expect-error: the hero has no such member
      Onboarding.cancelIf((w) => w.hero.dectivated);
    });
  });
});

describe("options", () => {
  test("must exist, with valid values", () => {
    typeCheckOnly(() => {
      Onboarding.options({ queue: "mail", priority: 10, onException: "pause", terminalAction: "skip" });
      Onboarding.options({ onException: [{ on: RangeError, action: "skip" }, (error) => error.code && "fail"] });
      Onboarding.options({ input: z.object({ ids: z.array(z.number()) }) });
      // @ts-expect-error: its steps do not expect a hero that is null
      Onboarding.options({ mayProceedWithoutHero: true });
      class OptionalHero extends Workflow<User | null> {}
      OptionalHero.options({ mayProceedWithoutHero: true });
      // @ts-expect-error: there is no such option
      Onboarding.options({ queu: "mail" });
      // @ts-expect-error: there is no such action
      Onboarding.options({ onException: "explode" });
      // @ts-expect-error: the terminal action cannot be another reattempt
      Onboarding.options({ terminalAction: "reattempt" });
      // @ts-expect-error: not an error class
      Onboarding.options({ onException: { on: "RangeError", action: "skip" } });
      // @ts-expect-error: wait is an option of a step, not of a class
      Onboarding.options({ wait: "2 days" });
      // @ts-expect-error: maxReattempts is the option for this
      Onboarding.step("a", { retry: { attempts: 4 } }, () => {});
      // @ts-expect-error: no such option of a step
      Onboarding.step("a", { wiat: "1h" }, () => {});
      // @ts-expect-error: only a resumable step has iterations
      Onboarding.step("a", { maxIterations: 5 }, () => {});
      // @ts-expect-error: there are two kinds of checkpoints
      Onboarding.resumableStep("a", { checkpoint: "never" }, () => {});
      // @ts-expect-error: a name, not a list
      Onboarding.step("a", { afterStep: ["b"] }, () => {});
      // @ts-expect-error: a list, not a name
      Onboarding.removedSteps("a");
    });
  });
});

describe("hooks", () => {
  test("receive the execution", () => {
    typeCheckOnly(() => {
      class Hooked extends Workflow {
        override beforeStepExecution(execution: StepExecution) {
          expectTypeOf(execution.attempt).toEqualTypeOf<number>();
        }
        override async aroundStepExecution(execution: StepExecution, next: () => Promise<void>) {
          expectTypeOf(execution.step).toEqualTypeOf<string>();
          await next();
        }
        // @ts-expect-error: the parameter is an execution, not a name
        override afterStepExecution(_step: string) {}
      }
      return Hooked;
    });
  });
});

describe("a resumable step", () => {
  test("has an iterator; a plain step has none", () => {
    typeCheckOnly(() => {
      Onboarding.resumableStep("a", (w, iter) => {
        expectTypeOf(w).toEqualTypeOf<Onboarding>();
        expectTypeOf(iter).toEqualTypeOf<StepIterator>();
        expectTypeOf(iter.resumed).toEqualTypeOf<boolean>();
        expectTypeOf(iter.skipTo).returns.toEqualTypeOf<never>();
        expectTypeOf(iter.set).returns.toEqualTypeOf<Promise<void>>();
        // @ts-expect-error: no such member
        iter.curser;
        // @ts-expect-error: from is a number
        iter.advance({ from: "a" });
        // @ts-expect-error: a total is a number
        iter.total("many");
      });
      // @ts-expect-error: a plain step gets no iterator
      Onboarding.step("a", (_w, _iter) => {});
    });
  });

  test("knows the type of the items that it iterates over", () => {
    typeCheckOnly(() => {
      Onboarding.resumableStep("a", { maxIterations: 5 }, async (w, iter) => {
        await iter.over(w.input.ids, (id, index) => expectTypeOf([id, index]).toEqualTypeOf<number[]>());
        await iter.over(new Map([["a", 1n]]), (entry) => expectTypeOf(entry).toEqualTypeOf<[string, bigint]>());
        const rows = [{ id: 1, name: "Ada" }];
        await iter.records({ fetch: () => rows, key: "id" }, (row) =>
          expectTypeOf(row).toEqualTypeOf<{ id: number; name: string }>(),
        );
        await iter.batches({ fetch: async () => rows, key: (row) => row.id, size: 10 }, (batch) =>
          expectTypeOf(batch).toEqualTypeOf<readonly { id: number; name: string }[]>(),
        );
        await iter.each([["Ada", 1] as const], (name) => expectTypeOf(name).toEqualTypeOf<"Ada">());
        // @ts-expect-error: rows have no such key
        await iter.records({ fetch: () => rows, key: "ident" }, () => {});
        // @ts-expect-error: the key is missing
        await iter.records({ fetch: () => rows }, () => {});
        // @ts-expect-error: a page is a list
        await iter.records({ fetch: () => 5, key: "id" }, () => {});
        // @ts-expect-error: a number is not a collection
        await iter.over(5, () => {});
        // @ts-expect-error: items come with their cursors
        await iter.each([1, 2], () => {});
      });
    });
  });
});

describe("start", () => {
  test("takes the input of the class", () => {
    typeCheckOnly(async () => {
      await pawl.start(Onboarding, { ids: [1] }, { hero: user });
      // @ts-expect-error: ids are numbers
      await pawl.start(Onboarding, { ids: ["1"] }, { hero: user });
      // @ts-expect-error: ids are missing
      await pawl.start(Onboarding, {}, { hero: user });
      // @ts-expect-error: the input is missing
      await pawl.start(Onboarding, undefined, { hero: user });
      class Plain extends Workflow<unknown, { ids: number[] }> {}
      await pawl.startMany(Plain, [{ ids: [1] }]);
      // @ts-expect-error: every element is an input
      await pawl.startMany(Plain, [{ ids: [1] }, {}]);
      // @ts-expect-error: each run would need its own hero
      await pawl.startMany(Onboarding, [{ ids: [1] }]);
    });
  });

  test("needs the hero of the class, of its type", () => {
    typeCheckOnly(async () => {
      // @ts-expect-error: the hero is missing
      await pawl.start(Onboarding, { ids: [1] });
      // @ts-expect-error: the hero is missing
      await pawl.start(Onboarding, { ids: [1] }, { delay: "1h" });
      // @ts-expect-error: the id of the hero is missing
      await pawl.start(Onboarding, { ids: [1] }, { hero: { type: "User" } });
      // @ts-expect-error: the type of the hero is missing
      await pawl.start(Onboarding, { ids: [1] }, { hero: { id: "42" } });
      // @ts-expect-error: the id of a hero is a string
      await pawl.start(Onboarding, { ids: [1] }, { hero: { type: "User", id: 42 } });
      // @ts-expect-error: not a user
      await pawl.start(Onboarding, { ids: [1] }, { hero: { type: "Company", id: "42" } });
      // @ts-expect-error: no such option
      await pawl.start(Onboarding, { ids: [1] }, { hero: user, dealy: "1h" });
    });
  });

  test("knows the type of hero in all examples of the docs: only `readonly` keeps the literal type", () => {
    const root = new URL("../../", import.meta.url);
    const pages = readdirSync(new URL("docs/", root)).filter((name) => name.endsWith(".md"));
    for (const page of ["README.md", ...pages.map((name) => `docs/${name}`)])
      expect.soft(readFileSync(new URL(page, root), "utf8"), page).not.toContain("static heroType");
  });

  test("takes any type of hero when the class does not name one", () => {
    typeCheckOnly(async () => {
      class AnyHero extends Workflow<User> {
        static heroType = "User";
        static loadHero = (id: string) => users.find(id);
      }
      await pawl.start(AnyHero, undefined, { hero: { type: "Company", id: "42" } });
      // @ts-expect-error: a hero is required
      await pawl.start(AnyHero);
    });
  });

  test("needs no hero for a class without one, or with an optional one", () => {
    typeCheckOnly(async () => {
      class WithoutHero extends Workflow {}
      class OptionalHero extends Workflow<User | null, number> {
        static loadHero = (id: string) => users.find(id);
      }
      await pawl.start(WithoutHero);
      await pawl.start(WithoutHero, undefined, { delay: "1h" });
      await pawl.start(WithoutHero, undefined, { hero: user });
      await pawl.start(OptionalHero, 5);
      await pawl.start(OptionalHero, 5, { hero: user });
      // @ts-expect-error: the input is still required
      await pawl.start(OptionalHero);
    });
  });

  test("takes the options in place of the input if the workflow has none", () => {
    typeCheckOnly(async () => {
      class Welcome extends Workflow<User> {
        static readonly heroType = "User";
        static loadHero = (id: string) => users.find(id);
      }
      await pawl.start(Welcome, { hero: user });
      await pawl.start(Welcome, { hero: Welcome.heroOf("42"), delay: "1h" });
      await pawl.start(Welcome, undefined, { hero: user });
      // @ts-expect-error: the hero is missing
      await pawl.start(Welcome);
      // @ts-expect-error: the hero is missing
      await pawl.start(Welcome, { delay: "1h" });
      // @ts-expect-error: not a user
      await pawl.start(Welcome, { hero: { type: "Company", id: "42" } });
      // @ts-expect-error: no such option
      await pawl.start(Welcome, { hero: user, dealy: "1h" });
      class Reference extends Workflow<HeroRef> {}
      // @ts-expect-error: a class that loads no hero takes its options after the input
      await pawl.start(Reference, { hero: user });
      // @ts-expect-error: this class has an input
      await pawl.start(Onboarding, { hero: user });
      class WithoutHero extends Workflow {}
      // @ts-expect-error: a workflow that needs no hero takes its options after the input
      await pawl.start(WithoutHero, { delay: "1h" });
    });
  });

  test("refuses a class whose loader does not return its hero type", () => {
    typeCheckOnly(async () => {
      class Strange extends Workflow<User> {
        static loadHero = (_id: string) => ({ title: "not a user" });
      }
      // @ts-expect-error: the loader does not return a user
      await pawl.start(Strange, undefined, { hero: user });
      class Numbered extends Workflow<User> {
        static loadHero = (_id: number): User | null => null;
      }
      // @ts-expect-error: the id of a hero is a string
      await pawl.start(Numbered, undefined, { hero: user });
      class Static extends Workflow<User> {
        static async loadHero(id: string) {
          return users.find(id);
        }
      }
      await pawl.start(Static, undefined, { hero: user });
    });
  });

  test("refuses a class that is not a workflow or cannot be constructed", () => {
    typeCheckOnly(async () => {
      // @ts-expect-error: a class, but not a workflow
      await pawl.start(Date);
      abstract class AbstractBase extends Workflow {}
      // @ts-expect-error: the class is abstract
      await pawl.start(AbstractBase);
      class Given extends Workflow {
        constructor(readonly given: number) {
          super();
        }
      }
      // @ts-expect-error: the constructor needs an argument
      await pawl.start(Given);
    });
  });
});

describe("a run of a class", () => {
  test("is typed by the class", () => {
    typeCheckOnly(async () => {
      const run = await pawl.start(Onboarding, { ids: [1] }, { hero: user });
      expectTypeOf(run).toEqualTypeOf<RunHandle<{ ids: number[] }, string>>();
      expectTypeOf(await run.result()).toEqualTypeOf<string>();
      expectTypeOf((await run.get()).input).toEqualTypeOf<{ ids: number[] }>();
      expectTypeOf(pawl.run(Onboarding, run.id)).toEqualTypeOf<RunHandle<{ ids: number[] }, string>>();
      class Plain extends Workflow {}
      expectTypeOf(await pawl.startMany(Plain, [undefined])).toEqualTypeOf<RunHandle<void, void>[]>();
      expectTypeOf(await pawl.start(Plain)).toEqualTypeOf<RunHandle<void, void>>();
    });
  });

  test("as a child is typed by the class too", () => {
    typeCheckOnly(() =>
      workflow("parent", async (ctx) => {
        expectTypeOf(await ctx.run(Onboarding, { ids: [1] }, { hero: user })).toEqualTypeOf<string>();
        expectTypeOf(await ctx.start(Onboarding, { ids: [1] })).toEqualTypeOf<ChildHandle<string>>();
        expectTypeOf(await ctx.map(Onboarding, [{ ids: [1] }])).toEqualTypeOf<MapResult<string>>();
        // @ts-expect-error: ids are numbers
        await ctx.run(Onboarding, { ids: ["1"] });
        // @ts-expect-error: the input is missing
        await ctx.run(Onboarding);
        // @ts-expect-error: items are inputs
        await ctx.map(Onboarding, [1]);
        // @ts-expect-error: the id of the hero is missing
        await ctx.run(Onboarding, { ids: [1] }, { hero: { type: "User" } });
        class Plain extends Workflow<unknown, void, number> {}
        expectTypeOf(await ctx.run(Plain)).toEqualTypeOf<number>();
      }),
    );
    typeCheckOnly(() => {
      Onboarding.step("a", async (w) => {
        expectTypeOf(await w.run(Onboarding, { ids: [1] })).toEqualTypeOf<string>();
        // @ts-expect-error: ids are numbers
        await w.run(Onboarding, { ids: ["1"] });
      });
    });
  });
});

test("a class is accepted wherever a workflow is", () => {
  typeCheckOnly(async () => {
    pawl.worker({ workflows: [Onboarding, workflow("f", async () => 1)] });
    await pawl.runs({ workflow: Onboarding, hero: user });
    await testPawl({ workflows: [Onboarding] });
    expectTypeOf(Onboarding).toExtend<WorkflowClass>();
    // @ts-expect-error: not a workflow
    pawl.worker({ workflows: [Date] });
    // @ts-expect-error: not a workflow
    await pawl.runs({ workflow: Date });
  });
});

describe("when a class is first used", () => {
  /** All the calls that may be the first use of a class. */
  const firstUses: Record<string, (type: WorkflowClass) => unknown> = {
    discoverWorkflows: (type) => discoverWorkflows({ type }),
    start: async (type) => (await memory()).start(type),
    startMany: async (type) => (await memory()).startMany(type, [undefined]),
    worker: async (type) => (await memory()).worker({ workflows: [type] }),
    runs: async (type) => (await memory()).runs({ workflow: type }),
    testPawl: (type) => testPawl({ workflows: [type] }),
  };

  async function memory(): Promise<Pawl> {
    const opened = await connect("memory:");
    onTestFinished(() => opened.close());
    return opened;
  }

  class MisplacedAfter extends Workflow {
    static {
      this.step("a", () => {});
      this.step("b", { afterStep: "aa" }, () => {});
    }
  }
  class MisplacedBefore extends Workflow {
    static {
      this.step("alpha", () => {});
      this.step("b", { beforeStep: "alpah" }, () => {});
    }
  }
  class Independent extends Workflow {
    static {
      this.step("alpha", () => {});
      this.task("b", { dependsOn: ["alpha", "alpah"] }, () => {});
    }
  }
  class MisspeltMethod extends Workflow {
    static {
      // @ts-expect-error: the compiler reports this mistake; JavaScript code gets the error below
      this.step("send_remindr");
    }
    async send_reminder() {}
    async send_welcome() {}
    get done() {
      return true;
    }
  }
  class MisspeltCondition extends Workflow {
    static {
      // @ts-expect-error: the compiler reports this mistake; JavaScript code gets the error below
      this.step("a", { skipIf: "unsubscribd" }, () => {});
    }
    get unsubscribed() {
      return true;
    }
  }
  class WithoutMethod extends Workflow {
    static {
      // @ts-expect-error: the compiler reports this mistake; JavaScript code gets the error below
      this.step("send");
    }
  }
  class WithoutCondition extends Workflow {
    static {
      // @ts-expect-error: the compiler reports this mistake; JavaScript code gets the error below
      this.step("a", { skipIf: "unsubscribed" }, () => {});
    }
  }
  class WithoutReason extends Workflow {
    static {
      // @ts-expect-error: the compiler reports this mistake; JavaScript code gets the error below
      this.cancelIf("deactivated");
      this.step("a", () => {});
    }
  }
  class Hiding extends Workflow {
    static {
      this.step("a", () => {});
    }
    // The compiler accepts this override.
    override sleep = async () => {};
  }

  const refused: readonly [string, WorkflowClass, object][] = [
    [
      "an afterStep that does not exist",
      MisplacedAfter,
      notDefined(
        "MisplacedAfter",
        "aa",
        'Step "b" of workflow MisplacedAfter has afterStep: "aa", which is not one of its steps; its other steps are "a".',
      ),
    ],
    [
      "a beforeStep that does not exist",
      MisplacedBefore,
      notDefined(
        "MisplacedBefore",
        "alpah",
        'Step "b" of workflow MisplacedBefore has beforeStep: "alpah", which is not one of its steps; did you mean "alpha"? Its other steps are "alpha".',
      ),
    ],
    [
      "a method that does not exist",
      WithoutMethod,
      notDefined(
        "WithoutMethod",
        "send",
        'Step "send" of workflow WithoutMethod has no function, and the class has no method of that name; it has no methods.',
      ),
    ],
    [
      "a method that is misspelt",
      MisspeltMethod,
      notDefined(
        "MisspeltMethod",
        "send_remindr",
        'Step "send_remindr" of workflow MisspeltMethod has no function, and the class has no method of that name; did you mean "send_reminder"? Its methods are "send_reminder", "send_welcome".',
      ),
    ],
    [
      "a dependency that does not exist",
      Independent,
      expect.objectContaining({
        code: "GRAPH_ERROR",
        message:
          '"b" of workflow Independent depends on "alpah", which does not exist; did you mean "alpha"? Its other steps and tasks are "alpha".',
      }),
    ],
    ["a condition that does not exist", WithoutCondition, about("WithoutCondition", "unsubscribed")],
    [
      "a condition that is misspelt",
      MisspeltCondition,
      about(
        "MisspeltCondition",
        'no member of that name; did you mean "unsubscribed"[?] Its members are "unsubscribed"[.]$',
      ),
    ],
    ["a cancelIf condition that does not exist", WithoutReason, about("WithoutReason", "deactivated")],
    ["a member that hides one of ctx", Hiding, about("Hiding", '"sleep"')],
  ];

  function notDefined(name: string, step: string, message: string) {
    const error = new StepNotDefinedError({ workflow: name, step, problem: message });
    expect(error.message).toBe(message);
    return error;
  }

  function about(name: string, problem: string) {
    return expect.objectContaining({
      code: "INVALID_INPUT",
      message: expect.stringMatching(new RegExp(`${name}.*${problem}`)),
    });
  }

  describe.each(refused)("%s is refused", (_what, type, problem) => {
    test.each(Object.entries(firstUses))("by %s", async (_use, use) => {
      await expect(async () => use(type)).rejects.toEqual(problem);
    });

    test("as a child of a workflow", async () => {
      const parent = workflow("parent", (ctx) => ctx.run(type).catch((error) => String(error)));
      const t = await testPawl({ workflows: [parent] });
      onTestFinished(() => t.close());
      const run = await t.pawl.start(parent);
      await t.speedrun(run);
      expect(await run.result()).toMatch(/StepNotDefinedError|InvalidInputError|GraphError/);
      expect((await t.pawl.runs()).runs).toHaveLength(1);
    });

    test("every time, not only the first time", () => {
      for (let time = 0; time < 2; time += 1) expect(() => discoverWorkflows({ type })).toThrow();
    });
  });

  /** `hero` and the members of the context, which a class must not redefine in any way. */
  const reserved = (
    "hero idempotencyKey runId workflowName input attempt executionId abortSignal log step transaction sleep sleepUntil " +
    "waitForSignal waitForAny waitForAll race run start map branch now random uuid progress patched cancel pause skip " +
    "reattempt finish suspend"
  ).split(" ");

  test.each(reserved)("a method, getter or field called %s is refused, even of a parent", (name) => {
    const hides = expect.objectContaining({ code: "INVALID_INPUT", message: expect.stringContaining(`"${name}"`) });
    class Method extends Workflow {}
    Object.defineProperty(Method.prototype, name, { value: () => {} });
    class Getter extends Workflow {}
    Object.defineProperty(Getter.prototype, name, { get: () => 1 });
    class Field extends Workflow {
      constructor() {
        super();
        Object.defineProperty(this, name, { value: 1 });
      }
    }
    class Child extends Method {}
    for (const type of [Method, Getter, Field, Child]) expect(() => discoverWorkflows({ type })).toThrow(hides);
  });

  test("no member of an instance works outside of a step, and the error says so", () => {
    class Made extends Workflow {}
    const made = new Made();
    expect(() => made.input).toThrow(/only inside its steps/);
    expect(() => made.sleep("a", 1)).toThrow(/only inside its steps/);
    expect(() => made.cancel()).toThrow(/only inside its steps/);
  });

  test("a valid class is compiled once", () => {
    class Good extends Workflow {
      static {
        this.step("a", () => {});
      }
    }
    const [first] = discoverWorkflows({ Good });
    expect(discoverWorkflows({ again: [Good] })).toEqual([first]);
    expect(discoverWorkflows({ Good })[0]).toBe(first);
    expect(() => Good.step("b", () => {})).toThrow(InvalidInputError);
  });
});
