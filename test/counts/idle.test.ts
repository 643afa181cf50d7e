/** What an idle worker costs, counted where the statements are executed. */
import { setTimeout as sleep } from "node:timers/promises";
import { connect, workflow } from "pawl";
import { afterEach, describe, expect, test } from "vitest";
import { type OwnServer, ownPostgres } from "../../scripts/servers.mjs";
import { emptyDatabase, isLeftOut, type TestDatabase } from "../support/databases.js";
import { until } from "../support/waiting.js";
import { watchStatements } from "./sent-statements.js";
import { StatementLog } from "./statement-log.js";

/** Long enough that a poll and a heartbeat at either end do not affect the result. */
const watchedMs = 12_000;
const perSecond = 2;
/**
 * On a busy machine what is late from one interval is counted in the next, and what the start has left to do takes longer. A worker
 * that asks more often than it may does so in every interval.
 */
const intervals = 5;

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

/** Fails if the worker issues too many statements in each of the intervals, or none at all. */
async function expectIdle(
  statementsDuring: (wait: () => Promise<unknown>) => Promise<readonly string[]>,
): Promise<void> {
  const tooMany: string[] = [];
  for (let interval = 0; interval < intervals; interval += 1) {
    const began = performance.now();
    const statements = await statementsDuring(() => sleep(watchedMs));
    const seconds = (performance.now() - began) / 1_000;
    expect(statements.length).toBeGreaterThan(0);
    if (statements.length <= perSecond * seconds) return;
    tooMany.push(`${statements.length} statements in ${seconds} s:`, ...statements);
  }
  expect.fail(tooMany.join("\n"));
}

// Both at once, because they mostly wait, and neither counts what the other one sends.
describe.skipIf(isLeftOut("postgres"))("on PostgreSQL", { concurrent: true }, () => {
  let server: OwnServer;
  afterEach(() => server?.remove());

  test("an idle worker issues at most 2 statements a second", async () => {
    server = await ownPostgres();
    const log = await StatementLog.of(server);
    const pawl = await idleWorker(server.url);
    await sleep(2_500);
    await expectIdle((wait) => log.during(wait));
    await pawl.close();
  });
});

describe("on SQLite", { concurrent: true }, () => {
  let database: TestDatabase | undefined;
  afterEach(() => database?.drop());

  test("an idle worker issues at most 2 statements a second", async () => {
    database = await emptyDatabase("sqlite");
    const sent = await watchStatements("sqlite");
    const pawl = await idleWorker(database.url);
    await sleep(2_500);
    await expectIdle(async (wait) => {
      sent.clear();
      await wait();
      return [...sent.texts];
    });
    await pawl.close();
  });
});
