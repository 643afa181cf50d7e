/**
 * The table of changes in docs/deploying.md, cell by cell: a run waits, the code changes, and the run continues or is
 * paused.
 */
import {
  type AnyWorkflow,
  branch,
  graph,
  type StepHandle,
  step,
  Workflow,
  type WorkflowContext,
  type WorkflowDefinition,
  workflow,
} from "pawl";
import { describe, expect, test } from "vitest";
import { start } from "../support/virtual-worlds.js";

let did: string[] = [];

/** The old code executes the run until it waits for an hour, then the new code takes over. */
async function runAcrossChange(before: AnyWorkflow, after: AnyWorkflow) {
  did = [];
  const t = await start(before);
  const run = await t.pawl.start(before as WorkflowDefinition<any, any>, undefined);
  await t.settle();
  did = [];
  await t.deploy([after]);
  await t.advance("1 hour");
  const { status, pauseReason } = await run.get();
  const shape = (await run.history()).findLast(({ type }) => type === "shape.changed")?.data ?? {};
  return {
    ran: did,
    status,
    pauseReason,
    passedSteps: shape.passedSteps ?? [],
    removedSteps: shape.removedSteps ?? [],
  };
}

const continues = (...ran: string[]) => ({ status: "completed", ran });
const isPaused = (text: string) => ({ status: "paused", ran: [], pauseReason: expect.stringContaining(text) });

describe("a function", () => {
  type Call = string | ((ctx: WorkflowContext<void>) => Promise<unknown>);
  const added = (name: string) => (ctx: WorkflowContext<void>) =>
    ctx.step(name, () => void did.push(name), { added: true });

  /** "wait" is a sleep of an hour, every other name a step. */
  function fn(calls: readonly Call[], options: { readonly aliases?: Record<string, readonly string[]> } = {}) {
    return workflow("Changing", options, async (ctx) => {
      for (const call of calls) {
        if (call === "wait") await ctx.sleep("wait", "1 hour");
        else if (typeof call === "string") await ctx.step(call, () => void did.push(call));
        else await call(ctx);
      }
    });
  }
  const before = fn(["a", "b", "wait", "c", "d"]);

  test("add: a new step runs after the completed steps; before them only if it is marked as added", async () => {
    expect(await runAcrossChange(before, fn(["a", "b", "wait", "new", "c", "d"]))).toMatchObject(
      continues("new", "c", "d"),
    );
    expect(await runAcrossChange(before, fn(["new", "a", "b", "wait", "c", "d"]))).toMatchObject(
      isPaused("{ added: true }"),
    );
    expect(await runAcrossChange(before, fn([added("new"), "a", "b", "wait", "c", "d"]))).toMatchObject(
      continues("new", "c", "d"),
    );
  });

  test("remove: a step that has not started may be removed; removing a completed step pauses the run", async () => {
    expect(await runAcrossChange(before, fn(["a", "b", "wait", "d"]))).toMatchObject(continues("d"));
    expect(await runAcrossChange(before, fn(["a", "wait", "c", "d"]))).toMatchObject(isPaused('the step "b"'));
    expect(await runAcrossChange(before, fn(["a", "b", "c", "d"]))).toMatchObject(isPaused('the sleep "wait"'));
  });

  test("rename: renaming a completed step pauses the run unless there is an alias; other steps may be renamed", async () => {
    expect(await runAcrossChange(before, fn(["a", "bb", "wait", "c", "d"]))).toMatchObject(isPaused("aliases"));
    expect(await runAcrossChange(before, fn(["a", "bb", "wait", "c", "d"], { aliases: { bb: ["b"] } }))).toMatchObject(
      continues("c", "d"),
    );
    expect(await runAcrossChange(before, fn(["a", "b", "wait", "cc", "d"]))).toMatchObject(continues("cc", "d"));
  });

  test("reorder: completed steps are found by name; a new step before a completed one pauses the run", async () => {
    expect(await runAcrossChange(before, fn(["b", "a", "wait", "c", "d"]))).toMatchObject(continues("c", "d"));
    expect(await runAcrossChange(before, fn(["a", "wait", "c", "b", "d"]))).toMatchObject(isPaused('the step "b"'));
    expect(await runAcrossChange(before, fn(["a", "b", "wait", "d", "c"]))).toMatchObject(continues("d", "c"));
    expect(await runAcrossChange(before, fn(["c", "a", "b", "wait", "d"]))).toMatchObject(isPaused('"c"'));
  });

  test("change kind: another kind of call under a recorded name pauses the run", async () => {
    const sleeps = (ctx: WorkflowContext<void>) => ctx.sleep("b", 1);
    expect(await runAcrossChange(before, fn(["a", sleeps, "wait", "c", "d"]))).toMatchObject(isPaused('"b"'));
  });

  test("change body: the new body applies to steps that have not run", async () => {
    const other = (ctx: WorkflowContext<void>) => ctx.step("c", () => void did.push("another c"));
    expect(await runAcrossChange(before, fn(["a", "b", "wait", other, "d"]))).toMatchObject(
      continues("another c", "d"),
    );
  });
});

