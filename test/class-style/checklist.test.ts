/**
 * The checklist of the library that class style continues, row by row: each test has the name of its row. Where the row
 * names a feature of Rails, the test covers its counterpart in Pawl.
 */
import { AlreadyActiveError, connect, type StepExecution, Workflow } from "pawl";
import { describe, expect, onTestFinished, test } from "vitest";
import { working } from "../support/class-workflows.js";
import { type AnyStoreKind, emptyDatabase, forEachStore } from "../support/databases.js";
import { forMemoryAnd } from "../support/effort.js";
import { rawSql } from "../support/raw-sql.js";
import { attemptsOf, expectSound, logOf } from "../support/run-checks.js";
import { databaseFor, silent, start, world } from "../support/virtual-worlds.js";
import { errorOf, gate } from "../support/waiting.js";

const databases: readonly AnyStoreKind[] = ["sqlite", "postgres", "mysql", "sqld"];
const dayMs = 86_400_000;

interface User {
  readonly name: string;
  deactivated?: boolean;
}

describe("Core Features", () => {
  describe("ActiveRecord-backed workflows (STI): runs of all classes are rows of one table that names their class", () => {
    forEachStore((kind) => {
      const database = databaseFor(kind);

      test("in the database itself", async () => {
        class Signup extends Workflow {
          static {
            this.step("welcome", { wait: "1 day" }, () => {});
          }
        }
        class Payment extends Workflow {
          static {
            this.step("charge", () => {});
          }
        }
        const w = await database.world();
        const worker = await w.worker([Signup, Payment]);
        await w.pawl.start(Signup, undefined, { hero: { type: "User", id: "1" } });
        await w.pawl.start(Payment);
        await worker.settle();
        const sql = await rawSql(database.url());
        onTestFinished(() => sql.close());
        const rows = await sql.query("SELECT workflow, status, hero_type, hero_id FROM pawl_runs ORDER BY workflow");
        expect(rows).toEqual([
          { workflow: "Payment", status: "completed", hero_type: null, hero_id: null },
          { workflow: "Signup", status: "waiting", hero_type: "User", hero_id: "1" },
        ]);
        const events = await sql.query("SELECT count(*) AS n FROM pawl_events");
        expect(Number(events[0]?.n)).toBeGreaterThan(0);
      });
    }, databases);
  });

  test("Polymorphic hero association", async () => {
    const seenHeroes: unknown[] = [];
    class Auditing extends Workflow {
      static {
        this.step("meet", (w) => void seenHeroes.push(w.hero));
      }
    }
    const t = await start(Auditing);
    const heroes = [
      { type: "User", id: "1" },
      { type: "Order", id: "1" },
      { type: "Order", id: "01900000-0000-7000-8000-000000000000" },
    ];
    for (const hero of heroes) {
      const run = await t.pawl.start(Auditing, undefined, { hero });
      await t.speedrun(run);
      expect((await run.get()).hero).toEqual(hero);
    }
    expect(seenHeroes).toEqual(heroes);
  });

  test("Step DSL (named and anonymous)", async () => {
    class Mixed extends Workflow {
      static {
        this.step("named", () => {});
        this.step(() => {});
        this.step({ wait: "1h" }, () => {});
        this.step("method");
      }
      method() {}
    }
    const t = await start(Mixed);
    const run = await t.pawl.start(Mixed);
    await t.speedrun(run);
    expect((await run.executions()).map(({ step }) => step)).toEqual(["named", "step_2", "step_3", "method"]);
  });

  test("Wait times between steps", async () => {
    const at: number[] = [];
    class Drip extends Workflow {
      static {
        this.step("first", { wait: "1h" }, () => void at.push(t.clock.read()));
        this.step("at_once", () => void at.push(t.clock.read()));
        this.step("two_days_later", { wait: "2 days" }, () => void at.push(t.clock.read()));
        this.step("a_week_later", { wait: "7 days" }, () => void at.push(t.clock.read()));
      }
    }
    const t = await start(Drip);
    const begin = t.clock.read();
    const run = await t.pawl.start(Drip);
    await t.speedrun(run);
    const hourMs = 3_600_000;
    expect(at.map((instant) => instant - begin)).toEqual([hourMs, hourMs, hourMs + 2 * dayMs, hourMs + 9 * dayMs]);
  });

  test("State machine (ready/performing/finished/canceled/paused)", async () => {
    const started = gate();
    const finish = gate();
    class Story extends Workflow {
      static {
        this.step("perform", async () => {
          started.open();
          await finish.opened;
        });
        this.step("ask", (w) => (w.attempt === 1 ? w.pause() : undefined));
        this.step("later", { wait: "1 day" }, () => {});
      }
    }
    const w = await world();
    const run = await w.pawl.start(Story);
    expect(await run.status()).toBe("pending");
    const worker = await w.worker([Story]);
    await started.opened;
    expect(await run.status()).toBe("running");
    finish.open();
    await worker.settle();
    expect(await run.status()).toBe("paused");
    await run.resume();
    await worker.settle();
    expect(await run.status()).toBe("waiting");
    w.clock.moveTo(w.clock.read() + dayMs);
    await worker.settle();
    expect(await run.status()).toBe("completed");
    await worker.worker.stop();
    const other = await w.pawl.start(Story);
    await other.cancel();
    expect(await other.status()).toBe("canceled");
    await expectSound(w);
  });

  describe("Lock-guarded execution", () => {
    forMemoryAnd("sqlite", (kind) => {
      const database = databaseFor(kind);

      test("three workers at the same runs execute each step once", async () => {
        const executed: string[] = [];
        class Guarded extends Workflow {
          static {
            for (const name of ["a", "b", "c"])
              this.step(name, async (run) => {
                await new Promise((resolve) => setImmediate(resolve));
                executed.push(`${run.runId} ${name}`);
              });
          }
        }
        const w = await database.world();
        const runs = await w.pawl.startMany(Guarded, Array(20).fill(undefined));
        await Promise.all(Array.from({ length: 3 }, () => w.worker([Guarded], { concurrency: 4 })));
        await Promise.all(runs.map((run) => run.result({ timeout: "100s" })));
        expect(executed).toHaveLength(60);
        expect(new Set(executed).size).toBe(60);
        await expectSound(w);
      });

      test("a worker that was declared dead cannot record the end of its step", async () => {
        const started = gate();
        const finish = gate();
        let bodies = 0;
        const Frozen = working(
          async () => {
            bodies += 1;
            if (bodies > 1) return "the successor's";
            started.open();
            await finish.opened;
            return "the dead one's";
          },
          {},
          { name: "Frozen" },
        );
        const w = await database.world();
        const frozen = await w.worker([Frozen]);
        const run = await w.pawl.start(Frozen);
        await started.opened;
        for (const { id, epoch } of await w.store.workers()) await w.store.deregisterWorker({ workerId: id, epoch });
        await w.worker([Frozen]);
        await run.result({ timeout: "100s" });
        const log = await logOf(run);
        finish.open();
        await frozen.settle();
        expect(await logOf(run)).toEqual(log);
        expect(
          (await run.history()).find(({ type, node }) => type === "step.completed" && node === "work"),
        ).toMatchObject({
          data: { output: "the successor's" },
        });
      });
    });
  });

  describe("Single execution guarantee per workflow", () => {
    forMemoryAnd("sqlite", (kind) => {
      const database = databaseFor(kind);

      test("a run never has two executions at a time, whichever commands it receives and however many workers there are", async () => {
        const active = new Map<string, number>();
        const overlaps: string[] = [];
        class Single extends Workflow {
          static {
            for (const name of ["a", "b", "c"])
              this.step(name, async (run) => {
                const others = active.get(run.runId) ?? 0;
                if (others > 0) overlaps.push(`${run.runId} ${name}`);
                active.set(run.runId, others + 1);
                await new Promise((resolve) => setImmediate(resolve));
                active.set(run.runId, (active.get(run.runId) as number) - 1);
                if (run.attempt === 1) run.reattempt();
              });
          }
        }
        const w = await database.world();
        await Promise.all(Array.from({ length: 3 }, () => w.worker([Single], { concurrency: 4 })));
        const runs = await w.pawl.startMany(Single, Array(10).fill(undefined));
        await Promise.all(runs.map((run) => run.signal("noise").catch(() => {})));
        await Promise.all(runs.map((run) => run.result({ timeout: "100s" })));
        expect(overlaps).toEqual([]);
        for (const run of runs) {
          const executions = await run.executions();
          expect(executions).toHaveLength(6);
          expect(new Set(executions.map(({ id }) => id)).size).toBe(6);
        }
      });
    });

    test("at most one execution is open in every state of a run", async () => {
      class Watched extends Workflow {
        static {
          this.step("first", { wait: "1h" }, (w) => (w.attempt < 3 ? w.reattempt({ wait: "1h" }) : undefined));
          this.step("second", (w) => (w.attempt === 1 ? w.pause() : undefined));
          this.step("third", { wait: "1h" }, () => {});
        }
      }
      const t = await start(Watched);
      const run = await t.pawl.start(Watched);
      const open: number[] = [];
      for (let hours = 0; hours < 6; hours += 1) {
        await t.settle();
        open.push((await run.executions()).filter(({ finishedAt }) => finishedAt === null).length);
        if ((await run.status()) === "paused") await run.resume();
        else await t.advance("1h");
      }
      expect(open).toEqual([1, 1, 1, 0, 1, 0]);
      expect(await run.status()).toBe("completed");
    });
  });

  test("Class-inheritable DSL (steps, cancel_if, job_options)", async () => {
    const executed: string[] = [];
    const facts = { parent: false, child: false };
    class Base extends Workflow {
      static {
        this.options({ queue: "base", priority: 3 });
        this.cancelIf(() => facts.parent);
        this.step("first", () => void executed.push("base first"));
      }
    }
    class Sub extends Base {
      static {
        this.options({ queue: "sub" });
        this.cancelIf(() => facts.child);
        this.step("second", () => void executed.push("sub second"));
      }
    }
    class Sibling extends Base {}
    const t = await start(Base, Sub, Sibling);
    const run = async (workflow: typeof Base) => {
      executed.length = 0;
      const one = await t.pawl.start(workflow);
      await t.settle();
      const { status, queue, priority } = await one.get();
      return { executed: [...executed], status, queue, priority };
    };
    const parent = { executed: ["base first"], status: "completed", queue: "base", priority: 3 };
    expect(await run(Sub)).toEqual({ ...parent, executed: ["base first", "sub second"], queue: "sub" });
    expect(await run(Base)).toEqual(parent);
    expect(await run(Sibling)).toEqual(parent);
    facts.child = true;
    expect(await run(Sub)).toMatchObject({ executed: [], status: "canceled" });
    expect(await run(Base)).toEqual(parent);
    Object.assign(facts, { child: false, parent: true });
    expect(await run(Sub)).toMatchObject({ executed: [], status: "canceled" });
    expect(await run(Base)).toMatchObject({ executed: [], status: "canceled" });
  });
});

