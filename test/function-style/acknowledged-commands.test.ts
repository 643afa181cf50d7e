/**
 * A command that was acknowledged takes effect at the next boundary, even if the run is about to end: pause, cancel,
 * signal.
 */
import { Pawl, PermanentError, type RunHandle, Workflow, workflow } from "pawl";
import { describe, expect, onTestFinished, test } from "vitest";
import type { Store } from "../../src/store/contract/store.js";
import { openStore, testDatabase } from "../support/databases.js";
import { forMemoryAnd } from "../support/effort.js";
import { logOf } from "../support/run-checks.js";
import { silent, type World, world } from "../support/virtual-worlds.js";
import { gate, until } from "../support/waiting.js";

const clientLocations = ["the same process", "another process"] as const;

/**
 * Opens a world and a client. A client in another process sends no hints, so the workers must find its writes by
 * polling.
 */
async function openWorldAndClient(
  kind: "memory" | "sqlite" | "postgres" | "mysql",
  where: (typeof clientLocations)[number],
) {
  const database = await testDatabase(kind);
  onTestFinished(() => database.drop());
  const w = await world(kind, database.url);
  if (where === "the same process" || kind === "memory") return { w, client: w.pawl };
  // Notifications are off, as with a database that cannot send them or has lost them.
  const store: Store = await openStore(kind, database.url, { clock: w.clock.read, notify: false });
  const client = new Pawl(store, silent);
  onTestFinished(() => client.close());
  return { w, client };
}

/** Waits until the run is parked or has ended. It reads the task only, so it does not make the worker poll. */
const waitUntilReleased = (w: World, run: RunHandle<any, any>) =>
  until(async () => (await w.store.tasks([run.id]))[0]?.state !== "owned");

