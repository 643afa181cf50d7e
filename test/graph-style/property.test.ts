/**
 * Generated graphs: whatever their shape, each step runs only when its dependencies allow it, every step that may run
 * does, and each is recorded once.
 */
import { type AnyNode, branch, graph, PermanentError, step } from "pawl";
import { describe, expect, test } from "vitest";
import { seededRandom } from "../../src/core/naming/ids.js";
import { sized } from "../support/effort.js";
import { start } from "../support/virtual-worlds.js";
import { gate, until } from "../support/waiting.js";

interface Plan {
  readonly names: readonly string[];
  readonly after: ReadonlyMap<string, readonly string[]>;
  /** The branch that a step is a case of, and whether that case is chosen. */
  readonly cases: ReadonlyMap<string, { readonly branch: string; readonly chosen: boolean }>;
  readonly fails: ReadonlySet<string>;
  readonly flaky: ReadonlySet<string>;
}

/** Plans up to `maxSteps` steps, each after some of the earlier ones, and occasionally a branch with two cases. */
function randomPlan(seed: string, maxSteps: number, withFailures: boolean): Plan {
  const random = seededRandom(seed);
  const count = 2 + Math.floor(random() * (maxSteps - 2));
  const names: string[] = [];
  const after = new Map<string, readonly string[]>();
  const cases = new Map<string, { branch: string; chosen: boolean }>();
  const [fails, flaky] = [new Set<string>(), new Set<string>()];
  const some = () => names.filter(() => random() < Math.min(0.5, 2 / Math.max(1, names.length)));
  const add = (name: string, before: readonly string[]) => {
    after.set(name, before);
    names.push(name);
  };
  while (names.length < count) {
    const name = `s${names.length}`;
    if (random() < 0.1 && names.length + 3 <= count) {
      const before = some();
      add(`b${names.length}`, before);
      const branchName = names.at(-1) as string;
      for (const chosen of [true, false]) {
        const inner = `c${names.length}`;
        cases.set(inner, { branch: branchName, chosen });
        add(inner, [branchName]);
      }
      continue;
    }
    add(name, some());
    // At most one step fails, because the order of several failures depends on timing.
    if (withFailures && fails.size === 0 && random() < 0.05) fails.add(name);
    else if (random() < 0.1) flaky.add(name);
  }
  return { names, after, cases, fails, flaky };
}

/** Creates the graph; `body` is called with the name of each step that starts. */
function build(plan: Plan, body: (name: string, attempt: number) => unknown) {
  const handles = new Map<string, AnyNode>();
  const top: AnyNode[] = [];
  const make = (name: string) =>
    step(
      name,
      async (ctx) => {
        await body(name, ctx.attempt);
        return name;
      },
      { retry: { attempts: 3, initial: 1, jitter: false } },
    );
  for (const name of plan.names) {
    if (plan.cases.has(name)) continue;
    const before = (plan.after.get(name) as readonly string[]).map((one) => handles.get(one) as AnyNode);
    if (name.startsWith("b")) {
      const [yes, no] = plan.names.filter((one) => plan.cases.get(one)?.branch === name) as [string, string];
      const [chosen, other] = [make(yes), make(no)];
      handles.set(yes, chosen);
      handles.set(no, other);
      const choice = branch(
        name,
        async (ctx) => {
          await body(name, ctx.attempt);
          return "yes" as const;
        },
        { yes: [chosen], no: [other] },
      ).after(...before);
      handles.set(name, choice);
      top.push(choice);
    } else {
      const one = make(name).after(...before);
      handles.set(name, one);
      top.push(one);
    }
  }
  return graph("generated", top, { retry: { attempts: 3, initial: 1, jitter: false } });
}

type Ended = "completed" | "skipped" | "failed";

/**
 * Returns the steps that may be in flight once these have ended and nothing has failed, and marks the skipped steps.
 */
