/** `startBy` against claims, crashes and other commands: a run begins or expires, never both, and nothing is lost. */
import { Pawl, workflow } from "pawl";
import { describe, expect, onTestFinished, test } from "vitest";
import { RunCommands } from "../../src/client/command/run-commands.js";
import { OverdueStarts } from "../../src/client/start/start-deadlines.js";
import type { Store } from "../../src/store/contract/store.js";
import { RunTally } from "../../src/telemetry/run-tally.js";
import { forEachStore, testDatabase } from "../support/databases.js";
import { everyStoreBriefly } from "../support/effort.js";
import { silent, world } from "../support/virtual-worlds.js";

const minute = 60_000;
const bystanding = workflow("bystanding", async () => {});

describe("startBy:", () => {
  forEachStore((kind) => {
    test("against claims: each run is executed once or expires, never both", async () => {
      const { url, drop } = await testDatabase(kind);
      onTestFinished(drop);
      const executed: number[] = [];
      const job = workflow("job", { startBy: "1m" }, async (ctx, n: number) =>
        ctx.step("work", () => void executed.push(n)),
      );
      const w = await world(kind, url);
      const runs = await w.pawl.startMany(
        job,
        Array.from({ length: 40 }, (_, n) => n),
      );
      // The workers that cancel do not execute the workflow, so nothing keeps them from looking while others claim.
      const [first, second] = [await w.worker([bystanding]), await w.worker([bystanding])];
      const executor = await w.worker([job], { concurrency: 3 });
      w.clock.moveTo(w.clock.read() + minute);
      await Promise.all([first.settle(), executor.settle(), second.settle()]);
      await w.settleAll();
      const statuses = await Promise.all(runs.map(async (run) => (await run.get()).status));
      for (const [n, status] of statuses.entries())
        expect(executed.filter((one) => one === n)).toEqual(status === "completed" ? [n] : []);
      expect(new Set(statuses)).not.toContain("pending");
      expect((await w.pawl.verify()).differences).toEqual([]);
    });

    test("a run whose worker died before it wrote anything may have begun, so it does not expire", async () => {
      const { url, drop } = await testDatabase(kind);
      onTestFinished(drop);
      let calls = 0;
      const job = workflow("job", { startBy: "1m" }, async (ctx) => {
        calls += 1;
        if (calls === 1) await new Promise(() => {});
        return ctx.step("work", () => "done");
      });
      const w = await world(kind, url);
      const run = await w.pawl.start(job);
      const first = await w.worker([job]);
      void first.settle();
      while (calls === 0) await new Promise((resolve) => setImmediate(resolve));
      await first.kill();
      w.clock.moveTo(w.clock.read() + 2 * minute);
      await (await w.worker([bystanding])).settle();
      await (await w.worker([job])).settle();
      await w.settleAll();
      expect(await run.get()).toMatchObject({ status: "completed", output: "done" });
    });
  }, everyStoreBriefly);

  /** Writes of the process that cancels: it dies, or gets an error, before or after one of them. */
  for (const write of [1, 2, 3])
    for (const when of ["before", "after"] as const)
      test(`a process that dies ${when} write ${write} of those that cancel leaves the rest to another one`, async () => {
        const job = workflow("job", { startBy: "1m" }, async () => {});
        const parent = workflow("parent", (ctx) => ctx.run(job).catch((error: { code: string }) => error.code));
        const w = await world();
        const [single, waiting] = [await w.pawl.start(job), await w.pawl.start(parent)];
        await (await w.worker([parent])).settle();
        w.clock.moveTo(w.clock.read() + minute);
        const dying = new Pawl(dyingStore(w.store, write, when), silent);
        const service = new OverdueStarts(dying.internals.store, runCommandsOf(dying));
        await expect(service.cancelDue()).rejects.toThrow("died");
        await w.settleAll();
        expect(await single.get()).toMatchObject({ status: "canceled", error: { code: "EXPIRED" } });
        expect(await waiting.result()).toBe("EXPIRED");
        expect(await w.store.maintenance.startDeadlines.earliest(1)).toBeNull();
        expect((await w.pawl.verify()).differences).toEqual([]);
      });
});

const runCommandsOf = ({ internals: { store, log, runtime } }: Pawl) =>
  new RunCommands({ store, log, runtime, tally: new RunTally(store, log, runtime) });

/** A store that answers nothing from the given write on: a commit, or the removal of deadlines. */
function dyingStore(inner: Store, write: number, when: "before" | "after"): Store {
  let writes = 0;
  const mortal =
    <Args extends unknown[], Answer>(call: (...args: Args) => Promise<Answer>) =>
    async (...args: Args): Promise<Answer> => {
      writes += 1;
      if (writes > write || (writes === write && when === "before")) throw new Error("The process died.");
      const answer = await call(...args);
      if (writes === write) throw new Error("The process died.");
      return answer;
    };
  const { startDeadlines } = inner.maintenance;
  const own = {
    commit: mortal((batch: Parameters<Store["commit"]>[0]) => inner.commit(batch)),
    maintenance: Object.assign(Object.create(inner.maintenance) as Store["maintenance"], {
      startDeadlines: Object.assign(Object.create(startDeadlines) as typeof startDeadlines, {
        earliest: (limit: number) => startDeadlines.earliest(limit),
        remove: mortal((deadlines: Parameters<typeof startDeadlines.remove>[0]) => startDeadlines.remove(deadlines)),
      }),
    }),
  };
  return new Proxy(inner, {
    get: (target, name) => {
      const owner = name in own ? own : target;
      const value: unknown = Reflect.get(owner, name);
      return typeof value === "function" ? value.bind(owner) : value;
    },
  });
}
