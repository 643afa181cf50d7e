/**
 * Tenants in PostgreSQL schemas, as docs/tenancy.md describes. The other ways to separate tenants are executed as part
 * of that page.
 */
import { connect, type Pawl, workflow } from "pawl";
import { expect, onTestFinished, test } from "vitest";
import { forEachStore, testDatabase } from "../support/databases.js";
import { rawSql } from "../support/raw-sql.js";
import { silent } from "../support/virtual-worlds.js";

const order = workflow("order", async (ctx, name: string) => {
  await ctx.step("reserve", () => name);
  await ctx.waitForSignal("approved");
  return name;
});

forEachStore(() => {
  async function tenants(...names: string[]): Promise<{ url: string; of: Map<string, Pawl> }> {
    const { url, drop } = await testDatabase("postgres");
    onTestFinished(drop);
    const of = new Map<string, Pawl>();
    for (const name of names) {
      const pawl = await connect(url, { schema: `tenant_${name}`, logger: silent });
      onTestFinished(() => pawl.close());
      of.set(name, pawl);
    }
    return { url, of };
  }

  test("tenants in separate schemas share no run, no key, no hero, no queue and no worker", async () => {
    const { of } = await tenants("acme", "umbrella");
    const [acme, umbrella] = [...of.values()] as [Pawl, Pawl];
    const same = { idempotencyKey: "cart-1", hero: { type: "User", id: "42" } };
    const [first, second] = [await acme.start(order, "acme", same), await umbrella.start(order, "umbrella", same)];
    expect(first.id).not.toBe(second.id);

    const worker = acme.worker({ name: "acme-1", workflows: [order] });
    await worker.start();
    await worker.runUntilIdle();
    expect([await first.status(), await second.status()]).toEqual(["waiting", "pending"]);
    expect((await umbrella.workers()).length).toBe(0);

    await acme.pauseQueue("order");
    expect((await umbrella.queues()).map(({ paused }) => paused)).toEqual([null]);
    expect((await acme.runs()).runs.map(({ id }) => id)).toEqual([first.id]);
    await expect(umbrella.run(first.id).get()).rejects.toMatchObject({ code: "RUN_NOT_FOUND" });
  });

  test("dropping the schema of a tenant removes all its data, and the other tenants continue", async () => {
    const { url, of } = await tenants("acme", "umbrella");
    const [acme, umbrella] = [...of.values()] as [Pawl, Pawl];
    await acme.start(order, "acme");
    const other = await umbrella.start(order, "umbrella");
    await acme.close();
    const sql = await rawSql(url);
    onTestFinished(() => sql.close());
    await sql.query("DROP SCHEMA tenant_acme CASCADE");
    await umbrella.worker({ workflows: [order] }).start();
    await other.signal("approved");
    expect(await other.result({ timeout: "100s" })).toBe("umbrella");
  });
}, ["postgres"]);
