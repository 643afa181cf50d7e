/**
 * One tenant has thousands of queued runs (50,000 in `npm run test:long`), and 20 tenants have one each. How soon these begin is counted
 * in admissions, from the history of the slots that triggers of the test write.
 */
import { limit, workflow } from "pawl";
import { expect, onTestFinished, test } from "vitest";
import type { Store } from "../../src/store/contract/store.js";
import { type AnyStoreKind, forEachStore, testDatabase } from "../support/databases.js";
import { sized } from "../support/effort.js";
import { type RawSql, rawSql } from "../support/raw-sql.js";
import { keepWorking, world } from "../support/virtual-worlds.js";
import { until } from "../support/waiting.js";
import { readHistory, recordLimitHistory } from "../torture/limits/limit-history.js";

const backlog = sized(5_000, 50_000);
const smallTenants = Array.from({ length: 20 }, (_, n) => `small-${n}`);
const slots = 5;

const stores: readonly AnyStoreKind[] = ["sqlite", "postgres", "mysql"];
forEachStore((kind) => {
  test(`20 tenants with one run each begin beside a tenant with ${backlog} queued runs`, async () => {
    const { url, drop } = await testDatabase(kind);
    onTestFinished(drop);
    const w = await world(kind, url);
    const sql = await rawSql(url);
    onTestFinished(() => sql.close());
    await recordLimitHistory(sql, url, ["slots"]);
    const api = limit("api", { concurrency: slots });
    const perTenant = limit("per_tenant", { key: "input.tenant", concurrency: slots });
    const begun = new Set<string>();
    const wf = workflow("wf", { limits: [api, perTenant] }, async (_ctx, { tenant }: { tenant: string }) => {
      begun.add(tenant);
    });
    await w.pawl.startMany(wf, Array(backlog).fill({ tenant: "big" }));
    w.clock.moveTo(w.clock.read() + 1);
    const small = await w.pawl.startMany(
      wf,
      smallTenants.map((tenant) => ({ tenant })),
    );
    const sortedAt = noteSorting(w.store.limits, sql);
    const workers = [await w.worker([wf], { concurrency: 10 }), await w.worker([wf], { concurrency: 10 })];
    keepWorking(...workers);
    await until(() => smallTenants.every((tenant) => begun.has(tenant)));
    await Promise.all(workers.map(({ worker }) => worker.stop()));

    const history = await readHistory(sql);
    const admissions = history.filter(({ what, lane }) => what === "slot_taken" && lane === "api\t");
    const waits = small.map(({ id }) => {
      const admission = admissions.findIndex((one) => one.id === id);
      expect(admission).toBeGreaterThanOrEqual(0);
      // A run that no worker had to sort has waited in its class since it was started, before any worker was there.
      return admissions.slice(0, admission).filter(({ seq }) => seq > (sortedAt.get(id) ?? 0)).length;
    });
    // There are 21 busy keys, so each waits for 20 others at most. An admission that was under way when a run was sorted does not
    // know its class, and may fill the free slots with others.
    const underWay = sortedAt.size > 0 ? slots : 0;
    expect(Math.max(...waits)).toBeLessThanOrEqual(smallTenants.length + underWay);
  });
}, stores);

/** The number in the history after which it was certain that a run was sorted, by its id. */
function noteSorting(limits: Store["limits"], sql: RawSql): ReadonlyMap<string, number> {
  const sortedAt = new Map<string, number>();
  const sort = limits.sort.bind(limits);
  limits.sort = async (tasks) => {
    const result = await sort(tasks);
    const [row] = await sql.query("SELECT coalesce(max(seq), 0) AS seq FROM limit_history");
    for (const { runId } of tasks) if (!sortedAt.has(runId)) sortedAt.set(runId, Number(row?.seq));
    return result;
  };
  return sortedAt;
}
