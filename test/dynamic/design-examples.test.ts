/** The examples from the original design, on every store: an order, 200 mutations, a diamond with a reattempt. */
import { job, PermanentError } from "pawl";
import { expect, test } from "vitest";
import { forMemoryAnd } from "../support/effort.js";
import { gate } from "../support/waiting.js";
import { eventsOf, jobWorld, nodesOf } from "./job-world.js";
import { wrongHashes } from "./recompute-hashes.js";

forMemoryAnd("sqlite", (kind) => {
  test("an order: inventory and fraud in parallel, the charge after both, then the rest", async () => {
    const executed: string[] = [];
    const both = [gate(), gate()] as const;
    const record = job("Note", (args: { order: number }, { node }) => {
      executed.push(`${node.name} ${args.order}`);
      return node.name;
    });
    // Each of the two jobs ends only when the other one has started.
    const check = job("Check", async (args: { order: number; own: 0 | 1 }, { node }) => {
      both[args.own].open();
      await both[args.own === 0 ? 1 : 0].opened;
      executed.push(`${node.name} ${args.order}`);
      return node.name;
    });
    const w = await jobWorld(kind, record, check);
    const run = await w.pawl.build("order", (g) => {
      const validate = g.node("validate", { job: record, args: { order: 7 } });
      const inventory = g.node("check_inventory", { job: check, args: { order: 7, own: 0 }, dependsOn: validate });
      g.node("check_fraud", { job: check, args: { order: 7, own: 1 }, dependsOn: "validate" });
      g.node("charge", { job: record, args: { order: 7 }, dependsOn: [inventory, "check_fraud"] });
      g.node("ship", { job: "Note", args: { order: 7 } });
      g.node("complete", { job: record, args: { order: 7 } });
    });
    await w.runToEnd();
    await run.result({ timeout: "100s" });
    expect(executed[0]).toBe("validate 7");
    expect(executed.slice(1, 3).sort()).toEqual(["check_fraud 7", "check_inventory 7"]);
    expect(executed.slice(3)).toEqual(["charge 7", "ship 7", "complete 7"]);
    expect(await nodesOf(run)).toEqual(
      ["validate", "check_inventory", "check_fraud", "charge", "ship", "complete"].map((name) => `${name} completed 1`),
    );
    expect((await w.pawl.verify()).differences).toEqual([]);
  });

  test("200 mutations in parallel, then aggregate, then notify", async () => {
    const processed = new Map<number, number>();
    const behavior: string[] = [];
    const process = job("ProcessMutation", (args: { id: number }) => {
      processed.set(args.id, (processed.get(args.id) ?? 0) + 1);
      return args.id;
    });
    const aggregate = job("AggregateMutations", (args: { user: string }) => {
      behavior.push(`${args.user}: ${processed.size}`);
    });
    const notify = job("Notify", () => {
      behavior.push("notified");
    });
    const w = await jobWorld(kind, process, aggregate, notify);
    const ids = Array.from({ length: 200 }, (_, n) => n + 1);
    const run = await w.pawl.build("ledger-import", (g) => {
      const parts = g.fanOut(ids, { name: (id) => `mutation_${id}`, job: process, args: (id) => ({ id }) });
      g.node("aggregate", { job: aggregate, args: { user: "u1" }, dependsOn: parts });
      g.node("notify", { job: "Notify" });
    });
    await w.runToEnd();
    await run.result({ timeout: "100s" });
    expect([...processed.values()]).toEqual(ids.map(() => 1));
    expect(behavior).toEqual(["u1: 200", "notified"]);
    const rows = await w.store.log(run.id, { after: 0, limit: 1_000 });
    const { wrong, checked } = wrongHashes(rows, JSON.parse(await run.exportDag()));
    expect({ wrong, checked }).toEqual({ wrong: [], checked: 202 });
    expect((await w.pawl.verify()).differences).toEqual([]);
  });

  test("a diamond with a failed side: the node is retried, and the last node uses the output of the second attempt", async () => {
    let works = false;
    const fine = job("Fine", (_args: void, { node }) => node.name);
    const fraud = job("Fraud", (_args: void, { attempt }) => {
      if (!works) throw new PermanentError("the service is down");
      return `attempt ${attempt}`;
    });
    const w = await jobWorld(kind, fine, fraud);
    const run = await w.pawl.build("diamond", (g) => {
      const a = g.node("A", { job: fine });
      const b = g.node("B", { job: fine, dependsOn: a });
      const c = g.node("C", { job: fraud, dependsOn: a });
      g.node("D", { job: fine, dependsOn: [b, c] });
    });
    await w.runToEnd();
    expect(await run.status()).toBe("paused");
    expect(await nodesOf(run)).toEqual(["A completed 1", "B completed 1", "C failed 1", "D pending 0"]);
    works = true;
    await run.reattempt("C");
    await w.runToEnd();
    await run.result({ timeout: "100s" });
    const attempts = (await run.executions()).map(({ attempt, state }) => `${attempt} ${state}`);
    expect(attempts).toEqual(["1 completed", "1 completed", "1 failed", "2 completed", "1 completed"]);
    const { A, B, C, D } = Object.fromEntries((await run.nodes()).map((node) => [node.name, node]));
    expect(C).toMatchObject({ attempt: 2, state: "completed", error: null });
    const rows = await w.store.log(run.id, { after: 0, limit: 1_000 });
    const dag = JSON.parse(await run.exportDag());
    expect(wrongHashes(rows, dag)).toEqual({ wrong: [], checked: 4 });
    // With the hash of C's first attempt, D would have another hash.
    const asFirst = rows.map((row) => (row.node === C?.id && row.attempt === 2 ? { ...row, attempt: 1 } : row));
    expect(wrongHashes(asFirst, dag).wrong).toEqual([C?.id, D?.id]);
    expect(new Set([A, B, C, D].map((node) => node?.ancestryHash)).size).toBe(4);
    expect((await eventsOf(run)).filter((line) => line.includes(" C "))).toEqual([
      "node.dispatched C 1",
      "step.failed C 1",
      "node.reopened C 1",
      "node.dispatched C 2",
      "step.completed C 2",
    ]);
    expect((await w.pawl.verify()).differences).toEqual([]);
  });
});
