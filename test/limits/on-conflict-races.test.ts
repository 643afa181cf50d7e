/** `onConflict` with many clients, cancels and lost answers: runs of one key are executed one after another, none is forgotten. */
import { Pawl, type RunHandle, workflow } from "pawl";
import { crashTest } from "pawl/testing";
import { describe, expect, onTestFinished, test } from "vitest";
import { StoreError } from "../../src/core/errors/errors.js";
import type { Batch, Store } from "../../src/store/contract/store.js";
import { forEachStore, testDatabase } from "../support/databases.js";
import { everyStoreBriefly, sized } from "../support/effort.js";
import { seeded } from "../support/seeded-random.js";
import { silent, world } from "../support/virtual-worlds.js";
import { errorOf } from "../support/waiting.js";

const tick = () => new Promise((resolve) => setImmediate(resolve));

/** A workflow that counts how many of its bodies are executed at the same time. */
function exclusive() {
  const count = { running: 0, most: 0, bodies: 0 };
  const definition = workflow("exclusive", async (ctx, _name: string) => {
    await ctx.step("work", async () => {
      count.running += 1;
      count.bodies += 1;
      count.most = Math.max(count.most, count.running);
      for (let ticks = 0; ticks < 5; ticks += 1) await tick();
      count.running -= 1;
    });
    await ctx.sleep("rest", "1s");
    await ctx.step("leave", () => {});
  });
  return { count, definition };
}

/** A canceled run ends when its body has ended, however long that takes on a busy machine. */
const patient = { grace: "10 minutes" } as const;

/** Lets time pass until all runs have ended. */
async function untilAllEnded(
  w: Awaited<ReturnType<typeof world>>,
  runs: readonly RunHandle<any, any>[],
): Promise<void> {
  for (let rounds = 0; rounds < 500; rounds += 1) {
    await w.settleAll();
    if ((await Promise.all(runs.map((run) => run.get()))).every(({ finishedAt }) => finishedAt !== null)) return;
    w.clock.moveTo(w.clock.read() + 1_000);
  }
  throw new Error("The runs do not end.");
}

const starts = sized(24, 50);

