/**
 * Generated graphs on workers that die at any commit: no node starts before its predecessors have completed, none is
 * recorded twice, all outputs are correct, and the ancestry hashes are valid.
 */
import { job, PermanentError } from "pawl";
import { afterAll, expect, onTestFinished, test } from "vitest";
import { seededRandom } from "../../src/core/naming/ids.js";
import { testDatabase } from "../support/databases.js";
import { forMemoryAnd } from "../support/effort.js";
import { world } from "../support/virtual-worlds.js";
import { CrashingWorkers } from "./crashing-workers.js";
import { wrongHashes } from "./recompute-hashes.js";

interface Plan {
  readonly after: ReadonlyMap<string, readonly string[]>;
  /** Nodes that fail at their first attempt, and are retried by their job. */
  readonly flaky: ReadonlySet<string>;
  /** Nodes that fail for good at their first attempt, until the run is resumed. */
  readonly broken: ReadonlySet<string>;
  readonly concurrency: number;
  readonly onNodeFailure: "stop" | "continue";
}

function randomPlan(random: () => number): Plan {
  const after = new Map<string, readonly string[]>();
  const [flaky, broken] = [new Set<string>(), new Set<string>()];
  const count = 2 + Math.floor(random() * 28);
  for (let n = 0; n < count; n += 1) {
    const names = [...after.keys()];
    after.set(
      `s${n}`,
      names.filter(() => random() < Math.min(0.5, 2 / names.length)),
    );
    const luck = random();
    if (luck < 0.15) flaky.add(`s${n}`);
    else if (luck < 0.25) broken.add(`s${n}`);
  }
  const concurrency = random() < 0.5 ? 1 + Math.floor(random() * 4) : 1_000;
  return { after, flaky, broken, concurrency, onNodeFailure: random() < 0.5 ? "stop" : "continue" };
}

/** The output of a node depends only on the plan. */
const outputOf = (plan: Plan, name: string) => `${name} after ${(plan.after.get(name) ?? []).join(" ")}`;

forMemoryAnd("sqlite", (kind) => {
  const seeds = Array.from({ length: kind === "memory" ? 30 : 3 }, (_, n) => `${kind} ${n}`);
  let deaths = 0;
  afterAll(() => expect(deaths).toBeGreaterThan(seeds.length));

  test.each(seeds)("graph %s ends as planned, whichever workers die", async (seed) => {
    const random = seededRandom(seed);
    const plan = randomPlan(random);
    const database = await testDatabase(kind);
    onTestFinished(() => database.drop());
    const w = await world(kind, database.url);

    const done = new Set<string>();
    const executions = new Map<string, number>();
    const tooEarly: string[] = [];
    let [inFlight, maxInFlight] = [0, 0];
    const work = job(
      "Work",
      async (args: { name: string }, { attempt }) => {
        const { name } = args;
        executions.set(name, (executions.get(name) ?? 0) + 1);
        for (const before of plan.after.get(name) ?? [])
          if (!done.has(before)) tooEarly.push(`${name} before ${before}`);
        maxInFlight = Math.max(maxInFlight, ++inFlight);
        await new Promise((resolve) => setImmediate(resolve));
        inFlight -= 1;
        if (attempt === 1 && plan.flaky.has(name)) throw new Error("once more");
        if (attempt === 1 && plan.broken.has(name)) throw new PermanentError("somebody has to look");
        done.add(name);
        return outputOf(plan, name);
      },
      { retry: { attempts: 3, initial: "1s" } },
    );
    const { concurrency, onNodeFailure } = plan;
    const run = await w.pawl.build(
      "generated",
      (g) => {
        for (const [name, after] of plan.after) g.node(name, { job: work, args: { name }, dependsOn: after });
      },
      { concurrency, onNodeFailure },
    );

    const workers = new CrashingWorkers(w.store, [work], random, 8);
    onTestFinished(() => workers.stop());
    await workers.start(3);
    for (let rounds = 0; (await run.get()).finishedAt === null; rounds += 1) {
      const due = await workers.settle();
      const { status, waitingFor } = await run.get();
      if (status === "paused") await run.resume();
      else if (due !== null) w.clock.moveTo(due);
      else if (status !== "completed" && rounds > 1_000) throw new Error(`It waits for ${JSON.stringify(waitingFor)}.`);
    }

    expect(await run.status()).toBe("completed");
    expect(tooEarly).toEqual([]);
    const dag = JSON.parse(await run.exportDag());
    const idOf = new Map(Object.entries<{ name: string }>(dag.nodes).map(([id, { name }]) => [name, id]));
    const rows = await w.store.log(run.id, { after: 0, limit: 1_000 });
    const completed = rows.filter(({ type }) => type === "step.completed");
    expect(new Map(completed.map(({ node, data }) => [node, JSON.parse(data as string).output]))).toEqual(
      new Map([...plan.after.keys()].map((name) => [idOf.get(name), outputOf(plan, name)])),
    );
    expect(completed).toHaveLength(plan.after.size);
    // The log agrees: no attempt is dispatched before its predecessors are recorded, and none is dispatched twice.
    const endedAt = new Map(completed.map(({ node, seq }) => [node, seq]));
    const dispatched = rows.filter(({ type }) => type === "node.dispatched");
    for (const { node, seq } of dispatched)
      for (const before of dag.nodes[node as string].depends_on) expect(endedAt.get(before)).toBeLessThan(seq);
    expect(new Set(dispatched.map(({ node, attempt }) => `${node} ${attempt}`)).size).toBe(dispatched.length);
    for (const [name, count] of executions) {
      const attempts = plan.flaky.has(name) || plan.broken.has(name) ? 2 : 1;
      expect(count).toBeGreaterThanOrEqual(attempts);
      expect(count).toBeLessThanOrEqual(attempts + workers.deaths);
    }
    expect(wrongHashes(rows, dag)).toEqual({ wrong: [], checked: plan.after.size });
    expect((await w.pawl.verify()).differences).toEqual([]);
    expect((await w.pawl.runs({ active: true })).runs).toEqual([]);
    // An execution whose worker died may still be running.
    if (workers.deaths === 0) expect(maxInFlight).toBeLessThanOrEqual(concurrency);
    deaths += workers.deaths;
  });
});