/** Runs a class to its end and returns the steps that were executed, in order. */
async function chainOf(workflow: new () => Workflow): Promise<string[]> {
  const t = await start(workflow);
  const run = await t.pawl.start(workflow);
  await t.speedrun(run);
  return (await run.executions()).map(({ step }) => step);
}

describe("Step Definition", () => {
  test("Named steps with blocks", async () => {
    const seen: unknown[] = [];
    class Blocks extends Workflow<unknown, { n: number }> {
      static {
        this.step("first", (w) => void seen.push(w.input.n));
        this.step("second", async function (this: unknown, w) {
          seen.push(this === w);
        });
      }
    }
    const t = await start(Blocks);
    await t.speedrun(await t.pawl.start(Blocks, { n: 7 }));
    expect(seen).toEqual([7, true]);
  });

  test("Anonymous steps with auto-naming", async () => {
    class Parent extends Workflow {
      static {
        this.step(() => {});
        this.step({}, async () => {});
      }
    }
    class Child extends Parent {
      static {
        this.step(() => {});
      }
    }
    expect(await chainOf(Parent)).toEqual(["step_1", "step_2"]);
    expect(await chainOf(Child)).toEqual(["step_1", "step_2", "step_3"]);
  });

  test("Instance method steps (`step :method_name`)", async () => {
    const executed: string[] = [];
    class Methods extends Workflow {
      static {
        this.step("greet");
        this.step("leave", { wait: "1h" });
      }
      readonly greeting = "hello";
      greet() {
        executed.push(this.greeting);
      }
      async leave() {
        executed.push(`${this.runId === "" ? "" : "bye"}`);
      }
    }
    class Overriding extends Methods {
      override greet() {
        executed.push("overridden");
      }
    }
    expect(await chainOf(Methods)).toEqual(["greet", "leave"]);
    expect(await chainOf(Overriding)).toEqual(["greet", "leave"]);
    expect(executed).toEqual(["hello", "bye", "overridden", "bye"]);
  });

  test("Inline method definition (`step def method_name`)", async () => {
    const executed: string[] = [];
    class Inline extends Workflow {
      static {
        this.step(async function send_receipt(w) {
          executed.push(w.executionId);
        });
        this.step({ wait: "1h" }, function send_reminder() {});
      }
    }
    expect(await chainOf(Inline)).toEqual(["send_receipt", "send_reminder"]);
    expect(executed).toHaveLength(1);
  });

  test("Step ordering (before_step/after_step)", async () => {
    class Parent extends Workflow {
      static {
        this.step("a", () => {});
        this.step("b", () => {});
        this.step("early", { beforeStep: "a" }, () => {});
        this.step("a2", { afterStep: "a" }, () => {});
        this.step("a3", { afterStep: "a" }, () => {});
      }
    }
    class Child extends Parent {
      static {
        this.step("earliest", { beforeStep: "early" }, () => {});
        this.step("c", () => {});
        this.step("beside_a3", { afterStep: "a3" }, () => {});
      }
    }
    expect(await chainOf(Parent)).toEqual(["early", "a", "a2", "a3", "b"]);
    expect(await chainOf(Child)).toEqual(["earliest", "early", "a", "a2", "a3", "beside_a3", "b", "c"]);
  });
});

