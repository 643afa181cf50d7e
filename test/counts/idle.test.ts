/** What a worker costs that has nothing to do: counted where the statements are executed. */
import { setTimeout as sleep } from "node:timers/promises";
import { connect, workflow } from "pawl";
import { afterEach, describe, expect, test, vi } from "vitest";
import { type OwnServer, ownPostgres } from "../../scripts/servers.mjs";
import { loadDriver } from "../../src/store/sqlite/driver.js";
import { until } from "../processes/waiting.js";
import { isLeftOut, type TestDatabase, testDatabase } from "../stores/harness.js";
import { StatementLog } from "./statement-log.js";

const watchedMs = 5_000;
const perSecond = 2;

const definitions = ["one", "two", "three"].map((name) =>
  workflow(name, async (ctx) => {
    await ctx.sleep("a while", "1 day");
  }),
);

/** A worker of three workflows, each with a run that sleeps, with the options it has when nobody gives any. */
async function idleWorker(url: string) {
  const pawl = await connect(url);
  const worker = await pawl.worker({ workflows: definitions }).start();
  const runs = await Promise.all(definitions.map((definition) => pawl.start(definition)));
  for (const run of runs) await until(async () => (await run.status()) === "waiting");
  await until(() => worker.active === 0);
  return pawl;
}

describe.skipIf(isLeftOut("postgres"))("on PostgreSQL", () => {
  let server: OwnServer;
  afterEach(() => server?.remove());

  test("an idle worker issues at most 2 statements a second", { timeout: 120_000 }, async () => {
    server = await ownPostgres();
    const log = await StatementLog.of(server);
    const pawl = await idleWorker(server.url);
    await sleep(1_000);
    const began = performance.now();
    const statements = await log.during(() => sleep(watchedMs));
    const seconds = (performance.now() - began) / 1_000;
    await pawl.close();
    expect(statements.length, statements.join("\n")).toBeLessThanOrEqual(perSecond * seconds);
    expect(statements.length).toBeGreaterThan(0);
  });
});

describe("on SQLite", () => {
  let database: TestDatabase | undefined;
  afterEach(async () => {
    vi.restoreAllMocks();
    await database?.drop();
  });

  test("an idle worker issues at most 2 statements a second", { timeout: 60_000 }, async () => {
    database = await testDatabase("sqlite");
    const statements = await countingDriver();
    const pawl = await idleWorker(database.url);
    await sleep(2_500);
    statements.length = 0;
    const began = performance.now();
    await sleep(watchedMs);
    const seconds = (performance.now() - began) / 1_000;
    const counted = statements.filter((sql) => sql !== lookAtSharedMemory);
    await pawl.close();
    expect(counted.length, counted.join("\n")).toBeLessThanOrEqual(perSecond * seconds);
    expect(counted.length).toBeGreaterThan(0);
  });
});

/** Compares a number in memory that processes share. It takes no lock and reads no page; the rest is counted. */
const lookAtSharedMemory = "PRAGMA data_version";

/** Notes every statement that the driver of this process executes, on whatever connection. */
async function countingDriver(): Promise<string[]> {
  const executed: string[] = [];
  const { Database } = await loadDriver();
  const probe = new Database(":memory:");
  const statement = probe.prepare("SELECT 1");
  const prototype = Object.getPrototypeOf(statement) as Record<
    "run" | "get" | "all",
    (...values: unknown[]) => unknown
  >;
  for (const method of ["run", "get", "all"] as const) {
    const real = prototype[method];
    vi.spyOn(prototype, method).mockImplementation(function (this: { source?: string; sourceSQL?: string }, ...values) {
      executed.push(this.source ?? this.sourceSQL ?? "?");
      return real.apply(this, values);
    });
  }
  const database = Object.getPrototypeOf(probe) as { exec(sql: string): unknown };
  const realExec = database.exec;
  vi.spyOn(database, "exec").mockImplementation(function (this: unknown, sql) {
    executed.push(sql);
    return realExec.call(this, sql);
  });
  statement.get();
  expect(executed).toEqual(["SELECT 1"]);
  probe.close();
  return executed;
}