function ready(plan: Plan, ended: Map<string, Ended>): string[] {
  for (const name of plan.names) {
    if (ended.has(name)) continue;
    const before = plan.after.get(name) as readonly string[];
    if (!before.every((one) => ended.get(one) === "completed" || ended.get(one) === "skipped")) continue;
    const leftOut = plan.cases.get(name)?.chosen === false && ended.get(before[0] as string) === "completed";
    if (leftOut || (before.length > 0 && before.every((one) => ended.get(one) === "skipped")))
      ended.set(name, "skipped");
  }
  return plan.names.filter((name) => {
    const before = plan.after.get(name) as readonly string[];
    return !ended.has(name) && before.every((one) => ended.get(one) === "completed" || ended.get(one) === "skipped");
  });
}

describe.each(Array.from({ length: sized(8, 12) }, (_, n) => `wide ${n}`))("graph %s", (seed) => {
  test("has exactly the allowed steps in flight at every moment, until the end", async () => {
    const plan = randomPlan(seed, 60, false);
    const random = seededRandom(`${seed} order`);
    const inFlight = new Map<string, { open(): void }>();
    const started: string[] = [];
    const generated = build(plan, (name) => {
      started.push(name);
      const gateOfStep = gate();
      inFlight.set(name, gateOfStep);
      return gateOfStep.opened;
    });
    const t = await start(generated);
    const run = await t.pawl.start(generated);
    const settled = t.settle();
    const ended = new Map<string, Ended>();
    for (let expected = ready(plan, ended); expected.length > 0; expected = ready(plan, ended)) {
      await until(() => expected.every((name) => inFlight.has(name)));
      expect([...inFlight.keys()].sort()).toEqual([...expected].sort());
      const name = expected[Math.floor(random() * expected.length)] as string;
      inFlight.get(name)?.open();
      inFlight.delete(name);
      ended.set(name, "completed");
    }
    await settled;
    expect(await run.status()).toBe("completed");
    expect(new Set(started).size).toBe(started.length);
    const recorded = (await run.history()).filter(({ type }) => type === "step.completed" || type === "step.skipped");
    expect(recorded.map(({ node, type }) => `${node} ${type}`).sort()).toEqual(
      [...ended].map(([name, how]) => `${name} step.${how}`).sort(),
    );
    expect(await t.pawl.verify()).toMatchObject({ differences: [] });
  });
});

describe.each(Array.from({ length: sized(8, 12) }, (_, n) => `broken ${n}`))("graph %s", (seed) => {
  test("has the same result whatever crashes, and no step starts too early or is recorded twice", async () => {
    const plan = randomPlan(seed, 30, true);
    let done = new Set<string>();
    let failed = false;
    const generated = build(plan, (name, attempt) => {
      for (const before of plan.after.get(name) as readonly string[]) {
        const skipped = !done.has(before);
        // A step that has not completed must have been skipped: by a branch, or because all its predecessors were
        // skipped.
        if (skipped) expect(mayBeSkipped(plan, before)).toBe(true);
      }
      if (plan.fails.has(name)) {
        failed = true;
        throw new PermanentError(`${name} fails`);
      }
      if (plan.flaky.has(name) && attempt === 1) throw new Error("once more");
      done.add(name);
    });
    const t = await start(generated);
    const report = await t.crashTest(generated, undefined, {
      points: 12,
      seed,
      setup: () => {
        done = new Set();
        failed = false;
      },
    });
    expect(report.status).toBe(failed ? "failed" : "completed");
    const run = await t.pawl.start(generated);
    await t.speedrun(run);
    const completed = (await run.history()).filter(({ type }) => type === "step.completed").map(({ node }) => node);
    expect(new Set(completed).size).toBe(completed.length);
    expect(await t.pawl.verify()).toMatchObject({ differences: [] });
  });
});

function mayBeSkipped(plan: Plan, name: string): boolean {
  if (plan.cases.get(name)?.chosen === false) return true;
  const before = plan.after.get(name) as readonly string[];
  return before.length > 0 && before.every((one) => mayBeSkipped(plan, one));
}
