import type { RunHandle } from "pawl";
import { testPawl } from "pawl/testing";
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test } from "vitest";
import { type TestDatabase, testDatabase } from "../../test/support/databases.js";
import { forMemoryAnd } from "../../test/support/effort.js";
import { world } from "../../test/support/virtual-worlds.js";
import { gate } from "../../test/support/waiting.js";
import { Balances, Ledger, Mail } from "./bank.js";
import { ledgerImport } from "./mutations.js";

const account = "NL02";
const twoHundred = Array.from({ length: 200 }, (_, index) => ({ id: index + 1, account, cents: index % 10 }));
const total = twoHundred.reduce((sum, { cents }) => sum + cents, 0);

/** How many nodes are in each state. */
async function statesOf(run: RunHandle): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const { state } of await run.nodes()) counts[state] = (counts[state] ?? 0) + 1;
  return counts;
}

forMemoryAnd("sqlite", (kind) => {
  const [ledger, balances, mail] = [new Ledger(), new Balances(), new Mail()];
  const { jobs, importMutations } = ledgerImport({ ledger, balances, mail });
  let database: TestDatabase;

  beforeAll(async () => {
    database = await testDatabase(kind);
  });
  afterAll(() => database.drop());
  beforeEach(() => {
    ledger.reset([...twoHundred, { id: 201, account: "somebody else's", cents: 1_000 }]);
    mail.effects.forget();
  });

  async function begin() {
    const t = await testPawl({ workflows: [], jobs, store: database.url });
    onTestFinished(() => t.close());
    return { t, run: await importMutations(t.pawl, account) };
  }

  test("200 mutations are each booked once, then added up, and then the user is notified", async () => {
    const { t, run } = await begin();
    await t.speedrun(run);
    expect(await statesOf(run)).toEqual({ completed: 202 });
    expect(ledger.bookings.all.map(({ id }) => id).sort((a, b) => a - b)).toEqual(twoHundred.map(({ id }) => id));
    expect(ledger.bookings.repeats).toBe(0);
    expect(mail.effects.all).toEqual([`The balance of ${account} is ${total} cents.`]);
    expect((await t.pawl.runs({ workflow: "ledger_import", tag: account })).runs[0]?.id).toBe(run.id);
    expect((await t.pawl.verify()).differences).toEqual([]);
  });

  test("a mutation that cannot be booked delays the sum until an operator has corrected it", async () => {
    ledger.garbled = 77;
    const { t, run } = await begin();
    await t.settle();
    expect(await run.get()).toMatchObject({
      status: "paused",
      pauseReason: expect.stringContaining('Node "mutation_77" failed: Mutation 77 has no amount.'),
    });
    expect(await statesOf(run)).toEqual({ completed: 199, failed: 1, pending: 2 });
    expect(mail.effects.all).toEqual([]);

    ledger.garbled = null;
    await run.reattempt("mutation_77");
    await t.speedrun(run);
    expect((await run.nodes()).find(({ name }) => name === "mutation_77")).toMatchObject({ attempt: 2 });
    expect(ledger.bookings.repeats).toBe(0);
    expect(mail.effects.all).toEqual([`The balance of ${account} is ${total} cents.`]);
    expect((await t.pawl.verify()).differences).toEqual([]);
  });

  test("an account without mutations is also added up, and its user is notified", async () => {
    ledger.reset([]);
    const { t, run } = await begin();
    await t.speedrun(run);
    expect(mail.effects.all).toEqual([`The balance of ${account} is 0 cents.`]);
  });

  test("a worker that is killed in the middle repeats at most the nodes in flight", async () => {
    const w = await world(kind, database.url);
    const stalled = gate();
    ledger.stall = { id: 120, reached: stalled.open };
    const doomed = await w.worker([], { jobs });
    const run = await importMutations(w.pawl, account);
    void doomed.settle();
    await stalled.opened;
    await doomed.kill();

    const heir = await w.worker([], { jobs });
    await heir.settle();
    await run.result({ timeout: "100s" });
    expect(ledger.bookings.all).toHaveLength(200);
    // The concurrency limit of the graph.
    expect(ledger.bookings.repeats).toBeGreaterThanOrEqual(1);
    expect(ledger.bookings.repeats).toBeLessThanOrEqual(50);
    expect(mail.effects.all).toEqual([`The balance of ${account} is ${total} cents.`]);
    expect((await w.pawl.verify()).differences).toEqual([]);
  });
});
