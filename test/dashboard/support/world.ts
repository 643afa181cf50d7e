/**
 * A database with every kind of run, made by real workflows. Nothing in it depends on time: what a test must see while it
 * happens waits at a gate, and waits and delays last for days.
 */
import { graph, PermanentError, type RunHandle, type RunStatus, step, Workflow, workflow } from "pawl";
import { onTestFinished } from "vitest";
import { z } from "zod";
import { rawSql } from "../../support/raw-sql.js";
import { type Gate, gate, until } from "../../support/waiting.js";
import { type DashboardTestOptions, type ServedDashboard, serveDashboard } from "./served-dashboard.js";

/** The start form of the dashboard is made from it. */
const orderInput = z.object({
  sku: z.string().min(1).describe("The article, such as A-1."),
  cents: z.number().int().nonnegative().describe("The price in cents."),
});

/** What the workflows of a world do is decided by its gates. */
function workflowsOf(slowStep: Gate) {
  const order = workflow("order", { input: orderInput }, async (ctx, { sku, cents }) => {
    const shelf = await ctx.step("reserve", async () => {
      if (sku === "SLOW") await slowStep.opened;
      return { shelf: `shelf of ${sku}`, at: new Date("2026-01-31T09:00:00Z") };
    });
    await ctx.step("charge", () => charge(cents), { retry: { attempts: 4, initial: "1 hour" } });
    const approval = await ctx.waitForSignal<{ by: string }>("approved", { timeout: "7 days" });
    await ctx.step("ship", () => ship(sku));
    return { shelf, approvedBy: approval?.by ?? null };
  });
  const part = workflow("report_part", (ctx, { n }: { n: number }) => ctx.step("render", () => `page ${n}`));
  const report = workflow("nightly_report", async (ctx, { rows }: { rows: number }) => {
    const pages = await ctx.map(
      part,
      Array.from({ length: rows }, (_, n) => ({ n })),
    );
    return pages.length;
  });
  const reminder = workflow("reminder", async (ctx, { days }: { days: number }) => {
    await ctx.sleep("wait_for_the_day", `${days} days`);
    await ctx.step("remind", () => "reminded");
  });
  const validate = step("validate", (ctx: { input: { total: number } }) => ({ total: ctx.input.total }));
  const fraud = step("fraud", () => ({ score: 0.3 })).after(validate);
  const stock = step("stock", () => true).after(validate);
  const pay = step("pay", (ctx: { input: { total: number } }) => {
    if (ctx.input.total > 900) throw new PermanentError("The limit of the account is 900");
    return "paid";
  }).after(fraud, stock);
  const checkout = graph("checkout", [validate, fraud, stock, pay, step("deliver", () => "delivered").after(pay)]);
  return { order, part, report, reminder, checkout, Onboarding };
}

function charge(cents: number): { readonly charged: number } {
  if (cents === 13) throw new Error("The card was declined by bank 4711");
  return { charged: cents };
}

function ship(sku: string): string {
  if (sku !== "BROKEN") return "sent";
  const cause = new RangeError("Shelf 77 is not one of 1 to 60");
  throw new PermanentError("The parcel of BROKEN cannot be packed", { cause });
}

class Onboarding extends Workflow {
  static heroType = "User";
  static loadHero = (id: string) => ({ id, name: `User ${id}` });
  static {
    this.step("send_welcome", () => {});
    this.step("check_profile", (w) => {
      const { id } = w.hero as { readonly id: string };
      if (Number(id) % 3 === 0) throw new TypeError(`User ${id} has no address`);
    });
    this.step("send_reminder", { wait: "2 days" }, () => {});
  }
}

export interface World extends ServedDashboard {
  /** The ids of the runs, by what is special about them. */
  readonly runs: Readonly<Record<RunName, string>>;
  /** Lets the run that is "executing" go on. */
  readonly slowStep: Gate;
  readonly workflows: ReturnType<typeof workflowsOf>;
  /** Resolves when the run has this status. */
  reaches(runId: string, status: RunStatus): Promise<void>;
  /** Stores a value of a type that this version does not know as the input of a run. */
  damageInput(runId: string): Promise<void>;
}

