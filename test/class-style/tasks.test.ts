/**
 * Tasks beside steps in one run: which nodes run in parallel, which wait for others, and what remains when workers die.
 */
import { discoverWorkflows, Workflow, type WorkflowClass } from "pawl";
import { beforeEach, describe, expect, test } from "vitest";
import { seededRandom } from "../../src/core/naming/ids.js";
import { forEachStore } from "../support/databases.js";
import { type AnyRun, attemptsOf, expectSound, recorded } from "../support/run-checks.js";
import { databaseFor, type MortalWorker, start } from "../support/virtual-worlds.js";
import { gate, until } from "../support/waiting.js";

/** Records which nodes have started, in order, and blocks the nodes that the test holds until it releases them. */
class Stage {
  readonly begun: string[] = [];
  readonly done: string[] = [];
  readonly #held = new Map<string, ReturnType<typeof gate<void>>>();

  hold(...names: string[]): void {
    for (const name of names) this.#held.set(name, gate());
  }

  letGo(name: string): void {
    this.#held.get(name)?.open();
    this.#held.delete(name);
  }

  async play(name: string): Promise<string> {
    this.begun.push(name);
    await this.#held.get(name)?.opened;
    this.done.push(name);
    return `${name} done`;
  }

  async hasBegun(...names: string[]): Promise<void> {
    await until(() => names.every((name) => this.begun.includes(name)));
  }
}

let stage = new Stage();
beforeEach(() => {
  stage = new Stage();
});

const play = (name: string) => () => stage.play(name);

