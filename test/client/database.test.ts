/** `pawl.database()`: what it says about the tables, the retention and what needs attention. */
import { expect, onTestFinished, test } from "vitest";
import { connect, workflow } from "../../src/index.js";

const open = async (url: string, options: Parameters<typeof connect>[1] = {}) => {
  const pawl = await connect(url, options);
  onTestFinished(() => pawl.close());
  return pawl;
};

test.each(["memory:", "sqlite::memory:"])("an empty database is described (%s)", async (url) => {
  const info = await (await open(url)).database();
  expect(info).toMatchObject({ retentionMs: null, nextHousekeepingAt: null, migrations: { pending: [] } });
  expect(info.tables.find(({ name }) => name === "runs")).toMatchObject({ rows: 0, rowsAre: "exact" });
  expect(info.checks.map(({ name, verdict }) => `${verdict} ${name}`)).toEqual([
    "ok connection",
    "ok migrations",
    "ok clock",
    "warning workers",
    "ok runs",
  ]);
});

test("the retention and the next housekeeping are those of the process", async () => {
  const pawl = await open("sqlite::memory:", { retention: "30 days" });
  const now = Date.now();
  const order = workflow("order", async () => {});
  await pawl.worker({ workflows: [order], housekeeping: "1 hour" }).start();
  await pawl.worker({ workflows: [order], housekeeping: "1000 days" }).start();
  const { retentionMs, nextHousekeepingAt, checks, migrations } = await pawl.database();
  expect(retentionMs).toBe(30 * 86_400_000);
  const delayMs = (nextHousekeepingAt as Date).getTime() - now;
  expect(delayMs).toBeGreaterThan(0);
  expect(delayMs).toBeLessThan(3_600_000);
  expect(checks.find(({ name }) => name === "workers")?.verdict).toBe("ok");
  expect(migrations.applied[0]).toMatchObject({ version: 1, at: expect.any(Date) });
});
