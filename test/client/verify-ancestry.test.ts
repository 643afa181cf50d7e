/**
 * `verify` recomputes the ancestry hashes of all runs with declared steps. Runs that went through deploys, renames,
 * repairs and retries have no difference, and a changed output is found in each of them.
 */
import {
  type AnyNode,
  type AnyWorkflow,
  graph,
  job,
  PermanentError,
  type RunHandle,
  type StepContext,
  step,
  Workflow,
  type WorkflowDefinition,
} from "pawl";
import { type TestPawl, testPawl } from "pawl/testing";
import { expect, onTestFinished, test } from "vitest";
import { isShapeRecord, ShapeRegistry } from "../../src/client/operate/shape-registry.js";
import { checkAncestry } from "../../src/client/operate/verify-ancestry.js";
import type { StoredEvent } from "../../src/core/run/event.js";
import { readStepFacts } from "../../src/core/run/step-completed.js";
import type { RunRecord, Store } from "../../src/store/contract/store.js";
import { SeededRandom } from "../../src/testing/store-suite/seeded-random.js";
import { testDatabase } from "../support/databases.js";
import { forMemoryAnd } from "../support/effort.js";
import { silent, start, world } from "../support/virtual-worlds.js";

const allSteps = ["a", "b", "c", "d", "e"];

/**
 * The code of one release: which steps exist, their current names, and what the release declares about missing ones.
 */
class Release {
  readonly random: SeededRandom;
  readonly names: readonly string[];
  readonly aliases: Record<string, string[]> = {};
  readonly removed: readonly string[];
  readonly #after: ReadonlyMap<string, readonly string[]>;

  constructor(random: SeededRandom) {
    this.random = random;
    const kept = shuffled(random, allSteps).slice(0, 3 + random.integerBelow(3));
    this.names = kept.map((base) => this.#nameOf(base));
    this.removed = random.chance(0.8) ? allSteps.filter((base) => !kept.includes(base)).flatMap(bothNames) : [];
    const after = new Map<string, readonly string[]>();
    this.names.forEach((name, index) => {
      after.set(name, random.sample(this.names.slice(0, index), 2));
    });
    this.#after = after;
  }

  #nameOf(base: string): string {
    const [older, newer] = bothNames(base) as [string, string];
    const [name, other] = this.random.chance(0.3) ? [newer, older] : [older, newer];
    if (this.random.chance(0.8)) this.aliases[name] = [other];
    return name;
  }

