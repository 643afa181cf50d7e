/** External services must recognize a retry: an unfinished call keeps its idempotency key. */
import { graph, PermanentError, step, Workflow, workflow } from "pawl";
import { beforeEach, expect, onTestFinished, test } from "vitest";
import { testDatabase } from "../support/databases.js";
import { forMemoryAnd } from "../support/effort.js";
import { world } from "../support/virtual-worlds.js";
import { Provider } from "./payment-provider.js";

let bank = new Provider();
let shop: "open" | "closed" = "open";
beforeEach(() => {
  bank = new Provider();
  shop = "open";
});
const once = { retry: { attempts: 1 } };
const ship = () => {
  if (shop === "closed") throw new PermanentError("the shop is closed");
  return "shipped";
};

const order = workflow("order", once, async (ctx) => {
  const payment = await ctx.step("charge", ({ idempotencyKey }) => bank.charge(idempotencyKey));
  await ctx.step("ship", ship);
  return payment;
});
const saga = workflow("saga", once, async (ctx) => {
  const payment = await ctx.step("charge", ({ idempotencyKey }) => bank.charge(idempotencyKey), {
    compensate: ({ idempotencyKey }, id) => bank.refund(idempotencyKey, id as string),
  });
  await ctx.step("ship", ship);
  return payment;
});
class Order extends Workflow {
  static {
    this.step("reserve", () => "reserved");
    this.step("charge", { onException: "fail" }, async (w) => {
      // A step within the step has its own key.
      await w.step("fee", ({ idempotencyKey }) => bank.charge(idempotencyKey), once);
      return bank.charge(w.idempotencyKey);
    });
  }
}
const charge = step("charge", ({ idempotencyKey }) => bank.charge(idempotencyKey), once);
const drawn = graph("drawn", [charge]);
const parent = workflow("parent", once, async (ctx) => ctx.run(order, undefined));
const many = workflow("many", once, async (ctx) => [...(await ctx.map(order, [undefined, undefined]))]);

forMemoryAnd("mysql", (kind) => {
  async function worldOnStore() {
    const database = await testDatabase(kind);
    onTestFinished(() => database.drop());
    const w = await world(kind, database.url);
    const working = await w.worker([order, saga, Order, drawn, parent, many]);
    return { ...w, working, settle: working.settle };
  }

  for (const definition of [order, Order, drawn, parent, many]) {
    test(`${definition.name}: a charge whose response was lost is charged once, however often the run is retried`, async () => {
      const w = await worldOnStore();
      bank.lostResponses = 3;
      let run = await w.pawl.start(definition as typeof order);
      await w.settle();
      while ((await run.status()) === "failed") {
        run = await run.retry();
        await w.settle();
      }
      expect(await run.status()).toBe("completed");
      expect(bank.lostResponses).toBe(0);
      const expected = { order: 1, Order: 2, drawn: 1, parent: 1, many: 2 }[definition.name];
      expect(bank.charges.size).toBe(expected);
      expect((await w.pawl.verify()).differences).toEqual([]);
    });
  }

  test("a canceled retry is itself retried in place of the first run, with the same keys", async () => {
    const w = await worldOnStore();
    bank.lostResponses = 1;
    const first = await w.pawl.start(order);
    await w.settle();
    await w.working.worker.stop();
    const second = await first.retry();
    await second.cancel();
    const third = await first.retry();
    expect(third.id).not.toBe(second.id);
    expect((await first.retry()).id).toBe(third.id);
    const { settle } = await w.worker([order]);
    await settle();
    expect(await third.result()).toBe("payment-1");
    expect(bank.charges.size).toBe(1);
    w.clock.moveTo(w.clock.read() + 86_400_000);
    expect(await w.pawl.prune({ olderThan: "1 hour" })).toEqual({ runs: 3, trees: 1 });
  });

  test("a compensated step runs again under a new key, so that the provider does not answer with the refunded payment", async () => {
    const w = await worldOnStore();
    shop = "closed";
    const first = await w.pawl.start(saga);
    await w.settle();
    expect(await first.status()).toBe("failed");
    expect(bank.standing).toEqual([]);
    const second = await first.retry();
    await w.settle();
    expect(await second.status()).toBe("failed");
    expect([bank.charges.size, bank.refunds.size, bank.standing.length]).toEqual([2, 2, 0]);
    // The response of the third charge is lost; the fourth run repeats the request and gets it.
    bank.lostResponses = 1;
    const third = await second.retry();
    await w.settle();
    expect(await third.status()).toBe("failed");
    shop = "open";
    const fourth = await third.retry();
    await w.settle();
    expect(await fourth.result()).toBe("payment-3");
    expect(bank.standing).toEqual(["payment-3"]);
  });
});
