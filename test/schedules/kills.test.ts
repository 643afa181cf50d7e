/**
 * Three workers fire schedules of every second, and are killed while they do. Each instant is in the ledger once, and each
 * occurrence that ran has one run with one effect. The long form is `npm run torture -- --schedules`.
 */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect } from "pawl";
import { expect, onTestFinished, test } from "vitest";
import { type AnyStoreKind, forEachStore, testDatabase } from "../support/databases.js";
import { sized } from "../support/effort.js";
import { expireLeaseOf } from "../support/expired-leases.js";
import { rawSql } from "../support/raw-sql.js";
import { until } from "../support/waiting.js";
import { effectsTable, judgeSchedules, readEvidence } from "../torture/schedules/schedule-checker.js";
import { ScheduleWorker } from "../torture/schedules/schedule-fleet.js";

const second = 1_000;
const names = ["skip", "buffer_one", "buffer_all", "cancel_other", "with_jitter", "slow_input", "each_minute", "put"];
const periods = new Map(names.map((name) => [name, name === "each_minute" ? 60 * second : second]));
const kills = sized(2, 4);
/** About as many runs begin in two seconds. */
const runsPerKill = 10;
/** Long, so that a process that waits for the processor keeps its runs. The test expires the lease of each that it kills. */
const lease = 60_000;

const stores: readonly AnyStoreKind[] = ["sqlite", "postgres", "mysql"];
forEachStore((kind) => {
  test("workers that are killed while they fire schedules lose no occurrence, and double none", async () => {
    const { url, drop } = await testDatabase(kind);
    onTestFinished(drop);
    const folder = mkdtempSync(join(tmpdir(), "pawl-schedules-"));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const sql = await rawSql(url);
    onTestFinished(() => sql.close());
    const pawl = await connect(url);
    onTestFinished(() => pawl.close());
    await sql.query(effectsTable);

    const effects = join(folder, "effects.jsonl");
    const workers = [1, 2, 3].map((n) => new ScheduleWorker({ url, effects, lease, name: `worker-${n}` }, folder));
    onTestFinished(() => Promise.all(workers.map((worker) => worker.kill())).then(() => {}));
    await Promise.all(workers.map((worker) => worker.start()));
    await pawl.schedules.put("put", { workflow: "tick", input: { ms: 0 }, every: "1s" });

    const countRuns = () => readFileSync(effects, "utf8").split("\n").length - 1;
    for (let kill = 1; kill <= kills; kill += 1) {
      await until(() => countRuns() >= kill * runsPerKill);
      const victim = workers[kill % workers.length] as ScheduleWorker;
      const { pid } = victim;
      await victim.kill();
      await expireLeaseOf(pid, kind, url);
      await victim.start();
    }
    await until(() => countRuns() >= (kills + 1) * runsPerKill);
    for (const name of names) await pawl.schedules.pause(name);
    await until(async () => {
      const [row] = await sql.query(`SELECT (SELECT count(*) FROM pawl_tasks) AS tasks,
        (SELECT count(*) FROM pawl_occurrences WHERE pending = 'open') AS occurrences`);
      return Number(row?.tasks) + Number(row?.occurrences) === 0;
    });
    await Promise.all(workers.map((worker) => worker.stop()));

    const { violations, outcomes } = judgeSchedules(await readEvidence(sql, effects), periods);
    expect(violations).toEqual([]);
    // Not more: runs that a kill interrupts begin twice, and others are canceled by the next one.
    expect(outcomes.get("ran")).toBeGreaterThan(0);
    expect(workers.map(({ unexpectedEnds }) => unexpectedEnds)).toEqual([0, 0, 0]);
    expect((await pawl.verify()).differences).toEqual([]);
  });
}, stores);
