/**
 * Tasks beside steps in one run: which nodes run in parallel, which wait for others, and what remains when workers die.
 */
import { discoverWorkflows, Workflow, type WorkflowClass } from "pawl";
import { beforeEach, describe, expect, test } from "vitest";
import { seededRandom } from "../../src/core/naming/ids.js";
import { forMemoryAnd } from "../support/effort.js";
import { type AnyRun, attemptsOf, expectSound, recorded } from "../support/run-checks.js";
import { databaseFor, type MortalWorker, start } from "../support/virtual-worlds.js";
import { gate, until } from "../support/waiting.js";

/** Records which nodes have started, in order, and blocks the nodes that the test holds until it releases them. */
class StepControl {
  readonly started: string[] = [];
  readonly done: string[] = [];
  readonly #gates = new Map<string, ReturnType<typeof gate<void>>>();

  block(...names: string[]): void {
    for (const name of names) this.#gates.set(name, gate());
  }

  release(name: string): void {
    this.#gates.get(name)?.open();
    this.#gates.delete(name);
  }

  async perform(name: string): Promise<string> {
    this.started.push(name);
    await this.#gates.get(name)?.opened;
    this.done.push(name);
    return `${name} done`;
  }

  async waitForStart(...names: string[]): Promise<void> {
    await until(() => names.every((name) => this.started.includes(name)));
  }
}

let control = new StepControl();
beforeEach(() => {
  control = new StepControl();
});

const perform = (name: string) => () => control.perform(name);

class OrderWorkflow extends Workflow {
  static {
    this.step("validate", perform("validate"));
    this.step("enrich_data", perform("enrich_data"));
    // Tasks branch off from the chain.
    this.task("check_inventory", { dependsOn: "validate" }, perform("check_inventory"));
    this.task("check_fraud", { dependsOn: "validate" }); // This task is the method below.
    // This step is still in the chain, with its own dependencies.
    this.step("ready_to_charge", { dependsOn: ["check_inventory", "check_fraud"] }, perform("ready_to_charge"));
    this.step("charge_card", perform("charge_card"));
    this.task("send_receipt", { dependsOn: "charge_card" }, perform("send_receipt"));
    this.task("update_analytics", { dependsOn: "charge_card" }, perform("update_analytics"));
    this.step("complete", { dependsOn: ["charge_card", "send_receipt", "update_analytics"] }, perform("complete"));
  }
  check_fraud() {
    return control.perform("check_fraud");
  }
}

const all = [
  "validate",
  "enrich_data",
  "check_inventory",
  "check_fraud",
  "ready_to_charge",
  "charge_card",
  "send_receipt",
  "update_analytics",
  "complete",
];

const statesOf = async (run: AnyRun) =>
  Object.fromEntries((await run.nodes()).map(({ name, state }) => [name, state])) as Record<string, string>;

const recordedSteps = async (run: AnyRun) =>
  (await run.history()).filter(({ type }) => type === "step.completed").map(({ node }) => node);

/** Kills the worker and lets another one complete the run. */
async function killAndReplace(w: { worker(of: WorkflowClass[]): Promise<MortalWorker> }, worker: MortalWorker) {
  await worker.kill();
  const successor = await w.worker([OrderWorkflow]);
  await successor.settle();
}