describe("Conditional Logic", () => {
  test("skip_if with symbols/callables/booleans", async () => {
    const executed: string[] = [];
    const note = (w: Workflow) => void executed.push(w.executionId.split(":")[1] as string);
    class Conditions extends Workflow {
      static {
        this.step("getter_true", { skipIf: "yes" }, note);
        this.step("getter_false", { skipIf: "no" }, note);
        this.step("method_true", { skipIf: "isSo" }, note);
        this.step("method_false", { skipIf: "isNot" }, note);
        this.step("function_true", { skipIf: () => true }, note);
        this.step("function_false", { skipIf: async (w) => w.no }, note);
        this.step("boolean_true", { skipIf: true }, note);
        this.step("boolean_false", { skipIf: false }, note);
        this.step("if_true", { if: "yes" }, note);
        this.step("if_false", { if: () => false }, note);
        this.step("both", { if: true, skipIf: true }, note);
      }
      get yes() {
        return true;
      }
      get no() {
        return false;
      }
      async isSo() {
        return this.yes;
      }
      isNot() {
        return this.no;
      }
    }
    const t = await start(Conditions);
    const run = await t.pawl.start(Conditions);
    await t.speedrun(run);
    const expected = ["getter_false", "method_false", "function_false", "boolean_false", "if_true"];
    expect(executed).toEqual(expected);
    const skipped = (await run.executions()).filter(({ outcome }) => outcome === "skipped_by_condition");
    expect(skipped.map(({ step }) => step)).toEqual([
      "getter_true",
      "method_true",
      "function_true",
      "boolean_true",
      "if_false",
      "both",
    ]);
  });

  test("skip_if evaluated at execution time (not scheduling), and again at every attempt", async () => {
    const evaluatedAt: number[] = [];
    const facts = { skip: true };
    const Later = working(
      (w) => {
        facts.skip = true;
        w.reattempt({ wait: "1 day" });
      },
      {
        wait: "1 day",
        skipIf: () => {
          evaluatedAt.push(t.clock.read());
          return facts.skip;
        },
      },
    );
    const t = await start(Later);
    const begin = t.clock.read();
    const run = await t.pawl.start(Later);
    await t.settle();
    expect(evaluatedAt).toEqual([]);
    facts.skip = false;
    await t.speedrun(run);
    expect(evaluatedAt).toEqual([begin + dayMs, begin + 2 * dayMs]);
    expect(await attemptsOf(run)).toEqual([
      "work 1 completed reattempted",
      "work 2 skipped skipped_by_condition",
      "after 1 completed success",
    ]);
  });

  test("cancel_if for blanket conditions", async () => {
    const executed: string[] = [];
    const user: User = { name: "Ada" };
    class Onboarding extends Workflow<User> {
      static loadHero = () => user;
      static {
        this.cancelIf("isDeactivated", false, () => false);
        this.step("welcome", () => void executed.push("welcome"));
        this.step("reminder", { wait: "2 days" }, () => void executed.push("reminder"));
      }
      isDeactivated() {
        return this.hero.deactivated === true;
      }
    }
    const t = await start(Onboarding);
    const run = await t.pawl.start(Onboarding, undefined, { hero: { type: "User", id: "1" } });
    await t.settle();
    user.deactivated = true;
    expect(await run.status()).toBe("waiting");
    await t.speedrun(run);
    expect(executed).toEqual(["welcome"]);
    expect(await attemptsOf(run)).toEqual(["welcome 1 completed success", "reminder 1 canceled canceled_by_condition"]);
    expect(await run.get()).toMatchObject({
      status: "canceled",
      canceledAt: t.clock.now,
      error: { message: "A cancelIf condition (isDeactivated) is true." },
    });
  });

  test("Class-inheritable cancel_if", async () => {
    const facts = new Map([
      ["grandparent", false],
      ["parent", false],
      ["child", false],
    ]);
    const isTrue = (name: string) => () => facts.get(name) as boolean;
    class Grandparent extends Workflow {
      static {
        this.cancelIf(isTrue("grandparent"));
        this.step("work", () => {});
      }
    }
    class Parent extends Grandparent {
      static {
        this.cancelIf(isTrue("parent"));
      }
    }
    class Child extends Parent {
      static {
        this.cancelIf(isTrue("child"));
      }
    }
    const t = await start(Grandparent, Parent, Child);
    const canceled = async (name: string) => {
      facts.set(name, true);
      const executedSteps: string[] = [];
      for (const workflow of [Grandparent, Parent, Child]) {
        const run = await t.pawl.start(workflow);
        await t.settle();
        if ((await run.status()) === "canceled") executedSteps.push(workflow.name);
      }
      facts.set(name, false);
      return executedSteps;
    };
    expect(await canceled("nobody")).toEqual([]);
    expect(await canceled("grandparent")).toEqual(["Grandparent", "Parent", "Child"]);
    expect(await canceled("parent")).toEqual(["Parent", "Child"]);
    expect(await canceled("child")).toEqual(["Child"]);
  });
});

