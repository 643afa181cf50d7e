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
async function changed(before: AnyWorkflow, after: AnyWorkflow) {
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

const goesOn = (...ran: string[]) => ({ status: "completed", ran });
const isHeld = (text: string) => ({ status: "paused", ran: [], pauseReason: expect.stringContaining(text) });

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
    expect(await changed(before, fn(["a", "b", "wait", "new", "c", "d"]))).toMatchObject(goesOn("new", "c", "d"));
    expect(await changed(before, fn(["new", "a", "b", "wait", "c", "d"]))).toMatchObject(isHeld("{ added: true }"));
    expect(await changed(before, fn([added("new"), "a", "b", "wait", "c", "d"]))).toMatchObject(
      goesOn("new", "c", "d"),
    );
  });

  test("remove: a step that has not started may be removed; removing a completed step pauses the run", async () => {
    expect(await changed(before, fn(["a", "b", "wait", "d"]))).toMatchObject(goesOn("d"));
    expect(await changed(before, fn(["a", "wait", "c", "d"]))).toMatchObject(isHeld('the step "b"'));
    expect(await changed(before, fn(["a", "b", "c", "d"]))).toMatchObject(isHeld('the sleep "wait"'));
  });

  test("rename: renaming a completed step pauses the run unless there is an alias; other steps may be renamed", async () => {
    expect(await changed(before, fn(["a", "bb", "wait", "c", "d"]))).toMatchObject(isHeld("aliases"));
    expect(await changed(before, fn(["a", "bb", "wait", "c", "d"], { aliases: { bb: ["b"] } }))).toMatchObject(
      goesOn("c", "d"),
    );
    expect(await changed(before, fn(["a", "b", "wait", "cc", "d"]))).toMatchObject(goesOn("cc", "d"));
  });

  test("reorder: completed steps are found by name; a new step before a completed one pauses the run", async () => {
    expect(await changed(before, fn(["b", "a", "wait", "c", "d"]))).toMatchObject(goesOn("c", "d"));
    expect(await changed(before, fn(["a", "wait", "c", "b", "d"]))).toMatchObject(isHeld('the step "b"'));
    expect(await changed(before, fn(["a", "b", "wait", "d", "c"]))).toMatchObject(goesOn("d", "c"));
    expect(await changed(before, fn(["c", "a", "b", "wait", "d"]))).toMatchObject(isHeld('"c"'));
  });

  test("change kind: another kind of call under a recorded name pauses the run", async () => {
    const sleeps = (ctx: WorkflowContext<void>) => ctx.sleep("b", 1);
    expect(await changed(before, fn(["a", sleeps, "wait", "c", "d"]))).toMatchObject(isHeld('"b"'));
  });

  test("change body: the new body applies to steps that have not run", async () => {
    const other = (ctx: WorkflowContext<void>) => ctx.step("c", () => void did.push("another c"));
    expect(await changed(before, fn(["a", "b", "wait", other, "d"]))).toMatchObject(goesOn("another c", "d"));
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
    expect(await changed(before, chain(["a", "b", "wait", "new", "c", "d"]))).toMatchObject(
      goesOn("wait", "new", "c", "d"),
    );
    expect(await changed(before, chain(["a", "new", "b", "wait", "c", "d"]))).toMatchObject({
      ...goesOn("wait", "c", "d"),
      passedSteps: ["new"],
    });
  });

  test("remove: removing the current step of a run pauses it, unless the class lists that step among the removed steps", async () => {
    expect(await changed(before, chain(["a", "b", "wait", "d"]))).toMatchObject(goesOn("wait", "d"));
    expect(await changed(before, chain(["a", "wait", "c", "d"]))).toMatchObject(goesOn("wait", "c", "d"));
    expect(await changed(before, chain(["a", "b", "c", "d"]))).toMatchObject(isHeld('no step "wait"'));
    expect(await changed(before, chain(["a", "b", "c", "d"], { removed: ["wait"] }))).toMatchObject(goesOn("c", "d"));
  });

  test("rename: completed steps are not repeated; renaming the current step needs an alias", async () => {
    expect(await changed(before, chain(["a", "bb", "wait", "c", "d"]))).toMatchObject(goesOn("wait", "c", "d"));
    expect(await changed(before, chain(["a", "b", "later", "c", "d"]))).toMatchObject(isHeld('no step "wait"'));
    expect(await changed(before, chain(["a", "b", "later", "c", "d"], { aliases: { later: ["wait"] } }))).toMatchObject(
      goesOn("later", "c", "d"),
    );
  });

  test("reorder: the run continues after the new position of its current step, and repeats no completed step", async () => {
    expect(await changed(before, chain(["b", "a", "wait", "c", "d"]))).toMatchObject(goesOn("wait", "c", "d"));
    expect(await changed(before, chain(["b", "wait", "a", "c", "d"]))).toMatchObject(goesOn("wait", "c", "d"));
    expect(await changed(before, chain(["a", "b", "wait", "d", "c"]))).toMatchObject(goesOn("wait", "d", "c"));
    expect(await changed(before, chain(["c", "a", "b", "wait", "d"]))).toMatchObject({
      ...goesOn("wait", "d"),
      passedSteps: ["c"],
    });
  });

  test("change kind: plain steps, resumable steps and tasks may become each other", async () => {
    const loop: Declare = (type) =>
      type.resumableStep("wait", { wait: "1 hour" }, (_w, iter) =>
        iter.over([1, 2], (n) => void did.push(`wait ${n}`)),
      );
    const task: Declare = (type) => type.task("c", { dependsOn: "wait" }, () => void did.push("c"));
    expect(await changed(before, chain(["a", "b", loop, "c", "d"]))).toMatchObject(
      goesOn("wait 1", "wait 2", "c", "d"),
    );
    expect(await changed(chain(["a", loop, "c"]), chain(["a", "wait", "c"]))).toMatchObject(goesOn("wait", "c"));
    expect((await changed(before, chain(["a", "b", "wait", task, "d"]))).ran.toSorted()).toEqual(["c", "d", "wait"]);
  });

  test("change wait: the new wait applies to runs that do not wait yet", async () => {
    const longer: Declare = (type) => type.step("wait", { wait: "365 days" }, () => void did.push("wait"));
    expect(await changed(before, chain(["a", "b", longer, "c", "d"]))).toMatchObject(goesOn("wait", "c", "d"));
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
    expect(await changed(before, line([a, b, wait, fresh, c, d]))).toMatchObject(goesOn("new", "c", "d"));
    const late = await changed(before, line([a, fresh, b, wait, c, d]));
    expect(late).toMatchObject({ status: "completed", passedSteps: ["new"] });
    expect(late.ran.toSorted()).toEqual(["c", "d", "new"]);
  });

  test("remove: removing a started or completed step pauses the run, unless the graph lists it among the removed steps", async () => {
    expect(await changed(before, line([a, b, wait, d]))).toMatchObject(goesOn("d"));
    expect(await changed(before, line([a, wait, c, d]))).toMatchObject(isHeld('"b"'));
    expect(await changed(before, line([a, wait, c, d], { removedSteps: ["b"] }))).toMatchObject({
      ...goesOn("c", "d"),
      removedSteps: ["b"],
    });
    expect(await changed(before, line([a, b, c, d]))).toMatchObject(isHeld('no step "wait"'));
    expect(await changed(before, line([a, b, c, d], { removedSteps: ["wait"] }))).toMatchObject(goesOn("c", "d"));
  });

  test("rename: a rename pauses the run, unless there is an alias", async () => {
    const bb = named("bb");
    expect(await changed(before, line([a, bb, wait, c, d]))).toMatchObject(isHeld("aliases"));
    expect(await changed(before, line([a, bb, wait, c, d], { aliases: { bb: ["b"] } }))).toMatchObject(
      goesOn("c", "d"),
    );
  });

  test("reorder: new dependencies apply to steps that have not started; completed steps are not repeated", async () => {
    expect(await changed(before, line([b, a, wait, c, d]))).toMatchObject(goesOn("c", "d"));
    expect(await changed(before, line([a, b, wait, d, c]))).toMatchObject(goesOn("d", "c"));
  });

  test("change kind: a completed step cannot become a branch; one that has not started can", async () => {
    const choice = (name: string) => branch(name, () => "left" as const, { left: [fresh] });
    const done = choice("b");
    const held = graph("changing", [a, done.after(a), wait.after(done), c.after(wait), d.after(c)]);
    expect(await changed(before, held)).toMatchObject(isHeld('"b"'));
    const pending = choice("c");
    const fits = graph("changing", [a, b.after(a), wait.after(b), pending.after(wait), d.after(pending)]);
    expect(await changed(before, fits)).toMatchObject({ status: "completed" });
  });
});