forMemoryAnd("postgres", (kind) => {
  for (const where of clientLocations)
    for (const command of ["pause", "cancel"] as const)
      describe(`a ${command} from ${where}`, () => {
        test("lets at most one more step of a chain start", async () => {
          const { w, client } = await openWorldAndClient(kind, where);
          let startedCount = 0;
          let countAtAcknowledgement: number | null = null;
          const tenth = gate();
          const chain = workflow("chain", async (ctx) => {
            for (let n = 0; n < 500; n += 1)
              await ctx.step("quick", () => {
                startedCount += 1;
                if (startedCount === 10) tenth.open();
              });
          });
          await w.worker([chain], { lease: "1 hour" });
          const run = await w.pawl.start(chain);
          await tenth.opened;
          await client.run(run.id)[command]();
          countAtAcknowledgement = startedCount;
          await waitUntilReleased(w, run);
          expect(await run.status()).toBe(command === "pause" ? "paused" : "canceled");
          expect(startedCount - countAtAcknowledgement).toBeLessThanOrEqual(1);
        });

        test("lets at most one more step per branch start", async () => {
          const { w, client } = await openWorldAndClient(kind, where);
          const startedCount = [0, 0, 0];
          const go = gate();
          const wide = workflow("wide", (ctx) =>
            Promise.all(
              startedCount.map(async (_zero, branch) => {
                for (let n = 0; n < 200; n += 1)
                  await ctx.step(`branch ${branch}`, () => {
                    startedCount[branch] = (startedCount[branch] as number) + 1;
                    if (startedCount[branch] === 10) go.open();
                  });
              }),
            ),
          );
          await w.worker([wide], { lease: "1 hour" });
          const run = await w.pawl.start(wide);
          await go.opened;
          await client.run(run.id)[command]();
          const countAtAcknowledgement = [...startedCount];
          await waitUntilReleased(w, run);
          for (const [branch, count] of startedCount.entries())
            expect(count - (countAtAcknowledgement[branch] as number)).toBeLessThanOrEqual(1);
        });

        test("lets no item of a resumable step start after the next checkpoint", async () => {
          const { w, client } = await openWorldAndClient(kind, where);
          let startedCount = 0;
          const tenth = gate();
          class Items extends Workflow {
            static {
              this.resumableStep("all", {}, async (_w, iter) => {
                await iter.over(Array.from({ length: 5_000 }), () => {
                  startedCount += 1;
                  if (startedCount === 10) tenth.open();
                });
              });
            }
          }
          await w.worker([Items], { lease: "1 hour" });
          const run = await w.pawl.start(Items);
          await tenth.opened;
          await client.run(run.id)[command]();
          const countAtAcknowledgement = startedCount;
          await waitUntilReleased(w, run);
          expect(startedCount - countAtAcknowledgement).toBeLessThanOrEqual(1);
        });
      });

  test("a cancel that was acknowledged while the last step ran takes effect", async () => {
    const { w, client } = await openWorldAndClient(kind, "another process");
    const [entered, leave] = [gate(), gate()];
    const last = workflow("last", (ctx) =>
      ctx.step("only", async () => {
        entered.open();
        await leave.opened;
      }),
    );
    await w.worker([last], { lease: "1 hour" });
    const run = await w.pawl.start(last);
    await entered.opened;
    await client.run(run.id).cancel("too late?");
    leave.open();
    await waitUntilReleased(w, run);
    expect(await run.status()).toBe("canceled");
    expect((await w.pawl.verify()).differences).toEqual([]);
  });

  test("a pause that was acknowledged while the last step ran takes effect, and the run completes when it is resumed", async () => {
    const { w, client } = await openWorldAndClient(kind, "another process");
    let runs = 0;
    const [entered, leave] = [gate(), gate()];
    const last = workflow("last", (ctx) =>
      ctx.step("only", async () => {
        runs += 1;
        entered.open();
        await leave.opened;
        return "done";
      }),
    );
    const worker = await w.worker([last], { lease: "1 hour" });
    const run = await w.pawl.start(last);
    await entered.opened;
    await client.run(run.id).pause();
    leave.open();
    await waitUntilReleased(w, run);
    expect(await run.status()).toBe("paused");
    await run.resume();
    await worker.settle();
    expect(await run.result()).toBe("done");
    expect(runs).toBe(1);
  });

  test("a signal that was acknowledged before its run failed is delivered to the retry", async () => {
    const { w, client } = await openWorldAndClient(kind, "another process");
    let fails = true;
    const [entered, leave] = [gate(), gate()];
    const pay = workflow("pay", async (ctx) => {
      await ctx.step("slow", async () => {
        entered.open();
        await leave.opened;
      });
      if (fails) throw new PermanentError("no");
      return ctx.waitForSignal("paid", { timeout: "1 hour" });
    });
    const worker = await w.worker([pay], { lease: "1 hour" });
    const run = await w.pawl.start(pay);
    await entered.opened;
    await client.run(run.id).signal("paid", "1 EUR", { key: "webhook" });
    leave.open();
    await waitUntilReleased(w, run);
    expect(await run.status()).toBe("failed");
    expect(await logOf(run)).toContain("signal.received");
    fails = false;
    const retry = await run.retry();
    await worker.settle();
    expect(await retry.result()).toBe("1 EUR");
  });

  test("a step that finishes its run finishes it once, even if a signal was acknowledged while the step ran", async () => {
    const { w, client } = await openWorldAndClient(kind, "another process");
    let runs = 0;
    const [entered, leave] = [gate(), gate()];
    class Ends extends Workflow<null, void, string> {
      static {
        this.step("only", async (one) => {
          runs += 1;
          entered.open();
          await leave.opened;
          one.finish("finished");
        });
        this.step("never", () => void (runs += 100));
      }
    }
    await w.worker([Ends], { lease: "1 hour" });
    const run = await w.pawl.start(Ends);
    await entered.opened;
    await client.run(run.id).signal("hello");
    leave.open();
    await waitUntilReleased(w, run);
    expect(await run.result()).toBe("finished");
    expect(runs).toBe(1);
  });
});