forMemoryAnd("postgres", (kind) => {
  const database = databaseFor(kind);

  test("nodes whose predecessors have completed run in parallel, and the others do not start", async () => {
    const w = await database.world();
    const worker = await w.worker([OrderWorkflow]);
    control.block("validate", "enrich_data", "check_inventory", "check_fraud", "send_receipt", "update_analytics");
    const run = await w.pawl.start(OrderWorkflow);
    const settled = worker.settle();

    await control.waitForStart("validate");
    expect(control.started).toEqual(["validate"]);
    control.release("validate");
    await control.waitForStart("enrich_data", "check_inventory", "check_fraud");
    expect(control.started).toHaveLength(4);

    // One completed predecessor is not enough; both together start the next nodes, although a step of the chain still
    // runs.
    control.release("check_fraud");
    await until(async () => (await recordedSteps(run)).includes("check_fraud"));
    expect(control.started).toHaveLength(4);
    control.release("check_inventory");
    await control.waitForStart("send_receipt", "update_analytics");
    expect(control.started.slice(4)).toEqual(["ready_to_charge", "charge_card", "send_receipt", "update_analytics"]);

    control.release("update_analytics");
    await until(async () => (await recordedSteps(run)).includes("update_analytics"));
    expect(control.started).not.toContain("complete");
    control.release("send_receipt");
    await control.waitForStart("complete");
    // The run ends when all nodes have ended, not when the last step of the chain has.
    await until(async () => (await recordedSteps(run)).includes("complete"));
    expect(await run.status()).toBe("running");
    control.release("enrich_data");
    await settled;
    expect(await run.status()).toBe("completed");
    expect([...control.started].sort()).toEqual([...all].sort());
    expect((await recordedSteps(run)).toSorted()).toEqual([...all].sort());
    await expectSound(w);
  });

  test("nodes() lists each node with its predecessors and its state", async () => {
    const w = await database.world();
    const worker = await w.worker([OrderWorkflow]);
    control.block("check_fraud", "enrich_data");
    const run = await w.pawl.start(OrderWorkflow);
    const settled = worker.settle();
    await until(async () => {
      const { check_fraud, check_inventory, enrich_data } = await statesOf(run);
      return check_inventory === "completed" && check_fraud === "executing" && enrich_data === "executing";
    });
    const nodes = await run.nodes();
    expect(nodes.map(({ name }) => name).toSorted()).toEqual([...all].sort());
    expect(nodes.find(({ name }) => name === "ready_to_charge")).toMatchObject({
      id: "ready_to_charge",
      after: ["check_inventory", "check_fraud"],
      state: "pending",
      attempt: 0,
      ancestryHash: null,
    });
    expect(nodes.find(({ name }) => name === "check_inventory")).toMatchObject({
      after: ["validate"],
      attempt: 1,
      outcome: "success",
      ancestryHash: expect.stringMatching(/^[0-9a-f]{64}$/),
    });
    control.release("check_fraud");
    control.release("enrich_data");
    await settled;
    expect(Object.values(await statesOf(run))).toEqual(all.map(() => "completed"));
  });

  test("a pause lets running nodes finish, and starts nothing; resume continues with the rest", async () => {
    const w = await database.world();
    const worker = await w.worker([OrderWorkflow]);
    control.block("check_inventory", "check_fraud");
    const run = await w.pawl.start(OrderWorkflow);
    const settled = worker.settle();
    await control.waitForStart("check_inventory", "check_fraud");
    await run.pause();
    await recorded(run, "run.paused");
    control.release("check_inventory");
    control.release("check_fraud");
    await settled;
    await until(async () => (await run.status()) === "paused");
    expect(control.started.toSorted()).toEqual(["check_fraud", "check_inventory", "enrich_data", "validate"]);
    expect(await statesOf(run)).toMatchObject({ check_inventory: "completed", check_fraud: "completed" });

    await run.resume();
    await worker.settle();
    expect(await run.status()).toBe("completed");
    expect(control.started).toHaveLength(all.length);
    await expectSound(w);
  });

  test("a worker's death repeats the nodes in flight, and not the recorded ones", async () => {
    const w = await database.world();
    const worker = await w.worker([OrderWorkflow]);
    control.block("check_fraud", "enrich_data");
    const run = await w.pawl.start(OrderWorkflow);
    void worker.settle();
    await control.waitForStart("check_fraud", "enrich_data");
    await until(async () => (await recordedSteps(run)).includes("check_inventory"));
    const firstStage = control;
    control = new StepControl();
    await killAndReplace(w, worker);
    expect(await run.status()).toBe("completed");
    expect(firstStage.done.toSorted()).toEqual(["check_inventory", "validate"]);
    expect(control.started.toSorted()).toEqual(all.filter((name) => !firstStage.done.includes(name)).toSorted());
    expect((await recordedSteps(run)).toSorted()).toEqual([...all].sort());
    await expectSound(w);
  });

  test("a canceled run starts nothing more on any of its paths", async () => {
    const w = await database.world();
    const worker = await w.worker([OrderWorkflow]);
    control.block("check_fraud");
    const run = await w.pawl.start(OrderWorkflow);
    const settled = worker.settle();
    await control.waitForStart("check_fraud", "check_inventory", "enrich_data");
    await run.cancel("the customer left");
    await recorded(run, "run.cancel_requested");
    control.release("check_fraud");
    await settled;
    await until(async () => (await run.status()) === "canceled");
    expect(control.started).toHaveLength(4);
    await expectSound(w);
  });
});

