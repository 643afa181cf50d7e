/** What an idle worker costs, counted where the statements are executed. */
import { setTimeout as sleep } from "node:timers/promises";
import { connect, workflow } from "pawl";
import { afterEach, describe, expect, test } from "vitest";
import { type OwnServer, ownPostgres } from "../../scripts/servers.mjs";
import { isLeftOut, type TestDatabase, emptyDatabase } from "../support/databases.js";
import { until } from "../support/waiting.js";
import { watchStatements } from "./sent-statements.js";
import { StatementLog } from "./statement-log.js";

/** Long enough that a poll and a heartbeat at either end do not affect the result. */
const watchedMs = 12_000;
const perSecond = 2;

const definitions = ["one", "two", "three"].map((name) =>
  workflow(name, async (ctx) => {
    await ctx.sleep("a while", "1 day");
  }),
);

/** A worker of three workflows, each with a sleeping run, with the default options. */
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
    await sleep(2_500);
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
  afterEach(() => database?.drop());

  test("an idle worker issues at most 2 statements a second", { timeout: 60_000 }, async () => {
    database = await emptyDatabase("sqlite");
    const sent = await watchStatements("sqlite");
    const pawl = await idleWorker(database.url);
    await sleep(2_500);
    sent.clear();
    const began = performance.now();
    await sleep(watchedMs);
    const seconds = (performance.now() - began) / 1_000;
    const statements = [...sent.texts];
    await pawl.close();
    expect(statements.length, statements.join("\n")).toBeLessThanOrEqual(perSecond * seconds);
    expect(statements.length).toBeGreaterThan(0);
  });
});