describe("Flow Control", () => {
  test("cancel! - mark workflow canceled", async () => {
    const Canceling = working((w) => w.cancel("fraud"));
    const t = await start(Canceling);
    const run = await t.pawl.start(Canceling);
    await t.settle();
    expect(await run.get()).toMatchObject({ status: "canceled", canceledAt: t.clock.now });
    expect(await attemptsOf(run)).toEqual(["work 1 canceled canceled_by_flow_control"]);
  });

  test("pause! - pause for manual intervention", async () => {
    const Pausing = working((w) => w.pause("a human must look"));
    const t = await start(Pausing);
    const run = await t.pawl.start(Pausing);
    await t.advance("30 days");
    expect(await run.get()).toMatchObject({ status: "paused", pauseReason: "a human must look", currentStep: "work" });
    expect(await attemptsOf(run)).toEqual(["work 1 canceled workflow_paused"]);
  });

  test("reattempt! - retry current step with optional wait", async () => {
    const at: number[] = [];
    const Retrying = working((w) => {
      at.push(t.clock.read());
      if (w.attempt === 1) w.reattempt();
      if (w.attempt === 2) w.reattempt({ wait: "1h" });
    });
    const t = await start(Retrying);
    const begin = t.clock.read();
    const run = await t.pawl.start(Retrying);
    await t.speedrun(run);
    expect(at).toEqual([begin, begin, begin + 3_600_000]);
    expect(await attemptsOf(run)).toEqual([
      "work 1 completed reattempted",
      "work 2 completed reattempted",
      "work 3 completed success",
      "after 1 completed success",
    ]);
  });

  test("skip! - skip current step, proceed to next", async () => {
    const Skipping = working((w) => w.skip());
    const t = await start(Skipping);
    const run = await t.pawl.start(Skipping);
    await t.settle();
    expect(await attemptsOf(run)).toEqual(["work 1 skipped skipped_by_flow_control", "after 1 completed success"]);
  });

  test("finished! - mark workflow complete", async () => {
    const Finishing = working((w) => w.finish());
    const t = await start(Finishing);
    const run = await t.pawl.start(Finishing);
    await t.settle();
    expect(await run.get()).toMatchObject({ status: "completed", finishedAt: t.clock.now });
    expect(await attemptsOf(run)).toEqual(["work 1 completed success"]);
  });

  test("resume! - resume paused workflow", async () => {
    const Pausing = working((w) => (w.attempt === 1 ? w.pause() : undefined));
    const t = await start(Pausing);
    const run = await t.pawl.start(Pausing);
    await t.settle();
    await run.resume();
    await t.settle();
    expect(await run.get()).toMatchObject({ status: "completed", pausedAt: null });
    expect(await errorOf(run.resume())).toMatchObject({ code: "INVALID_STATE" });
  });
});

