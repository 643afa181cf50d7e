/** A small scenario with limits, and the gauges for it, counted by hand. */
import { limit, workflow } from "pawl";
import { onTestFinished } from "vitest";
import { world } from "../support/virtual-worlds.js";
import { gate, until } from "../support/waiting.js";

/** By gauge, then by limit. `paced` has a rate only, so it has no concurrency. */
export const expectedLimits = {
  in_use: { api: 0, paced: 2, per_tenant: 2 },
  waiting: { api: 0, paced: 0, per_tenant: 3 },
  concurrency: { api: 5, per_tenant: 1 },
  overridden: { api: 1, paced: 0, per_tenant: 0 },
} as const;

/** Two tenants hold a slot each, and three runs of one of them wait. */
export async function limitScenario() {
  const perTenant = limit("per_tenant", { key: "input", concurrency: 1 });
  const paced = limit("paced", { rate: { limit: 60, per: "1m", burst: 59 } });
  const api = limit("api", { concurrency: 60 });
  const done = gate();
  let entered = 0;
  const sync = workflow("sync", { limits: [perTenant, paced] }, (ctx, _: string) =>
    ctx.step("work", async () => {
      entered += 1;
      await done.opened;
    }),
  );
  const other = workflow("other", { limits: [api] }, async () => {});
  const w = await world();
  const { worker } = await w.worker([sync, other]);
  await w.pawl.startMany(sync, ["a", "a", "a", "a", "b"]);
  const settled = worker.runUntilIdle();
  onTestFinished(async () => {
    done.open();
    await settled;
  });
  await until(() => entered === 2);
  const waitingOfTenants = async () => (await w.pawl.limits.list()).find(({ name }) => name === "per_tenant")?.waiting;
  await until(async () => (await waitingOfTenants()) === 3);
  await w.pawl.limits.override("api", { concurrency: 5 });
  return w.pawl;
}