class OrderWorkflow extends Workflow {
  static {
    this.step("validate", play("validate"));
    this.step("enrich_data", play("enrich_data"));
    // Tasks branch off from the chain.
    this.task("check_inventory", { dependsOn: "validate" }, play("check_inventory"));
    this.task("check_fraud", { dependsOn: "validate" }); // This task is the method below.
    // This step is still in the chain, with its own dependencies.
    this.step("ready_to_charge", { dependsOn: ["check_inventory", "check_fraud"] }, play("ready_to_charge"));
    this.step("charge_card", play("charge_card"));
    this.task("send_receipt", { dependsOn: "charge_card" }, play("send_receipt"));
    this.task("update_analytics", { dependsOn: "charge_card" }, play("update_analytics"));
    this.step("complete", { dependsOn: ["charge_card", "send_receipt", "update_analytics"] }, play("complete"));
  }
  check_fraud() {
    return stage.play("check_fraud");
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
async function survivedBy(w: { worker(of: WorkflowClass[]): Promise<MortalWorker> }, worker: MortalWorker) {
  await worker.kill();
  const heir = await w.worker([OrderWorkflow]);
  await heir.settle();
}

forEachStore((kind) => {
  const database = databaseFor(kind);

  test("nodes whose predecessors have completed run in parallel, and the others do not start", async () => {
    const w = await database.world();
    const worker = await w.worker([OrderWorkflow]);
    stage.hold("validate", "enrich_data", "check_inventory", "check_fraud", "send_receipt", "update_analytics");
    const run = await w.pawl.start(OrderWorkflow);
    const settled = worker.settle();

    await stage.hasBegun("validate");
    expect(stage.begun).toEqual(["validate"]);
    stage.letGo("validate");
    await stage.hasBegun("enrich_data", "check_inventory", "check_fraud");
    expect(stage.begun).toHaveLength(4);

    // One completed predecessor is not enough; both together start the next nodes, although a step of the chain still
    // runs.
    stage.letGo("check_fraud");
    await until(async () => (await recordedSteps(run)).includes("check_fraud"));
    expect(stage.begun).toHaveLength(4);
    stage.letGo("check_inventory");
    await stage.hasBegun("send_receipt", "update_analytics");
    expect(stage.begun.slice(4)).toEqual(["ready_to_charge", "charge_card", "send_receipt", "update_analytics"]);

    stage.letGo("update_analytics");
    await until(async () => (await recordedSteps(run)).includes("update_analytics"));
    expect(stage.begun).not.toContain("complete");
    stage.letGo("send_receipt");
    await stage.hasBegun("complete");
    // The run ends when all nodes have ended, not when the last step of the chain has.
    await until(async () => (await recordedSteps(run)).includes("complete"));
    expect(await run.status()).toBe("running");
    stage.letGo("enrich_data");
    await settled;
    expect(await run.status()).toBe("completed");
    expect([...stage.begun].sort()).toEqual([...all].sort());
    expect((await recordedSteps(run)).toSorted()).toEqual([...all].sort());
    await expectSound(w);
  });

  test("nodes() lists each node with its predecessors and its state", async () => {
    const w = await database.world();
    const worker = await w.worker([OrderWorkflow]);
    stage.hold("check_fraud", "enrich_data");
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
    stage.letGo("check_fraud");
    stage.letGo("enrich_data");
    await settled;
    expect(Object.values(await statesOf(run))).toEqual(all.map(() => "completed"));
  });

  test("a pause lets running nodes finish, and starts nothing; resume continues with the rest", async () => {
    const w = await database.world();
    const worker = await w.worker([OrderWorkflow]);
    stage.hold("check_inventory", "check_fraud");
    const run = await w.pawl.start(OrderWorkflow);
    const settled = worker.settle();
    await stage.hasBegun("check_inventory", "check_fraud");
    await run.pause();
    await recorded(run, "run.paused");
    stage.letGo("check_inventory");
    stage.letGo("check_fraud");
    await settled;
    await until(async () => (await run.status()) === "paused");
    expect(stage.begun.toSorted()).toEqual(["check_fraud", "check_inventory", "enrich_data", "validate"]);
    expect(await statesOf(run)).toMatchObject({ check_inventory: "completed", check_fraud: "completed" });

    await run.resume();
    await worker.settle();
    expect(await run.status()).toBe("completed");
    expect(stage.begun).toHaveLength(all.length);
    await expectSound(w);
  });

  test("a worker's death repeats the nodes in flight, and not the recorded ones", async () => {
    const w = await database.world();
    const worker = await w.worker([OrderWorkflow]);
    stage.hold("check_fraud", "enrich_data");
    const run = await w.pawl.start(OrderWorkflow);
    void worker.settle();
    await stage.hasBegun("check_fraud", "enrich_data");
    await until(async () => (await recordedSteps(run)).includes("check_inventory"));
    const held = stage;
    stage = new Stage();
    await survivedBy(w, worker);
    expect(await run.status()).toBe("completed");
    expect(held.done.toSorted()).toEqual(["check_inventory", "validate"]);
    expect(stage.begun.toSorted()).toEqual(all.filter((name) => !held.done.includes(name)).toSorted());
    expect((await recordedSteps(run)).toSorted()).toEqual([...all].sort());
    await expectSound(w);
  });

  test("a canceled run starts nothing more on any of its paths", async () => {
    const w = await database.world();
    const worker = await w.worker([OrderWorkflow]);
    stage.hold("check_fraud");
    const run = await w.pawl.start(OrderWorkflow);
    const settled = worker.settle();
    await stage.hasBegun("check_fraud", "check_inventory", "enrich_data");
    await run.cancel("the customer left");
    await recorded(run, "run.cancel_requested");
    stage.letGo("check_fraud");
    await settled;
    await until(async () => (await run.status()) === "canceled");
    expect(stage.begun).toHaveLength(4);
    await expectSound(w);
  });
});

describe("wherever its worker dies", () => {
  test("the run has the same result, each node is recorded once, and in an order that its dependencies allow", async () => {
    const t = await start(OrderWorkflow);
    const runs: Stage[] = [];
    const report = await t.crashTest(OrderWorkflow, undefined, {
      setup: () => {
        stage = new Stage();
        runs.push(stage);
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
          await stage.play(name);
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
    const runs: Stage[] = [];
    const report = await t.crashTest(Random, undefined, {
      points: 12,
      seed,
      setup: () => {
        stage = new Stage();
        runs.push(stage);
      },
    });
    expect(report.status).toBe("completed");
    for (const { begun, done } of runs) {
      expect([...new Set(done)].toSorted()).toEqual(names.toSorted());
      for (const [name, after] of dependencies)
        for (const before of after) expect(done.indexOf(before)).toBeLessThan(begun.indexOf(name));
    }
  },
);

test("each execution is recorded once", async () => {
  const t = await start(OrderWorkflow);
  const run = await t.pawl.start(OrderWorkflow);
  await t.speedrun(run);
  expect((await attemptsOf(run)).toSorted()).toEqual(all.map((name) => `${name} 1 completed success`).sort());
});
