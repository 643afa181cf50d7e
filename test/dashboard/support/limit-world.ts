/** A database with every kind of limit: per key, with a rate, held open, of steps, overridden and unused. */
import { limit, workflow } from "pawl";
import { onTestFinished } from "vitest";
import { gate, until } from "../../support/waiting.js";
import { type DashboardTestOptions, type ServedDashboard, serveDashboard } from "./served-dashboard.js";

const perTenant = limit("per_tenant", { key: "input.tenant", concurrency: 2 });
const openai = limit("openai", { concurrency: 60, rate: { limit: 90_000, per: "1m", burst: 500 } });
const mailHour = limit("mail_provider", { rate: { limit: 2, per: "1h", burst: 1 } });
const perCustomer = limit("one_migration_per_customer", {
  key: "input.tenant",
  concurrency: 1,
  while: "open",
});
const unused = limit("legacy_crm", { concurrency: 5, onFull: "skip", backlog: 100 });

export interface LimitWorld extends ServedDashboard {
  /** The ids of runs: that hold a slot of "acme", that wait for one, and whose step waits for "mail_provider". */
  readonly holders: readonly string[];
  readonly waiting: readonly string[];
  readonly mail: readonly string[];
  /** Lets the runs that hold slots end. */
  readonly release: () => void;
}

/** Two runs of "acme" hold its slots and nine wait; other keys have one each. */
export async function serveLimits(options: DashboardTestOptions = {}): Promise<LimitWorld> {
  const done = gate();
  (options.onEnd ?? onTestFinished)(async () => done.open());
  let entered = 0;
  const sync = workflow("sync", { limits: [perTenant] }, async (ctx, _: { tenant: string }) => {
    entered += 1;
    await ctx.step("copy", () => done.opened, { limit: openai, units: 12 });
  });
  const mail = workflow("mail", async (ctx, _: { to: string }) => ctx.step("send", () => "sent", { limit: mailHour }));
  const migrate = workflow("migrate", { limits: [perCustomer] }, async (ctx, _: { tenant: string }) => {
    await ctx.waitForSignal("approved");
  });
  const old = workflow("old", { limits: [unused] }, async () => {});
  const served = await serveDashboard({ registered: [sync, mail, migrate, old], ...options });
  const { pawl } = served;
  const start = async (tenant: string, count: number) =>
    (await pawl.startMany(sync, Array(count).fill({ tenant }))).map(({ id }) => id);
  const acme = await start("acme", 2);
  await until(() => entered === 2);
  const waiting = await start("acme", 9);
  for (const tenant of ["globex", "initech", "umbrella & sons", "wayne/eu"]) await start(tenant, 1);
  await until(() => entered === 6);
  await until(async () => (await pawl.limits.get("openai"))?.inUse === 6);
  const letters = await pawl.startMany(mail, Array(4).fill({ to: "ada" }));
  await pawl.startMany(migrate, [{ tenant: "acme" }, { tenant: "acme" }, { tenant: "globex" }]);
  const waitingOf = async (name: string) => (await pawl.limits.list()).find((one) => one.name === name)?.waiting;
  await until(async () => (await waitingOf("per_tenant")) === 9);
  await until(async () => (await waitingOf("mail_provider")) === 2);
  await until(async () => (await waitingOf("one_migration_per_customer")) === 1);
  return {
    ...served,
    holders: acme,
    waiting,
    mail: letters.map(({ id }) => id),
    release: done.open,
  };
}

export async function overrideOpenai({ pawl }: LimitWorld): Promise<void> {
  await pawl.limits.override("openai", {
    ...{ concurrency: 3, rate: { limit: 10_000, per: "1m" }, until: "2h" },
    ...{ by: "ada", reason: "They answer with 429 since the incident of this morning." },
  });
}