describe("a class", () => {
  type Declare = string | ((type: typeof Workflow) => void);

  /** "wait" is a step that waits for an hour first. */
  function chain(steps: readonly Declare[], options: { aliases?: Record<string, string[]>; removed?: string[] } = {}) {
    return class Changing extends Workflow {
      static {
        this.options({ name: "Changing", aliases: options.aliases ?? {} });
        this.removedSteps(options.removed ?? []);
        for (const one of steps) {
          if (typeof one === "function") one(this as unknown as typeof Workflow);
          else this.step(one, one === "wait" ? { wait: "1 hour" } : {}, () => void did.push(one));
        }
      }
    };
  }
  const before = chain(["a", "b", "wait", "c", "d"]);

  test("add: runs that are past the new step leave it out and report that; other runs execute it", async () => {
    expect(await runAcrossChange(before, chain(["a", "b", "wait", "new", "c", "d"]))).toMatchObject(
      continues("wait", "new", "c", "d"),
    );
    expect(await runAcrossChange(before, chain(["a", "new", "b", "wait", "c", "d"]))).toMatchObject({
      ...continues("wait", "c", "d"),
      passedSteps: ["new"],
    });
  });

  test("remove: removing the current step of a run pauses it, unless the class lists that step among the removed steps", async () => {
    expect(await runAcrossChange(before, chain(["a", "b", "wait", "d"]))).toMatchObject(continues("wait", "d"));
    expect(await runAcrossChange(before, chain(["a", "wait", "c", "d"]))).toMatchObject(continues("wait", "c", "d"));
    expect(await runAcrossChange(before, chain(["a", "b", "c", "d"]))).toMatchObject(isPaused('no step "wait"'));
    expect(await runAcrossChange(before, chain(["a", "b", "c", "d"], { removed: ["wait"] }))).toMatchObject(
      continues("c", "d"),
    );
  });

  test("rename: completed steps are not repeated; renaming the current step needs an alias", async () => {
    expect(await runAcrossChange(before, chain(["a", "bb", "wait", "c", "d"]))).toMatchObject(
      continues("wait", "c", "d"),
    );
    expect(await runAcrossChange(before, chain(["a", "b", "later", "c", "d"]))).toMatchObject(
      isPaused('no step "wait"'),
    );
    expect(
      await runAcrossChange(before, chain(["a", "b", "later", "c", "d"], { aliases: { later: ["wait"] } })),
    ).toMatchObject(continues("later", "c", "d"));
  });

  test("reorder: the run continues after the new position of its current step, and repeats no completed step", async () => {
    expect(await runAcrossChange(before, chain(["b", "a", "wait", "c", "d"]))).toMatchObject(
      continues("wait", "c", "d"),
    );
    expect(await runAcrossChange(before, chain(["b", "wait", "a", "c", "d"]))).toMatchObject(
      continues("wait", "c", "d"),
    );
    expect(await runAcrossChange(before, chain(["a", "b", "wait", "d", "c"]))).toMatchObject(
      continues("wait", "d", "c"),
    );
    expect(await runAcrossChange(before, chain(["c", "a", "b", "wait", "d"]))).toMatchObject({
      ...continues("wait", "d"),
      passedSteps: ["c"],
    });
  });

  test("change kind: plain steps, resumable steps and tasks may become each other", async () => {
    const loop: Declare = (type) =>
      type.resumableStep("wait", { wait: "1 hour" }, (_w, iter) =>
        iter.over([1, 2], (n) => void did.push(`wait ${n}`)),
      );
    const task: Declare = (type) => type.task("c", { dependsOn: "wait" }, () => void did.push("c"));
    expect(await runAcrossChange(before, chain(["a", "b", loop, "c", "d"]))).toMatchObject(
      continues("wait 1", "wait 2", "c", "d"),
    );
    expect(await runAcrossChange(chain(["a", loop, "c"]), chain(["a", "wait", "c"]))).toMatchObject(
      continues("wait", "c"),
    );
    expect((await runAcrossChange(before, chain(["a", "b", "wait", task, "d"]))).ran.toSorted()).toEqual([
      "c",
      "d",
      "wait",
    ]);
  });

  test("change wait: the new wait applies to runs that do not wait yet", async () => {
    const longer: Declare = (type) => type.step("wait", { wait: "365 days" }, () => void did.push("wait"));
    expect(await runAcrossChange(before, chain(["a", "b", longer, "c", "d"]))).toMatchObject(
      continues("wait", "c", "d"),
    );
  });
});