describe("Scheduling", () => {
  describe("Forward scheduler (enqueue jobs early)", () => {
    forMemoryAnd("sqlite", (kind) => {
      const database = databaseFor(kind);

      test("a step is scheduled as soon as the one before it ends, and no worker is needed until it is due", async () => {
        const Later = working(() => {}, { wait: "2 days" }, { name: "Later" });
        const w = await database.world();
        const begin = w.clock.read();
        const first = await w.worker([Later]);
        const run = await w.pawl.start(Later);
        expect(await first.settle()).toBe(begin + 2 * dayMs);
        await first.worker.stop();
        expect(await run.executions()).toMatchObject([
          { step: "work", attempt: 1, state: "scheduled", scheduledFor: new Date(begin + 2 * dayMs), startedAt: null },
        ]);
        expect(await run.get()).toMatchObject({
          status: "waiting",
          currentStep: "work",
          waitingFor: [{ kind: "step", step: "work", attempt: 1 }],
        });
        w.clock.moveTo(begin + 2 * dayMs - 1);
        const second = await w.worker([Later]);
        expect(await second.settle()).toBe(begin + 2 * dayMs);
        expect(await run.status()).toBe("waiting");
        w.clock.moveTo(begin + 2 * dayMs);
        await second.settle();
        expect(await run.status()).toBe("completed");
        await expectSound(w);
      });
    });
  });
});

