/**
 * Three workers execute runs with limits, and are killed or stopped past their leases while they do. No lane ever has more
 * holders than slots, no slot is left behind, and every run ends. The long form is `npm run torture -- --limits`.
 */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Database from "better-sqlite3";
import { connect, type Pawl } from "pawl";
import { expect, onTestFinished, test } from "vitest";
import { type AnyStoreKind, forEachStore, testDatabase } from "../support/databases.js";
import { sized } from "../support/effort.js";
import { expireLeaseOf } from "../support/expired-leases.js";
import { type RawSql, rawSql } from "../support/raw-sql.js";
import { seeded } from "../support/seeded-random.js";
import { until } from "../support/waiting.js";
import { judgeLimits, readLimitEvidence } from "../torture/limits/limit-checker.js";
import { startSome } from "../torture/limits/limit-clients.js";
import { LimitWorker } from "../torture/limits/limit-fleet.js";
import { recordLimitHistory } from "../torture/limits/limit-history.js";
import { laneOfBody, lanesOfRun } from "../torture/limits/limit-rules.js";

const startCount = sized(18, 30);
const kills = sized(3, 4);
const bodiesPerKill = 20;
/** Long, so that a process that waits for the processor keeps its runs. The test expires the lease of each that it hits. */
const lease = 60_000;
const concurrency = { tenant: 2, api: 3, region: 3, pace: 30 };

const stores: readonly AnyStoreKind[] = ["sqlite", "postgres", "mysql"];
forEachStore((kind) => {
  test("workers that are killed or stopped while they hold slots neither overspend nor leak a limit", async () => {
    const { url, drop } = await testDatabase(kind);
    onTestFinished(drop);
    const folder = mkdtempSync(join(tmpdir(), "pawl-limits-"));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const sql = await rawSql(url);
    onTestFinished(() => sql.close());
    const pawl = await connect(url);
    onTestFinished(() => pawl.close());
    await recordLimitHistory(sql, url);

    const bodiesFile = join(folder, "bodies.jsonl");
    const settings = { url, bodies: bodiesFile, lease, poll: 200, housekeeping: 1_000, places: 8, concurrency };
    const workers = [1, 2, 3].map((n) => new LimitWorker({ ...settings, name: `worker-${n}` }, folder));
    onTestFinished(() => Promise.all(workers.map((worker) => worker.kill())).then(() => {}));
    await Promise.all(workers.map((worker) => worker.start()));
    const random = seeded(6);
    const started: string[] = [];
    for (let n = 0; n < startCount; n += 1) started.push(...(await startSome(pawl, random)));

    const countBodies = () => readFileSync(bodiesFile, "utf8").split("\n").length - 1;
    for (let kill = 1; kill <= kills; kill += 1) {
      await until(() => countBodies() >= kill * bodiesPerKill);
      const victim = workers[kill % workers.length] as LimitWorker;
      const { pid } = victim;
      if (kill % 2 === 0) {
        await until(() => isFrozenBetweenWrites(victim, url));
        // It may be stopped within a transaction that keeps its worker from being taken for dead; then it only goes on.
        await expireLeaseOf(pid, kind, url);
        victim.thaw();
      } else {
        await victim.kill();
        // The server may find out later that the process is gone, and until then keep its locks.
        await until(async () => {
          await expireLeaseOf(pid, kind, url);
          return (await sql.query(`SELECT live FROM pawl_workers WHERE pid = ${pid}`)).every(({ live }) => !live);
        });
        await victim.start();
      }
    }
    await until(() => hasEnded(pawl, sql));
    await Promise.all(workers.map((worker) => worker.stop()));

    const evidence = await readLimitEvidence(sql, { bodiesFile, started, lanesOfRun, laneOfBody });
    const { violations, admissions, filledLanes } = judgeLimits(evidence);
    expect(violations).toEqual([]);
    expect(admissions).toBeGreaterThanOrEqual(started.length);
    expect(filledLanes).toBeGreaterThan(0);
    expect(workers.map(({ unexpectedEnds }) => unexpectedEnds)).toEqual([0, 0, 0]);
    expect((await pawl.verify()).differences).toEqual([]);
  });
}, stores);

/**
 * Stops the process. Within a write to a SQLite file it keeps the lock of the file, and nothing could be written until it goes on: then
 * it does, and is to be stopped again.
 */
function isFrozenBetweenWrites(victim: LimitWorker, url: string): boolean {
  victim.freeze();
  if (!url.startsWith("sqlite:")) return true;
  const db = new Database(url.slice("sqlite:".length), { timeout: 500 });
  try {
    db.exec("BEGIN IMMEDIATE; ROLLBACK");
    return true;
  } catch {
    victim.thaw();
    return false;
  } finally {
    db.close();
  }
}

/** Resumes what is paused. Whether every run has ended, and the admissions have deleted every class that they found empty. */
async function hasEnded(pawl: Pawl, sql: RawSql): Promise<boolean> {
  const paused = await sql.query("SELECT id FROM pawl_runs WHERE status = 'paused'");
  // A run may have been resumed by the page before.
  await Promise.allSettled(paused.map(({ id }) => pawl.run(String(id)).resume()));
  const [row] = await sql.query(
    "SELECT (SELECT count(*) FROM pawl_tasks) AS tasks, (SELECT count(*) FROM pawl_classes) AS classes",
  );
  return Number(row?.tasks) + Number(row?.classes) === 0;
}
