import Database from "better-sqlite3";
import { createConnection } from "mysql2/promise";
import { PermanentError, workflow } from "pawl";
import pg from "pg";
import { expect, onTestFinished, test } from "vitest";
import { world } from "../function-style/support.js";
import { forEachStore, type StoreKind, testDatabase } from "../stores/harness.js";

const child = workflow("child", async (ctx, n: number) => {
  await ctx.sleep("nap", n);
  return n;
});
const busy = workflow("busy", async (ctx, n: number) => {
  await ctx.step("flaky", ({ attempt }) => {
    if (attempt === 1) throw new Error("once");
  });
  const all = await ctx.map(child, [10, 20, 30], { concurrency: 2 });
  return { n, sum: all.reduce((sum, one) => sum + one, 0) };
});
const sleeping = workflow("sleeping", (ctx) => ctx.sleep("long", "10 days"));
const failing = workflow("failing", async () => {
  throw new PermanentError("no");
});

/** A hand at the tables. */
async function sql(kind: StoreKind, url: string, statement: string): Promise<void> {
  if (kind === "sqlite") {
    const database = new Database(url.replace(/^sqlite:/, ""));
    database.exec(statement);
    database.close();
  } else if (kind === "postgres") {
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    await client.query(statement);
    await client.end();
  } else {
    const connection = await createConnection({ uri: url });
    await connection.query(statement);
    await connection.end();
  }
}

async function lived(kind: StoreKind) {
  const database = await testDatabase(kind);
  onTestFinished(() => database.drop());
  const w = await world(kind, database.url);
  const worker = await w.worker([busy, child, sleeping, failing]);
  const [done, parked, failed, canceled] = [
    await w.pawl.start(busy, 7),
    await w.pawl.start(sleeping),
    await w.pawl.start(failing),
    await w.pawl.start(sleeping),
  ];
  for (let passes = 0; passes < 20 && (await done.get()).finishedAt === null; passes += 1) {
    const due = await worker.settle();
    if ((await done.get()).finishedAt === null && due !== null) w.clock.moveTo(due);
  }
  await canceled.cancel("no");
  await worker.worker.stop();
  return { w, url: database.url, done, parked, failed, canceled };
}

forEachStore((kind) => {
  test("verify() finds nothing after an ordinary life, and counts what it read", async () => {
    const { w, done } = await lived(kind);
    const { runs, events, differences } = await w.pawl.verify();
    expect(differences).toEqual([]);
    expect(runs).toBe(7);
    const logs = await Promise.all((await w.pawl.runs()).runs.map(({ id }) => w.pawl.run(id).history()));
    expect(events).toBe(logs.flat().length);
    expect(await w.pawl.verify(done.id)).toMatchObject({ runs: 1, differences: [] });
  });
});

forEachStore(
  (kind) => {
    test("verify() finds each row that was changed by hand", async () => {
      const { w, url, done, parked, failed } = await lived(kind);
      const differencesAfter = async (...statements: string[]) => {
        for (const statement of statements) await sql(kind, url, statement);
        return (await w.pawl.verify()).differences.map(({ runId, what }) => ({ runId, what }));
      };
      const found: { runId: string; what: string }[] = [];
      expect(await differencesAfter(`UPDATE pawl_runs SET output = NULL WHERE id = '${done.id}'`)).toContainEqual({
        runId: done.id,
        what: "output",
      });
      expect(await differencesAfter(`UPDATE pawl_runs SET output = 'not json' WHERE id = '${done.id}'`)).toContainEqual(
        { runId: done.id, what: "output" },
      );
      found.push(...(await differencesAfter(`DELETE FROM pawl_tasks WHERE run_id = '${parked.id}'`)));
      expect(found.filter(({ runId }) => runId === parked.id)).toContainEqual({ runId: parked.id, what: "task" });
      expect(
        await differencesAfter(`UPDATE pawl_runs SET finished_at = created_at - 1 WHERE id = '${failed.id}'`),
      ).toContainEqual({ runId: failed.id, what: "finishedAt" });
      expect(await differencesAfter(`DELETE FROM pawl_events WHERE run_id = '${failed.id}'`)).toEqual(
        expect.arrayContaining([expect.objectContaining({ runId: failed.id })]),
      );
    });

    test("verify() finds a status and an event that were changed by hand", async () => {
      const { w, url, parked, done } = await lived(kind);
      await sql(kind, url, `UPDATE pawl_runs SET status = 'completed' WHERE id = '${parked.id}'`);
      await sql(kind, url, `UPDATE pawl_events SET data = 'not json' WHERE run_id = '${done.id}'`);
      const { differences } = await w.pawl.verify();
      expect(differences).toContainEqual({ runId: parked.id, what: "status", log: "waiting", table: "completed" });
      expect(differences.some(({ runId }) => runId === done.id)).toBe(true);
    });
  },
  ["sqlite", "postgres", "mysql"],
);