describe("ActiveJob Integration", () => {
  test("PerformStepJob for step execution: any worker that has the class performs the next step of any run", async () => {
    const performed: string[] = [];
    const made = (worker: string) =>
      class Relay extends Workflow {
        static {
          for (const name of ["a", "b", "c"])
            this.step(name, { wait: "1h" }, () => void performed.push(`${worker} ${name}`));
        }
      };
    const w = await world();
    const run = await w.pawl.start(made("client"));
    for (const name of ["first", "second", "third", "fourth"]) {
      const worker = await w.worker([made(name)]);
      await worker.settle();
      await worker.worker.stop();
      w.clock.moveTo(w.clock.read() + 3_600_000);
    }
    expect(performed).toEqual(["second a", "third b", "fourth c"]);
    expect(await run.status()).toBe("completed");
  });

  test("set_step_job_options for queue/priority", async () => {
    const order: string[] = [];
    const noted = (name: string, priority: number) =>
      working(() => void order.push(name), {}, { name, queue: "mail", priority });
    const [low, high, middle] = [noted("low", -1), noted("high", 9), noted("middle", 4)];
    const w = await world();
    const runs = [await w.pawl.start(low), await w.pawl.start(high), await w.pawl.start(middle)];
    const elsewhere = await w.worker([low, high, middle], { queues: ["billing"] });
    await elsewhere.settle();
    expect(order).toEqual([]);
    await (await w.worker([low, high, middle], { queues: ["mail"], concurrency: 1 })).settle();
    expect(order).toEqual(["high", "middle", "low"]);
    expect(await runs[1]?.get()).toMatchObject({ queue: "mail", priority: 9 });
  });

  test("set_step_job_options for queue/priority: of one step", async () => {
    const performed: string[] = [];
    const made = (worker: string) =>
      class Mixed extends Workflow {
        static {
          this.options({ queue: "light" });
          this.step("think", () => void performed.push(`${worker} think`));
          this.step("render", { queue: "heavy" }, () => void performed.push(`${worker} render`));
          this.step("send", () => void performed.push(`${worker} send`));
        }
      };
    const w = await world();
    const light = await w.worker([made("light")], { queues: ["light"] });
    const run = await w.pawl.start(made("client"));
    await light.settle();
    expect(performed).toEqual(["light think"]);
    const heavy = await w.worker([made("heavy")], { queues: ["heavy"] });
    await heavy.settle();
    await light.settle();
    expect(performed).toEqual(["light think", "heavy render", "light send"]);
    expect(await run.status()).toBe("completed");
  });

  test("Class-inheritable job options", async () => {
    class Base extends Workflow {
      static {
        this.options({ queue: "base", priority: 5, tags: ["base"] });
      }
    }
    class Same extends Base {}
    class Other extends Base {
      static {
        this.options({ queue: "premium" });
      }
    }
    const t = await start(Base, Same, Other);
    const optionsOf = async (workflow: typeof Base) => {
      const { queue, priority, tags } = await (await t.pawl.start(workflow)).get();
      return { queue, priority, tags };
    };
    const inherited = { queue: "base", priority: 5, tags: ["base"] };
    expect(await optionsOf(Same)).toEqual(inherited);
    expect(await optionsOf(Other)).toEqual({ ...inherited, queue: "premium" });
    expect(await optionsOf(Base)).toEqual(inherited);
  });
});

describe("Exception Handling", () => {
  const boom = () => {
    throw new Error("boom");
  };
  test.each([
    ["on_exception: :pause! (default)", {}, "paused_by_exception", "paused"],
    ["on_exception: :cancel!", { onException: "cancel" }, "canceled_by_exception", "canceled"],
    ["on_exception: :reattempt!", { onException: "reattempt" }, "reattempted_by_exception", "waiting"],
    ["on_exception: :skip!", { onException: "skip" }, "skipped_by_exception", "completed"],
  ] as const)("%s", async (_row, options, outcome, status) => {
    const Failing = working(boom, options);
    const t = await start(Failing);
    const run = await t.pawl.start(Failing);
    await t.settle();
    expect((await attemptsOf(run))[0]).toBe(`work 1 failed ${outcome}`);
    expect(await run.status()).toBe(status);
  });

  describe("Store error message/backtrace", () => {
    forMemoryAnd("sqlite", (kind) => {
      const database = databaseFor(kind);

      test("with the execution that threw", async () => {
        const Failing = working(
          function chargeTheCard() {
            throw new TypeError("declined", { cause: new Error("expired") });
          },
          {},
          { name: "Failing" },
        );
        const w = await database.world();
        const worker = await w.worker([Failing]);
        const run = await w.pawl.start(Failing);
        await worker.settle();
        const [execution] = await run.executions();
        expect(execution?.error).toMatchObject({
          name: "TypeError",
          message: "declined",
          cause: { message: "expired" },
        });
        expect(execution?.error?.stack).toContain("chargeTheCard");
      });
    });
  });
});

describe("Uniqueness", () => {
  const hero = { type: "User", id: "1" };

  test("One workflow per hero by default", async () => {
    const Waiting = working((w) => w.waitForSignal("go"));
    const t = await start(Waiting);
    const first = await t.pawl.start(Waiting, undefined, { hero });
    const error = await errorOf(t.pawl.start(Waiting, undefined, { hero }));
    expect(error).toBeInstanceOf(AlreadyActiveError);
    expect(error).toMatchObject({ runId: first.id, hero });
    await t.settle();
    await first.signal("go");
    await t.settle();
    expect((await t.pawl.start(Waiting, undefined, { hero })).id).not.toBe(first.id);
  });

  test("allow_multiple flag for concurrent workflows", async () => {
    const Many = working((w) => w.waitForSignal("go"), {}, { allowMultiple: true });
    const t = await start(Many);
    for (let n = 0; n < 3; n += 1) await t.pawl.start(Many, undefined, { hero });
    expect((await t.pawl.runs({ hero, active: true })).runs).toHaveLength(3);
  });

  describe("Database-enforced constraints (PostgreSQL, MySQL, SQLite)", () => {
    forEachStore((kind) => {
      const database = databaseFor(kind);

      test("the table itself refuses a second active run of a class and hero, also past the library", async () => {
        const Waiting = working((w) => w.waitForSignal("go"), {}, { name: "Waiting" });
        const w = await database.world();
        const strict = await w.pawl.start(Waiting, undefined, { hero });
        const other = await w.pawl.start(Waiting, undefined, { hero, allowMultiple: true });
        const sql = await rawSql(database.url());
        onTestFinished(() => sql.close());
        const [row] = await sql.query(`SELECT hero_key FROM pawl_runs WHERE id = '${strict.id}'`);
        const copy = `UPDATE pawl_runs SET hero_key = '${row?.hero_key}' WHERE id = '${other.id}'`;
        expect((await errorOf(sql.query(copy))).message).toMatch(/unique|duplicate/i);
        await strict.cancel();
        // The uniqueness key belongs to the active run.
        await sql.query(copy);
      });
    }, databases);
  });
});

