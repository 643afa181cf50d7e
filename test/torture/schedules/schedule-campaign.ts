/**
 * Four workers fire schedules of every second while one of them is killed every few seconds, and the server crashes once.
 * Then nothing may be open, and each instant must be in the ledger once.
 */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { connect, type Pawl } from "pawl";
import type { OwnServer } from "../../../scripts/servers.mjs";
import { rawSql } from "../../support/raw-sql.js";
import { seeded } from "../../support/seeded-random.js";
import { timedLogger } from "../timed-logger.js";
import { effectsTable, type Judgement, judgeSchedules, readEvidence } from "./schedule-checker.js";
import { ScheduleWorker } from "./schedule-fleet.js";

const workerCount = 4;
const leaseMs = 3_000;
const killEveryMs = 5_000;
const second = 1_000;
const names = ["skip", "buffer_one", "buffer_all", "cancel_other", "with_jitter", "slow_input", "each_minute", "put"];
const periods = new Map(names.map((name) => [name, name === "each_minute" ? 60 * second : second]));

export interface ScheduleCampaignOptions {
  readonly url: string;
  readonly server: OwnServer | null;
  readonly folder: string;
  readonly seed: number;
  readonly minutes: number;
  readonly say: (text: string) => void;
}

export async function runScheduleCampaign(options: ScheduleCampaignOptions): Promise<Judgement> {
  const { url, server, folder, seed, minutes, say } = options;
  const random = seeded(seed);
  const effects = join(folder, "effects.jsonl");
  mkdirSync(folder, { recursive: true });
  const pawl = await connect(url, { logger: timedLogger });
  const sql = await rawSql(url);
  await sql.query(effectsTable);
  await sql.close();
  const until = Date.now() + minutes * 60_000;
  const newWorker = (_: unknown, index: number) =>
    new ScheduleWorker({ url, effects, lease: leaseMs, name: `worker-${index + 1}`, endAt: until }, folder);
  const workers = Array.from({ length: workerCount }, newWorker);
  try {
    await Promise.all(workers.map((worker) => worker.start()));
    say(`${workerCount} workers fire ${periods.size} schedules; kills for ${minutes} minutes, seed ${seed}.`);
    await putSchedule(pawl, until);
    let [kills, crashes] = [0, 0];
    while (Date.now() < until) {
      await sleep(killEveryMs);
      if (server !== null && crashes === 0 && Date.now() > until - minutes * 30_000) {
        await server.restartImmediate();
        crashes += 1;
      }
      const victim = workers[Math.floor(random() * workerCount)] as ScheduleWorker;
      await victim.kill();
      await victim.start();
      kills += 1;
    }
    say(`${kills} kills, ${crashes} crashes of the server; everything has to end now.`);
    await untilSettled(url, say);
    await Promise.all(workers.map((worker) => worker.stop()));
    const judgement = await judge(url, effects);
    const ends = workers.reduce((sum, worker) => sum + worker.unexpectedEnds, 0);
    const { differences } = await pawl.verify();
    const violations = [
      ...judgement.violations,
      ...(ends > 0 ? [`${ends} processes ended by themselves.`] : []),
      ...differences.map(({ text }) => `verify(): ${text}`),
    ];
    return { ...judgement, violations };
  } finally {
    await Promise.all(workers.map((worker) => worker.kill()));
    await pawl.close();
  }
}

async function putSchedule(pawl: Pawl, until: number): Promise<void> {
  await pawl.schedules.put("put", { workflow: "tick", input: { ms: 0 }, every: "1s", endAt: new Date(until) });
}

async function judge(url: string, effects: string): Promise<Judgement> {
  const sql = await rawSql(url);
  try {
    return judgeSchedules(await readEvidence(sql, effects), periods);
  } finally {
    await sql.close();
  }
}

/** How long the end of everything may take: buffers of runs of a second, and the leases of killed workers. */
const maxSettlingMs = 180_000;

async function untilSettled(url: string, say: (text: string) => void): Promise<void> {
  const startedAt = Date.now();
  const sql = await rawSql(url);
  try {
    for (;;) {
      const [row] = await sql.query(`SELECT (SELECT count(*) FROM pawl_schedules WHERE status <> 'ended') AS active,
        (SELECT count(*) FROM pawl_tasks) AS open, (SELECT count(*) FROM pawl_occurrences WHERE pending IS NOT NULL) AS pending`);
      const left = Number(row?.active) + Number(row?.open) + Number(row?.pending);
      if (left === 0) return say(`Everything has ended after ${Math.round((Date.now() - startedAt) / 1_000)} s.`);
      if (Date.now() - startedAt > maxSettlingMs) return say(`This does not end: ${JSON.stringify(row)}.`);
      await sleep(500);
    }
  } finally {
    await sql.close();
  }
}
