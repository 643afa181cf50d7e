/**
 * Four workers execute runs with limits while they are killed, stopped past their leases, released with other numbers, and
 * while the server crashes. Then everything must end, and the history of the slots is judged.
 */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { connect, type Pawl } from "pawl";
import type { OwnServer } from "../../../scripts/servers.mjs";
import { rawSql } from "../../support/raw-sql.js";
import { seeded } from "../../support/seeded-random.js";
import { drain } from "../drain.js";
import { LedgerWriter } from "../ledger.js";
import { timedLogger } from "../timed-logger.js";
import { judgeLimits, type LimitJudgement, readLimitEvidence } from "./limit-checker.js";
import { commandOne, startSome } from "./limit-clients.js";
import { type Concurrency, LimitWorker } from "./limit-fleet.js";
import { recordLimitHistory } from "./limit-history.js";
import { laneOfBody, lanesOfRun } from "./limit-rules.js";
import { SlotSampler } from "./slot-sampler.js";

const workerCount = 4;
const leaseMs = 2_500;
/** Nothing is started while this many runs are open, because the backlog must also be finished. */
const maxOpen = 120;
const remembered = 60;
/** The numbers of the releases, one after the other. */
const releases: readonly Concurrency[] = [
  { tenant: 2, api: 4, region: 3, pace: 20 },
  { tenant: 1, api: 2, region: 5, pace: 10 },
  { tenant: 3, api: 6, region: 1, pace: 40 },
];
const highest = { tenant: 3, api: 6, region: 5, mutex: 1, calls: 6, calls_of_tenant: 1 };

type Fault = "kill" | "stop" | "restart" | "release" | "crash";

export interface LimitCampaignOptions {
  readonly url: string;
  readonly server: OwnServer | null;
  readonly folder: string;
  readonly seed: number;
  readonly minutes: number;
  readonly say: (text: string) => void;
}

export interface LimitOutcome extends LimitJudgement {
  readonly faults: ReadonlyMap<string, number>;
}

export class LimitCampaign {
  readonly #options: LimitCampaignOptions;
  readonly #random: () => number;
  readonly #started: string[] = [];
  readonly #faults = new Map<Fault, number>();
  readonly #bodiesFile: string;
  readonly #workers: LimitWorker[];
  #release = 0;