describe("Querying", () => {
  /** Starts five runs of different heroes in different states, and one that has not started. */
  async function startSixRuns() {
    const Story = working(
      (w) => {
        const { id } = w.hero as { id: string };
        if (id === "waiting") return w.sleep("nap", "1 day");
        if (id === "paused") w.pause();
        if (id === "canceled") w.cancel();
        if (id === "failed") throw new Error("boom");
        return undefined;
      },
      { onException: "fail" },
    );
    const w = await world();
    const worker = await w.worker([Story]);
    const heroes = ["waiting", "paused", "canceled", "failed", "completed"];
    for (const id of heroes) await w.pawl.start(Story, undefined, { hero: { type: "User", id } });
    await worker.settle();
    await worker.worker.stop();
    await w.pawl.start(Story, undefined, { hero: { type: "User", id: "pending" } });
    const findHeroes = async (filter: Parameters<typeof w.pawl.runs>[0]) =>
      (await w.pawl.runs({ workflow: Story, ...filter })).runs.map((run) => run.hero?.id).sort();
    return { findHeroes, states: [...heroes, "pending"] as const };
  }

  test("State scopes (ready, paused, finished, etc.)", async () => {
    const { findHeroes, states } = await startSixRuns();
    for (const status of states) expect(await findHeroes({ status: status as never })).toEqual([status]);
    expect(await findHeroes({ status: "running" })).toEqual([]);
  });

  test("for_hero scope", async () => {
    const { findHeroes } = await startSixRuns();
    expect(await findHeroes({ hero: { type: "User", id: "paused" } })).toEqual(["paused"]);
    expect(await findHeroes({ hero: { type: "Order", id: "paused" } })).toEqual([]);
  });

  test("active scope", async () => {
    const { findHeroes } = await startSixRuns();
    expect(await findHeroes({ active: true })).toEqual(["paused", "pending", "waiting"]);
    expect(await findHeroes({ active: false })).toEqual(["canceled", "completed", "failed"]);
  });
});

describe("Hooks & Callbacks", () => {
  test("before_step_starts(step_name), and its companions after and around, in their order", async () => {
    const calls: string[] = [];
    class Base extends Workflow {
      static {
        this.step("first", () => void calls.push("first"));
        this.step("skipped", { skipIf: true }, () => {});
        this.step("second", (w) => {
          calls.push("second");
          if (w.attempt === 1) w.reattempt();
        });
      }
      override beforeStepExecution({ step, attempt }: StepExecution) {
        calls.push(`before ${step} ${attempt}`);
      }
    }
    class Hooked extends Base {
      override async aroundStepExecution({ step }: StepExecution, next: () => Promise<void>) {
        calls.push(`around ${step}`);
        await next();
        calls.push(`around ${step} ends`);
      }
      override async afterStepExecution({ step, flow }: StepExecution) {
        calls.push(`after ${step}${flow === undefined ? "" : ` by ${flow}`}`);
      }
    }
    const t = await start(Hooked);
    await t.speedrun(await t.pawl.start(Hooked));
    expect(calls).toEqual([
      "before first 1",
      "around first",
      "first",
      "around first ends",
      "after first",
      "before second 1",
      "around second",
      "second",
      "after second by reattempt",
      "before second 2",
      "around second",
      "second",
      "around second ends",
      "after second",
    ]);
  });
});

describe("Rails Integration", () => {
  describe("Migration templates with database detection: connect() makes the tables that the database of its URL needs", () => {
    forEachStore((kind) => {
      test("once, or only checks that they are there", async () => {
        const database = await emptyDatabase(kind);
        onTestFinished(() => database.drop());
        const { url } = database;
        expect(await errorOf(connect(url, { migrate: false, logger: silent }))).toMatchObject({
          code: "MIGRATION_ERROR",
        });
        const [one, two] = await Promise.all([connect(url, { logger: silent }), connect(url, { logger: silent })]);
        const three = await connect(url, { migrate: false, logger: silent });
        const Plain = working(() => {});
        await one.start(Plain);
        expect((await three.runs()).runs).toHaveLength(1);
        for (const pawl of [one, two, three]) await pawl.close();
      });
    }, databases);
  });
});