export type RunName =
  | "waiting"
  | "completed"
  | "failed"
  | "retrying"
  | "executing"
  | "pausedByPerson"
  | "pausedByError"
  | "sleeping"
  | "planned"
  | "canceled"
  | "parent"
  | "graph"
  | "failedGraph"
  | "withoutWorker";

export async function serveWorld(options: DashboardTestOptions = {}): Promise<World> {
  const slowStep = gate();
  const workflows = workflowsOf(slowStep);
  const { order, report, part, reminder, checkout } = workflows;
  const registered = [order, part, report, reminder, checkout, Onboarding];
  const served = await serveDashboard({ registered, workflows: registered, ...options });
  // The worker waits for the step when it stops.
  const openGate = async () => slowStep.open();
  (options.onEnd ?? onTestFinished)(openGate);

  const { pawl } = served;
  const reaches = (runId: string, status: RunStatus) => until(async () => (await pawl.run(runId).status()) === status);
  const begun: Record<RunName, RunHandle<unknown>> = {
    waiting: await pawl.start(order, { sku: "A-1", cents: 4200 }, { idempotencyKey: "cart-1", tags: ["web", "vip"] }),
    completed: await pawl.start(order, { sku: "A-2", cents: 900 }, { tags: ["shop"] }),
    failed: await pawl.start(order, { sku: "BROKEN", cents: 700 }, { idempotencyKey: "cart-3" }),
    retrying: await pawl.start(order, { sku: "A-4", cents: 13 }),
    executing: await pawl.start(order, { sku: "SLOW", cents: 500 }),
    pausedByPerson: await pawl.start(order, { sku: "A-6", cents: 100 }),
    pausedByError: await pawl.start(Onboarding, undefined, { hero: { type: "User", id: "3" } }),
    sleeping: await pawl.start(reminder, { days: 3 }),
    planned: await pawl.start(order, { sku: "A-9", cents: 1 }, { delay: "1 day" }),
    canceled: await pawl.start(order, { sku: "A-10", cents: 1 }),
    parent: await pawl.start(report, { rows: 6 }),
    graph: await pawl.start(checkout, { total: 100 }),
    failedGraph: await pawl.start(checkout, { total: 1_000 }),
    withoutWorker: await startForgotten(served),
  };
  for (const name of ["completed", "failed"] as const) await begun[name].signal("approved", { by: "finance" });
  for (const name of ["waiting", "pausedByPerson", "canceled"] as const) await reaches(begun[name].id, "waiting");
  await begun.pausedByPerson.pause("The customer called.", { by: "ada" });
  await begun.canceled.cancel("The customer changed their mind.", { by: "ada" });
  for (const [name, status] of Object.entries(statuses)) await reaches(begun[name as RunName].id, status);
  const runs = Object.fromEntries(Object.entries(begun).map(([name, { id }]) => [name, id])) as World["runs"];
  const damageInput = async (runId: string) => {
    const sql = await rawSql(served.databaseUrl);
    await sql.query(`UPDATE pawl_runs SET input = '{"$pawl":"Sealed","v":"0x"}' WHERE id = '${runId}'`);
    await sql.close();
  };
  return { ...served, runs, slowStep, workflows, reaches, damageInput };
}

const statuses: Readonly<Record<RunName, RunStatus>> = {
  waiting: "waiting",
  completed: "completed",
  failed: "failed",
  retrying: "waiting",
  executing: "running",
  pausedByPerson: "paused",
  pausedByError: "paused",
  sleeping: "waiting",
  planned: "pending",
  canceled: "canceled",
  parent: "completed",
  graph: "completed",
  failedGraph: "failed",
  withoutWorker: "pending",
};

async function startForgotten({ pawl }: ServedDashboard): Promise<RunHandle<unknown>> {
  await pawl.createWorkflow("forgotten");
  return pawl.workflow("forgotten").trigger({});
}
