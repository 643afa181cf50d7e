/** The body of a step may make every call that a handler may make; the calls are recorded as part of the step. */
import { PermanentError, Workflow, workflow } from "pawl";
import { beforeEach, describe, expect, test } from "vitest";
import { logOf } from "../support/run-checks.js";
import { start, world } from "../support/virtual-worlds.js";
import { gate } from "../support/waiting.js";

let executed: string[] = [];
beforeEach(() => {
  executed = [];
});
const record = (action: string) => () => {
  executed.push(action);
  return action;
};

const describeExecutions = (
  executions: readonly { step: string; attempt: number; state: string; outcome: string | null }[],
) => executions.map(({ step, attempt, state, outcome }) => `${step} ${attempt} ${state} ${outcome}`);

describe("a body", () => {
  class Quote extends Workflow<unknown, void, string> {
    static {
      this.step("ask", async (w) => {
        executed.push("ask");
        const sent = await w.step("send", record("send"));
        await w.sleep("cool_down", "1 hour");
        const answer = await w.waitForSignal<string>("answer", { timeout: "2 days" });
        await w.step("file", record(`file ${sent} ${answer}`));
      });
      this.step("close", (w) => w.finish("closed"));
    }
  }

  test("waits for days without occupying a worker, and is replayed from its start with the recorded results", async () => {
    const t = await start(Quote);
    const run = await t.pawl.start(Quote);
    await t.settle();
    expect(await run.get()).toMatchObject({
      status: "waiting",
      currentStep: "ask",
      waitingFor: [{ kind: "sleep", name: "ask/cool_down" }],
    });
    await t.advance("1 hour");
    expect((await run.get()).waitingFor).toEqual([{ kind: "signal", names: ["answer"] }]);
    await run.signal("answer", "yes");
    await t.settle();
    expect(await run.result()).toBe("closed");
    expect(executed).toEqual(["ask", "send", "ask", "ask", "file send yes"]);
    expect(describeExecutions(await run.executions())).toEqual([
      "ask 1 completed success",
      "ask/send 1 completed success",
      "ask/file 1 completed success",
      "close 1 completed success",
    ]);
    expect(await t.pawl.verify()).toMatchObject({ differences: [] });
  });

  test("has the same result wherever its worker dies", async () => {
    const t = await start(Quote);
    const report = await t.crashTest(Quote, undefined, {
      drive: (run) => run.signal("answer", "yes", { key: "once" }).catch(() => {}),
    });
    expect(report.output).toBe("closed");
    expect(report.points).toBeGreaterThan(8);
  });

  test("that is parked continues as the same attempt; one whose worker died continues as another attempt", async () => {
    const started = gate();
    const hang = gate();
    class Slow extends Workflow {
      static {
        this.step("slow", { onCrash: "pause" }, async (w) => {
          await w.sleep("nap", "1 hour");
          executed.push(`attempt ${w.attempt}`);
          started.open();
          if (w.attempt === 1) await hang.opened;
        });
      }
    }
    const w = await world();
    const first = await w.worker([Slow]);
    const run = await w.pawl.start(Slow);
    w.clock.moveTo((await first.settle()) as number);
    void first.settle();
    await started.opened;
    await first.kill();
    const second = await w.worker([Slow]);
    await second.settle();
    expect(await run.get()).toMatchObject({ status: "paused", currentStep: "slow" });
    await run.resume();
    await second.settle();
    expect(executed).toEqual(["attempt 1", "attempt 2"]);
    expect(describeExecutions(await run.executions())).toEqual(["slow 1 failed abandoned", "slow 2 completed success"]);
    hang.open();
  });

  test("may be paused and resumed from outside while it is parked", async () => {
    const t = await start(Quote);
    const run = await t.pawl.start(Quote);
    await t.advance("1 hour");
    await run.pause("a look");
    await run.signal("answer", "later");
    await t.settle();
    expect(await run.get()).toMatchObject({ status: "paused", currentStep: "ask", pauseReason: "a look" });
    await run.resume();
    await t.settle();
    expect(await run.result()).toBe("closed");
    expect(executed.at(-1)).toBe("file send later");
  });

  test("that was skipped takes no signal from later steps", async () => {
    class Two extends Workflow<unknown, void, string> {
      static {
        this.step("first", async (w) => void (await w.waitForSignal("go")));
        this.step("second", async (w) => w.finish((await w.waitForSignal<string>("go")) ?? "nothing"));
      }
    }
    const t = await start(Two);
    const run = await t.pawl.start(Two);
    await t.settle();
    await run.skip();
    await t.settle();
    expect(await run.get()).toMatchObject({ currentStep: "second" });
    await run.signal("go", "for the second");
    await t.settle();
    expect(await run.result()).toBe("for the second");
    expect(describeExecutions(await run.executions())).toEqual([
      "first 1 skipped skipped_by_flow_control",
      "second 1 completed success",
    ]);
  });

  test("may end without awaiting its pending calls", async () => {
    class Careless extends Workflow {
      static {
        this.step("ask", (w) => {
          void w.sleep("never", "9 days");
          void w.waitForSignal("nothing");
        });
        this.step("next", { wait: "1 hour" }, record("next"));
      }
    }
    const t = await start(Careless);
    const run = await t.pawl.start(Careless);
    await t.advance("1 hour");
    expect(await run.status()).toBe("completed");
    expect(executed).toEqual(["next"]);
  });

  test("numbers its own calls: another step may use the same names", async () => {
    class Names extends Workflow {
      static {
        for (const name of ["a", "b"])
          this.step(name, async (w) => {
            for (let n = 1; n <= 2; n += 1) await w.step("part", record(`${name}${n}`));
          });
      }
    }
    const t = await start(Names);
    const run = await t.pawl.start(Names);
    await t.speedrun(run);
    expect(executed).toEqual(["a1", "a2", "b1", "b2"]);
    const nodes = (await run.history()).filter(({ type }) => type === "step.completed").map(({ node }) => node);
    expect(nodes).toEqual(["a/part", "a/part#2", "a", "b/part", "b/part#2", "b"]);
  });

  test("that fails keeps its recorded steps, and the next attempt does not run them again", async () => {
    let failures = 1;
    class Fails extends Workflow {
      static {
        this.options({ onException: "reattempt" });
        this.step("work", async (w) => {
          await w.step("charge", record("charge"));
          if (failures-- > 0) throw new Error("once");
          await w.step("ship", record("ship"));
        });
      }
    }
    const t = await start(Fails);
    const run = await t.pawl.start(Fails);
    await t.speedrun(run);
    expect(executed).toEqual(["charge", "ship"]);
    expect(describeExecutions(await run.executions())).toEqual([
      "work 1 failed reattempted_by_exception",
      "work/charge 1 completed success",
      "work 2 completed success",
      "work/ship 1 completed success",
    ]);
  });

  test("that is rewound runs everything again, including its children", async () => {
    const child = workflow("child", async (ctx, n: number) => {
      await ctx.sleep("long", "30 days");
      return n;
    });
    let rewinds = 1;
    class Over extends Workflow<unknown, void, number> {
      static {
        this.step("work", async (w) => {
          await w.step("part", record("part"));
          const started = await w.start(child, 1, { name: "kid" });
          executed.push(started.runId);
          if (rewinds-- > 0) w.reattempt({ rewind: true });
          w.finish(await started.result());
        });
      }
    }
    const t = await start(Over, child);
    const run = await t.pawl.start(Over);
    await t.settle();
    expect(executed.filter((action) => action === "part")).toHaveLength(2);
    const [first, second] = executed.filter((action) => action !== "part") as [string, string];
    expect(first).not.toBe(second);
    expect(await t.pawl.run(first).status()).toBe("canceled");
    await t.speedrun(run);
    expect(await run.result()).toBe(1);
    expect(await t.pawl.verify()).toMatchObject({ differences: [] });
  });

  test("starts classes as its children, with their own heroes", async () => {
    class Visit extends Workflow<{ id: string }, number, string> {
      static heroType = "Patient";
      static loadHero = (id: string) => ({ id });
      static {
        this.step("see", (w) => w.finish(`${w.hero.id}:${w.input}`));
      }
    }
    class Round extends Workflow<unknown, void, string> {
      static {
        this.step("go", async (w) => {
          const seen = await w.run(Visit, 7, { hero: { type: "Patient", id: "p1" } });
          w.finish(seen);
        });
      }
    }
    const t = await start(Round, Visit);
    const run = await t.pawl.start(Round);
    await t.speedrun(run);
    expect(await run.result()).toBe("p1:7");
  });

  test("fails the run when one of its steps fails for good", async () => {
    class Fatal extends Workflow {
      static {
        this.step("work", async (w) => {
          await w.step("part", () => {
            throw new PermanentError("no way");
          });
        });
      }
    }
    const t = await start(Fatal);
    const run = await t.pawl.start(Fatal);
    await t.speedrun(run);
    await expect(run.result()).rejects.toThrow("no way");
    expect(await logOf(run)).toContain("step.failed work");
  });
});