describe("Audit Trail", () => {
  describe("Step execution history preserved, with an outcome for each", () => {
    forMemoryAnd("sqlite", (kind) => {
      const database = databaseFor(kind);

      test("remains complete and in order after the run has ended, with times and links", async () => {
        class Signup extends Workflow {
          static {
            this.step("send_welcome", () => {});
            this.step("send_reminder", { wait: "2 days" }, (w) =>
              w.attempt === 1 ? w.reattempt({ wait: "1h" }) : undefined,
            );
            this.step("complete", { skipIf: true }, () => {});
          }
        }
        const w = await database.world();
        const begin = w.clock.read();
        const worker = await w.worker([Signup]);
        const run = await w.pawl.start(Signup);
        for (let due = await worker.settle(); due !== null; due = await worker.settle()) w.clock.moveTo(due);
        expect(await run.status()).toBe("completed");
        expect(await attemptsOf(run)).toEqual([
          "send_welcome 1 completed success",
          "send_reminder 1 completed reattempted",
          "send_reminder 2 completed success",
          "complete 1 skipped skipped_by_condition",
        ]);
        const [, first, second] = await run.executions();
        expect(first).toMatchObject({
          scheduledFor: new Date(begin + 2 * dayMs),
          finishedAt: new Date(begin + 2 * dayMs),
        });
        expect(second).toMatchObject({ finishedAt: new Date(begin + 2 * dayMs + 3_600_000), continuesFrom: first?.id });
        expect(first?.successor).toBe(second?.id);
      });
    });
  });

  test("Outcome column for debugging: it is in the log beside the event", async () => {
    const Skipping = working((w) => w.skip());
    const t = await start(Skipping);
    const run = await t.pawl.start(Skipping);
    await t.settle();
    expect((await run.history()).filter(({ node }) => node !== null)).toMatchObject([
      { type: "step.skipped", node: "work", attempt: 1, outcome: "skipped_by_flow_control" },
      { type: "step.completed", node: "after", attempt: 1, outcome: "success" },
    ]);
  });

  test("Error message/backtrace storage: of every attempt, not only the last", async () => {
    const Failing = working(
      (w) => {
        throw new Error(`attempt ${w.attempt}`);
      },
      { onException: "reattempt", maxReattempts: 2, terminalAction: "fail" },
    );
    const t = await start(Failing);
    const run = await t.pawl.start(Failing);
    await t.speedrun(run);
    const errors = (await run.executions()).map(({ error }) => error);
    expect(errors.map((error) => error?.message)).toEqual(["attempt 1", "attempt 2", "attempt 3"]);
    for (const error of errors) expect(error?.stack).toContain("checklist.test.ts");
    expect((await run.get()).error).toMatchObject({ message: "attempt 3" });
  });
});

describe("Testing", () => {
  test("speedrun_workflow helper", async () => {
    const executed: string[] = [];
    class Slow extends Workflow {
      static {
        this.step("first", { wait: "30 days" }, () => void executed.push("first"));
        this.step("second", { wait: "365 days" }, () => void executed.push("second"));
      }
    }
    const t = await start(Slow);
    const begin = t.clock.read();
    const run = await t.pawl.start(Slow);
    expect(await t.speedrunCurrentStep(run)).toMatchObject({ step: "first", outcome: "success" });
    expect(executed).toEqual(["first"]);
    expect(t.clock.read()).toBe(begin + 30 * dayMs);
    await t.speedrun(run);
    expect(executed).toEqual(["first", "second"]);
    expect(t.clock.read()).toBe(begin + 395 * dayMs);
    const stuck = working((w) => w.pause("ask"));
    const u = await start(stuck);
    expect((await errorOf(u.speedrun(await u.pawl.start(stuck)))).message).toContain("ask");
  });

  test("Reload between steps in tests: each execution has a fresh instance and a freshly loaded hero", async () => {
    const users = new Map([["1", { name: "Ada" }]]);
    const greeted: string[] = [];
    class Greeting extends Workflow<{ name: string }> {
      static loadHero = (id: string) => users.get(id);
      static {
        this.step("first", (w) => {
          w.memory.push("first");
          greeted.push(`${w.hero.name} ${w.memory.join()}`);
        });
        this.step("second", (w) => {
          w.memory.push("second");
          greeted.push(`${w.hero.name} ${w.memory.join()}`);
        });
      }
      readonly memory: string[] = [];
    }
    const t = await start(Greeting);
    const run = await t.pawl.start(Greeting, undefined, { hero: { type: "User", id: "1" } });
    await t.speedrunCurrentStep(run);
    users.set("1", { name: "Grace" });
    await t.speedrun(run);
    expect(greeted).toEqual(["Ada first", "Grace second"]);
  });
});