describe("onConflict:", () => {
  forEachStore((kind) => {
    for (const policy of ["queue", "cancelOther"] as const)
      test(`${policy}: ${starts} simultaneous starts with one key, of several clients, are executed one after another`, async () => {
        const { url, drop } = await testDatabase(kind);
        onTestFinished(drop);
        const w = await world(kind, url);
        const { count, definition } = exclusive();
        await w.worker([definition], patient);
        await w.worker([definition], patient);
        // Each client lets its own starts wait for each other, but not for those of the other clients.
        const clients = Array.from({ length: 3 }, () => new Pawl(w.store, silent));
        const runs = await Promise.all(
          Array.from({ length: starts }, (_, n) =>
            (clients[n % 3] as Pawl).start(definition, `${n}`, { idempotencyKey: "k", onConflict: policy }),
          ),
        );
        expect(new Set(runs.map(({ id }) => id)).size).toBe(starts);
        await untilAllEnded(w, runs);
        expect(count.most).toBe(1);
        const statuses = await Promise.all(runs.map((run) => run.status()));
        if (policy === "queue") expect(new Set(statuses)).toEqual(new Set(["completed"]));
        else expect(statuses.filter((status) => status === "completed").length).toBeGreaterThan(0);
        expect((await w.pawl.verify()).differences).toEqual([]);
      });

    test("starts, cancels and ends in any order keep one run of the key at a time", async () => {
      const { url, drop } = await testDatabase(kind);
      onTestFinished(drop);
      const w = await world(kind, url);
      const random = seeded(7);
      const { count, definition } = exclusive();
      const { worker } = await w.worker([definition], patient);
      const clients = [w.pawl, new Pawl(w.store, silent)];
      const runs: RunHandle<any, any>[] = [];
      for (let round = 0; round < sized(8, 12); round += 1) {
        const started = await Promise.all(
          Array.from({ length: 4 }, (_, n) =>
            (clients[n % 2] as Pawl).start(definition, `${round}.${n}`, {
              idempotencyKey: "k",
              onConflict: random() < 0.8 ? "queue" : "cancelOther",
            }),
          ),
        );
        runs.push(...started);
        const canceled = runs.filter(() => random() < 0.2);
        w.clock.moveTo(w.clock.read() + 1_000);
        const cancels = canceled.map((run) => run.cancel("changed my mind").catch((error: unknown) => error));
        await Promise.all([worker.runUntilIdle(), ...cancels]);
      }
      await untilAllEnded(w, runs);
      expect(count.most).toBeLessThanOrEqual(1);
      expect((await w.pawl.verify()).differences).toEqual([]);
    });
  }, everyStoreBriefly);

  for (const when of ["before", "after"] as const)
    for (const fate of ["dies", "loses an answer"] as const)
      for (const policy of ["queue", "cancelOther", "replace"] as const)
        test(`${policy}: a client that ${fate} ${when} its commit leaves nothing half done`, async () => {
          const w = await world();
          const { definition } = exclusive();
          const delayed = policy === "replace" ? { delay: "1h" as const } : {};
          const first = await w.pawl.start(definition, "a", { idempotencyKey: "k", ...delayed });
          await w.worker([definition]);
          await w.settleAll();
          const client = new Pawl(faulty(w.store, when, fate), silent);
          const starting = client.start(definition, "b", { idempotencyKey: "k", onConflict: policy });
          const runs: RunHandle<any, any>[] = [first];
          if (fate === "dies") expect((await errorOf(starting)).message).toContain("died");
          else runs.push(await starting);
          const again = await w.pawl.find(definition, { idempotencyKey: "k" });
          if (again !== null) runs.push(again);
          w.clock.moveTo(w.clock.read() + 3_600_000);
          await untilAllEnded(w, runs);
          // A start that was not answered may have been written or not, but never twice.
          const { runs: all } = await w.pawl.runs({ workflow: "exclusive" });
          const isWritten = fate === "loses an answer" || when === "after";
          expect(all).toHaveLength(policy !== "replace" && isWritten ? 2 : 1);
          if (policy === "replace" && isWritten) expect(all[0]?.input).toBe("b");
          expect((await w.pawl.verify()).differences).toEqual([]);
        });

  test("replace: a run that ends after its input was replaced, before the client hears of it, is not started again", async () => {
    const w = await world();
    const { definition } = exclusive();
    const first = await w.pawl.start(definition, "a", { idempotencyKey: "k", delay: "1h" });
    await w.worker([definition]);
    await w.settleAll();
    const runFirst = async () => {
      w.clock.moveTo(w.clock.read() + 3_600_000);
      await untilAllEnded(w, [first]);
    };
    const client = new Pawl(faulty(w.store, "after", "loses an answer", runFirst), silent);
    const started = await client.start(definition, "b", { idempotencyKey: "k", onConflict: "replace" });
    expect([started.id, started.replaced]).toEqual([first.id, true]);
    const { runs } = await w.pawl.runs({ workflow: "exclusive" });
    expect(runs.map(({ input }) => input)).toEqual(["b"]);
  });

  test("a worker that dies at any commit of the run before lets the queued run begin once", async () => {
    const { definition, count } = exclusive();
    const report = await crashTest(definition, "first", {
      workflows: [definition],
      drive: async (run, pawl) => {
        if ((await run.get()).finishedAt === null && (await pawl.runs({ workflow: "exclusive" })).runs.length === 1)
          await pawl.workflow<string>("exclusive").trigger("second", { idempotencyKey: "k", onConflict: "queue" });
      },
    });
    expect(report.points).toBeGreaterThan(3);
    expect(count.bodies).toBeGreaterThan(0);
  });
});

/** A store whose first commit that changes keys is lost, or whose answer is. */
function faulty(
  inner: Store,
  when: "before" | "after",
  fate: "dies" | "loses an answer",
  meanwhile: () => Promise<void> = async () => {},
): Store {
  let isHit = false;
  const commit = async (batch: Batch) => {
    if (batch.keyChange === undefined || isHit) return inner.commit(batch);
    isHit = true;
    if (when === "after") await inner.commit(batch);
    await meanwhile();
    throw new StoreError(fate === "dies" ? "The process died." : "The connection was lost.", {
      transient: fate !== "dies",
    });
  };
  return new Proxy(inner, {
    get: (target, name) => {
      if (name === "commit") return commit;
      const value: unknown = Reflect.get(target, name);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}