describe("a graph", () => {
  const named = (name: string) =>
    step(name, () => {
      did.push(name);
      return name;
    });
  const [a, b, c, d, fresh] = [named("a"), named("b"), named("c"), named("d"), named("new")];
  const wait = step("wait", (ctx) => ctx.sleep("rest", "1 hour"));
  type Options = { readonly aliases?: Record<string, readonly string[]>; readonly removedSteps?: readonly string[] };

  /** Each step runs after the previous one. */
  const line = (steps: readonly StepHandle<any, any, any>[], options: Options = {}) =>
    graph(
      "changing",
      steps.map((one, index) => (index === 0 ? one : one.after(steps[index - 1] as StepHandle<any, any, any>))),
      options,
    );
  const before = line([a, b, wait, c, d]);

  test("add: a new step runs when its dependencies are completed, even late, and the run reports that", async () => {
    expect(await runAcrossChange(before, line([a, b, wait, fresh, c, d]))).toMatchObject(continues("new", "c", "d"));
    const late = await runAcrossChange(before, line([a, fresh, b, wait, c, d]));
    expect(late).toMatchObject({ status: "completed", passedSteps: ["new"] });
    expect(late.ran.toSorted()).toEqual(["c", "d", "new"]);
  });

  test("remove: removing a started or completed step pauses the run, unless the graph lists it among the removed steps", async () => {
    expect(await runAcrossChange(before, line([a, b, wait, d]))).toMatchObject(continues("d"));
    expect(await runAcrossChange(before, line([a, wait, c, d]))).toMatchObject(isPaused('"b"'));
    expect(await runAcrossChange(before, line([a, wait, c, d], { removedSteps: ["b"] }))).toMatchObject({
      ...continues("c", "d"),
      removedSteps: ["b"],
    });
    expect(await runAcrossChange(before, line([a, b, c, d]))).toMatchObject(isPaused('no step "wait"'));
    expect(await runAcrossChange(before, line([a, b, c, d], { removedSteps: ["wait"] }))).toMatchObject(
      continues("c", "d"),
    );
  });

  test("rename: a rename pauses the run, unless there is an alias", async () => {
    const bb = named("bb");
    expect(await runAcrossChange(before, line([a, bb, wait, c, d]))).toMatchObject(isPaused("aliases"));
    expect(await runAcrossChange(before, line([a, bb, wait, c, d], { aliases: { bb: ["b"] } }))).toMatchObject(
      continues("c", "d"),
    );
  });

  test("reorder: new dependencies apply to steps that have not started; completed steps are not repeated", async () => {
    expect(await runAcrossChange(before, line([b, a, wait, c, d]))).toMatchObject(continues("c", "d"));
    expect(await runAcrossChange(before, line([a, b, wait, d, c]))).toMatchObject(continues("d", "c"));
  });

  test("change kind: a completed step cannot become a branch; one that has not started can", async () => {
    const choice = (name: string) => branch(name, () => "left" as const, { left: [fresh] });
    const done = choice("b");
    const held = graph("changing", [a, done.after(a), wait.after(done), c.after(wait), d.after(c)]);
    expect(await runAcrossChange(before, held)).toMatchObject(isPaused('"b"'));
    const pending = choice("c");
    const fits = graph("changing", [a, b.after(a), wait.after(b), pending.after(wait), d.after(pending)]);
    expect(await runAcrossChange(before, fits)).toMatchObject({ status: "completed" });
  });
});