describe("wherever its worker dies", () => {
  test("the run has the same result, each node is recorded once, and in an order that its dependencies allow", async () => {
    const t = await start(OrderWorkflow);
    const runs: StepControl[] = [];
    const report = await t.crashTest(OrderWorkflow, undefined, {
      setup: () => {
        control = new StepControl();
        runs.push(control);
      },
    });
    expect(report).toMatchObject({ status: "completed" });
    expect(report.points).toBeGreaterThan(10);
    expect(runs).toHaveLength(report.points + 1);
    for (const { done } of runs) {
      expect([...new Set(done)].sort()).toEqual([...all].sort());
      for (const [before, after] of [
        ["validate", "enrich_data"],
        ["check_inventory", "ready_to_charge"],
        ["check_fraud", "ready_to_charge"],
        ["charge_card", "send_receipt"],
        ["send_receipt", "complete"],
        ["update_analytics", "complete"],
      ] as const)
        expect(done.indexOf(before)).toBeLessThan(done.indexOf(after));
    }
  });
});

/** A class of up to ten steps and tasks, each of which depends on some of those before it. */
function randomClass(seed: string) {
  const random = seededRandom(seed);
  const names = Array.from({ length: 3 + Math.floor(random() * 8) }, (_, index) => `n${index}`);
  const dependencies = new Map<string, string[]>();
  class Random extends Workflow {
    static {
      this.options({ name: `Random ${seed}` });
      for (const [index, name] of names.entries()) {
        const before = names.slice(0, index).filter(() => random() < 0.35);
        const naps = random() < 0.5;
        const body = async (w: Workflow) => {
          if (naps) await w.sleep("nap", "1 minute");
          await control.perform(name);
        };
        if (random() < 0.4) this.step(name, { alsoDependsOn: before }, body);
        else this.task(name, { dependsOn: before, ...(random() < 0.3 ? { wait: "1h" } : {}) }, body);
      }
    }
  }
  const [definition] = discoverWorkflows({ Random });
  for (const { name, after } of definition?.declared?.nodes ?? []) dependencies.set(name, [...after]);
  return { Random, names, dependencies };
}

test.each(Array.from({ length: 12 }, (_, n) => `seed ${n}`))(
  "random classes, crashed at random commits: no node starts before its predecessors have completed (%s)",
  async (seed) => {
    const { Random, names, dependencies } = randomClass(seed);
    const t = await start(Random);
    const runs: StepControl[] = [];
    const report = await t.crashTest(Random, undefined, {
      points: 12,
      seed,
      setup: () => {
        control = new StepControl();
        runs.push(control);
      },
    });
    expect(report.status).toBe("completed");
    for (const { started, done } of runs) {
      expect([...new Set(done)].toSorted()).toEqual(names.toSorted());
      for (const [name, after] of dependencies)
        for (const before of after) expect(done.indexOf(before)).toBeLessThan(started.indexOf(name));
    }
  },
);

test("each execution is recorded once", async () => {
  const t = await start(OrderWorkflow);
  const run = await t.pawl.start(OrderWorkflow);
  await t.speedrun(run);
  expect((await attemptsOf(run)).toSorted()).toEqual(all.map((name) => `${name} 1 completed success`).sort());
});
