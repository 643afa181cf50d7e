/**
 * A Pawl with runs in every state, whose inputs, outputs, errors, reasons and messages contain secrets. Its worker has
 * stopped, so that nothing changes unless a request changes it.
 */
import {
  connect,
  job,
  type Logger,
  limit,
  PauseError,
  type Pawl,
  PermanentError,
  type RunHandle,
  type ScheduledOccurrence,
  schedule,
  Workflow,
  workflow,
} from "pawl";
import { type HttpHandler, type HttpOptions, httpHandler } from "pawl/http";
import { onTestFinished } from "vitest";
import { setRemoteAddress } from "../../src/http/remote-address.js";
import { type AnyStoreKind, chosenStore, testDatabase } from "../support/databases.js";
import { silent } from "../support/virtual-worlds.js";
import { until } from "../support/waiting.js";

/** What no request without the right may see, and no request at all after redaction. */
export const secretPattern = /S3CR3T/i;
export const secret = (what: string) => `S3CR3T-${what}`;

const farAway = "2100-01-01T00:00Z";

const api = limit("api", { concurrency: 10 });

const order = workflow("order", { queue: "orders" }, async (ctx, _input: unknown) => {
  ctx.progress(1, 2, secret("progress"));
  await ctx.step("reserve", () => ({ shelf: secret("step-output") }), { limit: api });
  await ctx.waitForSignal("approved");
  return { receipt: secret("output") };
});

const failure = () => new PermanentError(secret("error"), { cause: new Error(secret("cause")) });

const failing = workflow("failing", async (ctx, _input: unknown) => {
  await ctx.step("charge", () => {
    throw failure();
  });
});

const stuck = workflow("stuck", async (ctx, _input: unknown) => {
  await ctx.step("ask", () => {
    throw new PauseError(secret("pause-error"));
  });
});

const parent = workflow("parent", async (ctx, _input: unknown) => {
  await ctx.run(order, { card: secret("child-input") }, { name: "child" });
});

class Chain extends Workflow<undefined, { card: string }> {
  static {
    this.step("first", () => {});
    this.step("second", { wait: "2 days" }, () => {});
  }
}

const importRow = job("ImportRow", async () => {
  throw failure();
});

/** In code. None of the schedules of this world fires by itself. */
const declared = schedule("declared", {
  workflow: order,
  input: (occurrence: ScheduledOccurrence) => occurrence.scheduledFor,
  at: [farAway],
});

async function putSchedules({ schedules }: Pawl): Promise<void> {
  const input = { card: secret("schedule-input") };
  const timing = { cron: "30 2 * * *", timeZone: "Europe/Berlin", startAt: farAway };
  await schedules.put("reports", { workflow: "order", input, ...timing });
  await schedules.pause("reports", { by: "ada", reason: secret("schedule-pause") });
  await schedules.put("ended", { workflow: "order", input, at: ["2020-01-02T00:00Z"] });
  await schedules.put("broken", { workflow: "unregistered", at: [farAway] });
  await schedules.trigger("broken", { by: "ada", reason: secret("trigger-reason") });
}

export interface EventfulWorld {
  readonly pawl: Pawl;
  readonly databaseUrl: string;
  readonly runs: Readonly<Record<RunName, string>>;
  handler(options?: HttpOptions): HttpHandler;
}

type RunName =
  | "waiting"
  | "signalled"
  | "paused"
  | "stuck"
  | "failed"
  | "canceled"
  | "completed"
  | "parent"
  | "chain"
  | "built"
  | "failedGraph";

export async function eventfulWorld(given: { kind?: AnyStoreKind; logger?: Logger } = {}): Promise<EventfulWorld> {
  const database = await testDatabase(given.kind ?? chosenStore ?? "memory");
  onTestFinished(() => database.drop());
  const pawl = await connect(database.url, { logger: given.logger ?? silent });
  onTestFinished(() => pawl.close());
  const worker = pawl.worker({
    workflows: [order, failing, stuck, parent, Chain],
    jobs: [importRow],
    schedules: [declared],
  });
  await worker.start();

  const input = { card: secret("input") };
  const startOrder = async () => {
    const run = await pawl.start(order, input, { by: "ada", reason: secret("start-reason"), tags: ["vip"] });
    await untilStatus(run, "waiting");
    return run;
  };
  const waiting = await startOrder();
  const signalled = await startOrder();
  await signalled.signal("other", secret("unread-signal"), { reason: secret("signal-reason"), by: "ada" });
  const paused = await startOrder();
  await paused.pause(secret("pause-reason"), { by: "ada" });
  const canceled = await startOrder();
  await canceled.cancel(secret("cancel-reason"), { by: "ada" });
  const completed = await startOrder();
  await completed.signal("approved", secret("signal"));
  const failed = await pawl.start(failing, input);
  const stuckRun = await pawl.start(stuck, input);
  const parentRun = await pawl.start(parent, input);
  const chain = await pawl.start(Chain, input);
  const build = (name: string, start: boolean) =>
    pawl.build(name, (g) => g.node("import", { job: importRow, args: { row: secret("job-args") } as never }), {
      start,
    });
  const built = await build("built", false);
  const failedGraph = await build("built-and-failed", true);

  await untilStatus(completed, "completed");
  await untilStatus(failed, "failed");
  await untilStatus(stuckRun, "paused");
  await untilStatus(parentRun, "waiting");
  await untilStatus(chain, "waiting");
  await chain.pause(secret("pause-reason"));
  await until(async () => ["paused", "failed"].includes(await failedGraph.status()));
  await worker.stop();
  await putSchedules(pawl);
  await pawl.limits.override("api", { concurrency: 5, by: "ada", reason: secret("override-reason") });
  await pawl.pauseQueue("orders", secret("queue-reason"), { by: "ada" });

  const runs = {
    waiting,
    signalled,
    paused,
    stuck: stuckRun,
    failed,
    canceled,
    completed,
    parent: parentRun,
    chain,
    built,
    failedGraph,
  };
  return {
    pawl,
    databaseUrl: database.url,
    runs: Object.fromEntries(Object.entries(runs).map(([name, { id }]) => [name, id])) as EventfulWorld["runs"],
    handler: (options) => httpHandler(pawl, options),
  };
}

async function untilStatus(run: RunHandle<any, any>, status: string): Promise<void> {
  await until(async () => (await run.status()) === status);
}

/** A request of a client on this machine, as `nodeListener` hands it to a handler. */
export function localRequest(
  method: string,
  path: string,
  options: { body?: unknown; headers?: Record<string, string>; signal?: AbortSignal } = {},
): Request {
  const { body, headers = {}, signal } = options;
  const request = new Request(`http://localhost${path}`, {
    method,
    headers: { ...(body === undefined ? {} : { "content-type": "application/json" }), ...headers },
    ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
    ...(signal === undefined ? {} : { signal }),
  });
  setRemoteAddress(request, "127.0.0.1");
  return request;
}