  constructor(options: LimitCampaignOptions) {
    const { folder, seed, url, server } = options;
    mkdirSync(folder, { recursive: true });
    this.#options = options;
    this.#random = seeded(seed);
    this.#bodiesFile = join(folder, "bodies.jsonl");
    for (const fault of ["kill", "stop", "restart", "release"] as const) this.#faults.set(fault, 0);
    if (server !== null) this.#faults.set("crash", 0);
    this.#workers = Array.from({ length: workerCount }, (_, index) => {
      const name = `worker-${index + 1}`;
      const settings = { lease: leaseMs, poll: 500, housekeeping: 5_000, places: 10, concurrency: this.#concurrency() };
      return new LimitWorker({ url, bodies: this.#bodiesFile, name, ...settings }, folder);
    });
  }

  async run(): Promise<LimitOutcome> {
    const { url, say, minutes, seed, folder } = this.#options;
    const pawl = await connect(url, { logger: timedLogger });
    const sampler = new SlotSampler(url, highest);
    try {
      await this.#withSql((sql) => recordLimitHistory(sql, url));
      await Promise.all(this.#workers.map((worker) => worker.start()));
      sampler.start(150);
      say(`${workerCount} workers are at work; faults for ${minutes} minutes, seed ${seed}.`);
      await this.#torment(pawl, Date.now() + minutes * 60_000);
      say(`${this.#started.length} runs are started and the faults are over; everything has to end now.`);
      await this.#settle(pawl, new LedgerWriter(folder, "signals"));
      await sampler.stop();
      await Promise.all(this.#workers.map((worker) => worker.stop()));
      return await this.#judge(pawl, sampler);
    } finally {
      await sampler.stop();
      await Promise.all(this.#workers.map((worker) => worker.kill()));
      await pawl.close();
    }
  }

  async #torment(pawl: Pawl, until: number): Promise<void> {
    const clients = [this.#start(pawl, until), this.#command(pawl, until)];
    let bag: Fault[] = [];
    await sleep(1_000);
    while (Date.now() < until) {
      if (bag.length === 0) bag = [...this.#faults.keys(), "kill"];
      const [fault] = bag.splice(Math.floor(this.#random() * bag.length), 1) as [Fault];
      await this.#inject(fault);
      this.#faults.set(fault, (this.#faults.get(fault) ?? 0) + 1);
      await sleep(500 + this.#random() * 2_000);
    }
    await Promise.all(clients);
    for (const worker of this.#workers) if (worker.isFrozen) worker.thaw();
  }

  async #inject(fault: Fault): Promise<void> {
    const running = this.#workers.filter(({ isFrozen }) => !isFrozen);
    const victim = running[Math.floor(this.#random() * running.length)];
    if (fault === "crash") return this.#options.server?.restartImmediate();
    if (fault === "release") return this.#releaseAll(running);
    if (victim === undefined) return;
    if (fault === "stop") {
      const { pid } = victim;
      victim.freeze();
      setTimeout(() => victim.pid === pid && victim.thaw(), 3 * leaseMs);
      return;
    }
    await (fault === "kill" ? victim.kill() : victim.stop());
    await victim.start();
  }

  /** One worker after the other gets the next numbers, so for a while workers with different numbers work together. */
  async #releaseAll(running: readonly LimitWorker[]): Promise<void> {
    this.#release += 1;
    for (const worker of this.#workers) worker.options = { ...worker.options, concurrency: this.#concurrency() };
    for (const worker of running) {
      await worker.stop();
      await worker.start();
    }
  }

  #concurrency(): Concurrency {
    return releases[this.#release % releases.length] as Concurrency;
  }

  async #start(pawl: Pawl, until: number): Promise<void> {
    while (Date.now() < until) {
      const [row] = await this.#withSql((sql) => sql.query("SELECT count(*) AS n FROM pawl_tasks")).catch(() => []);
      const mayStart = row !== undefined && Number(row.n) < maxOpen;
      if (mayStart) this.#started.push(...(await startSome(pawl, this.#random).catch(() => [])));
      await sleep(this.#random() * 60);
    }
  }

  async #command(pawl: Pawl, until: number): Promise<void> {
    while (Date.now() < until) {
      const recent = this.#started.slice(-remembered);
      const id = recent[Math.floor(this.#random() * recent.length)];
      if (id !== undefined) await commandOne(pawl, id, this.#random);
      await sleep(this.#random() * 200);
    }
  }

  /** Until no run is open, and the classes of the last runs are gone: a class is deleted by the admission that finds it empty. */
  async #settle(pawl: Pawl, ledger: LedgerWriter): Promise<void> {
    const { say } = this.#options;
    await this.#withSql(async (sql) => {
      const { ms, open, explanations } = await drain(pawl, sql, ledger, this.#random);
      say(`${open} runs are open after ${Math.round(ms / 1_000)} s.`);
      for (const [run, explanation] of explanations) say(`run ${run}: ${explanation}`);
      const giveUpAt = Date.now() + maxClassMs;
      const countClasses = async () => Number((await sql.query("SELECT count(*) AS n FROM pawl_classes"))[0]?.n);
      while (open === 0 && (await countClasses()) > 0 && Date.now() < giveUpAt) await sleep(200);
    });
  }

  async #judge(pawl: Pawl, sampler: SlotSampler): Promise<LimitOutcome> {
    const rest = { bodiesFile: this.#bodiesFile, started: this.#started, lanesOfRun, laneOfBody };
    const judgement = judgeLimits(await this.#withSql((sql) => readLimitEvidence(sql, rest)));
    const ends = this.#workers.reduce((sum, worker) => sum + worker.unexpectedEnds, 0);
    const { differences } = await pawl.verify();
    const violations = [
      ...judgement.violations,
      ...sampler.violations,
      ...(sampler.samples === 0 ? ["The slots were never sampled."] : []),
      ...(ends > 0 ? [`${ends} processes ended by themselves.`] : []),
      ...differences.map(({ text }) => `verify(): ${text}`),
    ];
    return { ...judgement, violations, faults: this.#faults };
  }

  async #withSql<T>(work: (sql: Awaited<ReturnType<typeof rawSql>>) => Promise<T>): Promise<T> {
    const sql = await rawSql(this.#options.url);
    try {
      return await work(sql);
    } finally {
      await sql.close().catch(() => {});
    }
  }
}

/** Several times what lies between two looks at classes that are blocked although their lanes have room. */
const maxClassMs = 60_000;