  /** One execution of a step does something random. */
  readonly #body = async (ctx: StepContext<any> | Workflow): Promise<unknown> => {
    const { random } = this;
    const what = random.integerBelow(12);
    if (what === 0) throw new PermanentError("no");
    if (what === 1) throw new Error("perhaps later");
    if (what === 2) ctx.skip();
    if (what === 3) ctx.pause("look");
    if (what === 4) ctx.reattempt({ rewind: random.chance(0.5) });
    if (what === 5) await ctx.sleep("rest", "1 hour");
    if (what === 6) await ctx.step("inner", () => 1);
    return random.integerBelow(1_000);
  };

  chain(): AnyWorkflow {
    const { names, aliases, removed } = this;
    const body = this.#body;
    return class extends Workflow {
      static {
        this.options({ name: "Chain", aliases });
        this.removedSteps(removed);
        for (const name of names) this.step(name, { wait: names.length > 3 ? "1 minute" : 0 }, body);
      }
    };
  }

  tasks(): AnyWorkflow {
    const { names, aliases, removed } = this;
    const [body, after] = [this.#body, this.#after];
    return class extends Workflow {
      static {
        this.options({ name: "Tasks", aliases });
        this.removedSteps(removed);
        for (const name of names) this.task(name, { dependsOn: [...(after.get(name) ?? [])] }, body);
      }
    };
  }

  graph(): AnyWorkflow {
    const made = new Map<string, AnyNode>();
    for (const name of this.names) {
      const compensate = this.random.chance(0.4) ? { compensate: () => {} } : {};
      const node = step(name, this.#body, { retry: { attempts: 2, initial: "1s" }, ...compensate });
      made.set(name, node.after(...(this.#after.get(name) ?? []).map((before) => made.get(before) as AnyNode)));
    }
    return graph("graph", [...made.values()], { aliases: this.aliases, removedSteps: this.removed });
  }

  get workflows(): AnyWorkflow[] {
    return [this.chain(), this.tasks(), this.graph()];
  }
}

const shuffled = (random: SeededRandom, items: readonly string[]): string[] => {
  const left = [...items];
  return items.map(() => left.splice(random.integerBelow(left.length), 1)[0] as string);
};

const bothNames = (base: string) => [base, `${base}_renamed`];

type AnyRun = RunHandle<any, any>;

/** Commands that an operator might send to a run. Many are invalid in the current state and are refused. */
async function sendRandomCommand(random: SeededRandom, run: AnyRun): Promise<AnyRun> {
  const name = random.pick(allSteps.flatMap(bothNames)) as string;
  const commands: (() => Promise<unknown>)[] = [
    () => run.resume(),
    () => run.resume({ output: random.integerBelow(1_000) }),
    () => run.skip(),
    () => run.pause(),
    () => run.resumeAt(name),
    () => run.resumeAt(name),
    () => run.resumeAt(name),
    () => run.reattempt(name),
    () => run.resume({ accept: allSteps.flatMap(bothNames) }),
    () => run.resume({ renamed: { [name]: `${name}_renamed` } }),
    () => run.retry(),
    () => run.retry(),
  ];
  try {
    const answer = await random.pick(commands)?.();
    return answer === undefined ? run : (answer as AnyRun);
  } catch {
    return run;
  }
}

async function runRandomly(seed: number): Promise<{ readonly t: TestPawl; readonly runs: readonly AnyRun[] }> {
  const random = new SeededRandom(seed);
  const first = new Release(random);
  const t = await testPawl({ workflows: first.workflows, logger: silent });
  onTestFinished(() => t.close());
  const runs: AnyRun[] = [];
  for (const definition of [...first.workflows, ...first.workflows])
    runs.push(await t.pawl.start(definition as WorkflowDefinition<void, unknown>));
  await t.settle();
  for (let act = 0; act < 20; act += 1) {
    if (random.chance(0.25)) await t.deploy(new Release(random).workflows);
    for (const run of [...runs]) {
      if (random.chance(0.4)) continue;
      const now = await sendRandomCommand(random, run);
      if (now.id !== run.id && !runs.some(({ id }) => id === now.id)) runs.push(now);
    }
    await t.advance("2 hours");
  }
  return { t, runs };
}

const seeds = Array.from({ length: 40 }, (_, index) => index + 1);

/** The rows of a log, the row of the run and the registered shapes, as `verify` reads them. */
async function readStored(t: TestPawl, id: string) {
  const { store } = t.pawl as unknown as { readonly store: Store };
  const run = (await store.run(id)) as RunRecord;
  return { run, log: (await store.logs([id])).get(id) ?? [], shapes: await ShapeRegistry.read(store) };
}

let [proved, taken, undone, moved, changed] = [0, 0, 0, 0, 0];

test.each(seeds)("deploys, repairs and retries leave no difference (seed %i)", async (seed) => {
  const { t, runs } = await runRandomly(seed);
  expect(await t.pawl.verify()).toMatchObject({ differences: [], unchecked: 0 });
  for (const { id } of runs) {
    const { run, log, shapes } = await readStored(t, id);
    const has = (type: string) => log.some((one) => one.type === type);
    if (has("shape.changed")) changed += 1;
    if (has("run.forked")) taken += 1;
    if (has("run.moved")) moved += 1;
    if (log.some(({ type, data }) => type === "run.forked" && data?.includes('"hashes"'))) undone += 1;
    // Forge the output, the attempt and the hash of each event in turn.
    for (const [index, one] of log.entries()) {
      if (one.type !== "step.completed" || readStepFacts(one.data).hash === undefined) continue;
      proved += 1;
      for (const forged of forgeries(one)) {
        const { wrongHashes } = checkAncestry(run, log.with(index, forged), shapes);
        expect(wrongHashes.map(({ node }) => node)).toContain(one.node);
      }
    }
  }
});

const forgeries = (one: StoredEvent): StoredEvent[] => [
  { ...one, data: one.data?.replace(/"output":\d+/, '"output":-1') ?? null },
  { ...one, attempt: (one.attempt ?? 0) + 1 },
  { ...one, data: one.data?.replace(/"hash":"\w+"/, `"hash":"${"0".repeat(64)}"`) ?? null },
  { ...one, data: one.data?.replace(/"hash":"\w+",/, "") ?? null },
];

test("the input of a run with a frozen graph is read once, however many nodes the graph has", async () => {
  const work = job("Work", () => 1);
  const t = await testPawl({ workflows: [], jobs: [work], logger: silent });
  onTestFinished(() => t.close());
  const run = await t.pawl.build("wide", (g) => g.fanOut(Array(50).keys(), { name: (n) => `part_${n}`, job: work }));
  await t.speedrun(run);
  const { run: row, log, shapes } = await readStored(t, run.id);
  let reads = 0;
  const counted = Object.defineProperty({ ...row }, "input", {
    get: () => {
      reads += 1;
      return row.input;
    },
  });
  expect(checkAncestry(counted, log, shapes)).toEqual({ wrongHashes: [], uncheckedHashes: 0 });
  expect(reads).toBe(1);
});

test("the random runs above covered every kind of event often enough", () => {
  expect(proved).toBeGreaterThan(500);
  for (const count of [taken, moved, changed]) expect(count).toBeGreaterThan(20);
  expect(undone).toBeGreaterThan(5);
});

test("a retry keeps steps that depend on a step that was undone, and their hashes are still verified", async () => {
  let fails = true;
  const booked = step("booked", () => "room 7", { compensate: () => {} });
  const told = step("told", () => "the guest");
  const paid = step("paid", () => {
    if (fails) throw new PermanentError("no money");
    return "paid";
  });
  const stay = graph("stay", [booked, told.after(booked), paid.after(booked, told)]);
  const t = await start(stay);
  const run = await t.pawl.start(stay);
  await t.settle();
  expect(await run.status()).toBe("failed");
  const second = await run.retry();
  await t.settle();
  fails = false;
  const third = await second.retry();
  await t.settle();
  expect(await third.status()).toBe("completed");
  expect((await third.executions()).map((one) => `${one.step} ${one.attempt}`)).toEqual([
    "told 1",
    "booked 1",
    "paid 1",
  ]);
  expect(await t.pawl.verify()).toMatchObject({ differences: [], unchecked: 0 });
});

test("a retry is still verified when the step that was undone was renamed in between", async () => {
  let fails = true;
  const release = (name: string, isOpen: boolean) => {
    const booked = step(name, () => "room 7", { compensate: () => {} });
    const told = step("told", (ctx) => (isOpen ? ctx.pause("wait for the deploy") : "the guest"));
    const paid = step("paid", () => {
      if (fails) throw new PermanentError("no money");
      return "paid";
    });
    const aliases = name === "booked" ? {} : { [name]: ["booked"] };
    return graph("stay", [booked, isOpen ? told : told.after(booked), paid.after(booked, told)], { aliases });
  };
  const first = release("booked", true);
  const t = await start(first);
  const run = await t.pawl.start(first);
  await t.settle();
  await t.deploy([release("reserved", false)]);
  await run.resume();
  await t.settle();
  expect(await run.status()).toBe("failed");
  fails = false;
  const second = await run.retry();
  await t.settle();
  expect(await second.status()).toBe("completed");
  expect(await t.pawl.verify()).toMatchObject({ differences: [], unchecked: 0 });
});

test("an output given by an operator is part of the ancestry, also after the step was renamed", async () => {
  const release = (name: string, aliases: Record<string, string[]>) =>
    class extends Workflow {
      static {
        this.options({ name: "Renamed", aliases });
        this.step("first", () => 1);
        this.step(name, () => {
          throw new Error("ask");
        });
        this.step("last", () => 3);
      }
    };
  const [Before, After] = [release("bill", {}), release("charge", { charge: ["bill"] })];
  const t = await start(Before);
  const run = await t.pawl.start(Before);
  await t.settle();
  await t.deploy([After]);
  await run.resume();
  await t.settle();
  await run.resume({ output: 2 });
  await t.settle();
  expect(await run.status()).toBe("completed");
  const hashes = (await run.executions()).filter(({ state }) => state === "completed").map((one) => one.ancestryHash);
  expect(hashes).toEqual(Array(3).fill(expect.stringMatching(/^[0-9a-f]{64}$/)));
  expect(await t.pawl.verify()).toMatchObject({ differences: [], unchecked: 0 });
});

forMemoryAnd("sqlite", (kind) => {
  test("hashes of steps that are no longer registered are counted as unchecked, not as differences", async () => {
    const database = await testDatabase(kind);
    onTestFinished(() => database.drop());
    const w = await world(kind, database.url);
    const [one, two] = [step("one", () => 1), step("two", () => 2)];
    const pair = graph("pair", [one, two.after(one)]);
    const { settle } = await w.worker([pair]);
    const run = await w.pawl.start(pair);
    await settle();
    expect(await w.pawl.verify()).toMatchObject({ differences: [], unchecked: 0 });
    const shapes = (await w.store.maintenance.workflows()).filter(isShapeRecord);
    expect(shapes).toHaveLength(1);
    // Pretend that the shape belongs to another workflow.
    await w.store.registerWorkflows(
      shapes.map((row) => ({ ...row, graph: row.graph?.replace("pair", "pear") ?? null })),
    );
    expect(await w.pawl.verify()).toMatchObject({ differences: [], unchecked: 2 });
    expect(await w.pawl.verify(run.id)).toMatchObject({ runs: 1, unchecked: 2 });
    expect((await w.pawl.queues()).map(({ name }) => name)).toEqual(["pair"]);
  });
});
