/**
 * One campaign on one database: a fleet works under faults for some minutes, then everything is driven to its end and
 * judged.
 */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import Database from "better-sqlite3";
import { connect, type Pawl } from "pawl";
import type { OwnServer } from "../../scripts/servers.mjs";
import { type RawSql, rawSql } from "../support/raw-sql.js";
import { seeded } from "../support/seeded-random.js";
import { judge } from "./checker.js";
import { type Drained, drain } from "./drain.js";
import type { Violation } from "./evidence.js";
import { FaultProxy } from "./fault-proxy.js";
import { type FaultKind, faultOrder, inject, lastFault } from "./faults.js";
import { Member, type Role } from "./fleet.js";
import { LedgerWriter, readLedger } from "./ledger.js";
import { Operators } from "./operators.js";
import type { Records } from "./records.js";
import { type Snapshot, takeSnapshot } from "./snapshots.js";
import type { StoreName } from "./stores.js";
import { timedLogger } from "./timed-logger.js";
import { userTables } from "./workflows/transactions.js";

const leaseMs = 2_000;
const [workerCount, clientCount] = [4, 2];
/** Clients start nothing while this many runs are open, because the backlog must also be finished. */
const maxOpen = 150;
const snapshotEveryMs = 12_000;

export interface CampaignOptions {
  readonly store: StoreName;
  readonly seed: number;
  readonly minutes: number;
  readonly folder: string;
  readonly server: OwnServer | null;
  readonly faults: readonly FaultKind[];
  readonly say: (text: string) => void;
}

export interface Outcome {
  readonly violations: readonly Violation[];
  readonly notes: readonly Violation[];
  readonly faults: ReadonlyMap<FaultKind, number>;
  readonly drained: Drained;
  readonly records: Records;
  readonly snapshots: number;
  readonly commands: number;
}

export class Campaign {
  readonly #options: CampaignOptions;
  readonly #url: string;
  readonly #ledgerFolder: string;
  readonly #ledger: LedgerWriter;
  readonly #random: () => number;
  readonly #members: Member[] = [];
  readonly #proxies: FaultProxy[] = [];
  readonly #violations: Violation[] = [];
  readonly #snapshots: Snapshot[] = [];
  readonly #counts = new Map<FaultKind, number>();
  #turn: Promise<unknown> = Promise.resolve();
  #operators: Operators | null = null;

  constructor(options: CampaignOptions) {
    this.#options = options;
    this.#url = options.server?.url ?? `sqlite:${join(options.folder, "pawl.sqlite")}`;
    this.#ledgerFolder = join(options.folder, "ledger");
    mkdirSync(this.#ledgerFolder, { recursive: true });
    this.#ledger = new LedgerWriter(this.#ledgerFolder, "campaign");
    this.#random = seeded(options.seed);
    for (const kind of options.faults) this.#counts.set(kind, 0);
  }

  async run(): Promise<Outcome> {
    const { say, minutes } = this.#options;
    const pawl = await this.#prepare();
    say(`${workerCount} workers and ${clientCount} clients are at work; faults for ${minutes} minutes.`);
    await this.#torment(Date.now() + minutes * 60_000);
    say("The faults are over; everything has to end now.");
    const sql = await rawSql(this.#url);
    const drained = await drain(pawl, sql, this.#ledger, this.#random);
    say(`${drained.open} runs are open after ${Math.round(drained.ms / 1000)} s.`);
    await this.#stopWorkers();
    const entries = readLedger(this.#ledgerFolder);
    const { violations, notes, records } = await judge(sql, entries, this.#snapshots);
    await this.#verify(pawl);
    await sql.close();
    await pawl.close();
    return {
      violations: [...this.#violations, ...violations],
      notes,
      faults: this.#counts,
      drained,
      records,
      snapshots: this.#snapshots.length,
      commands: entries.filter(({ kind }) => kind === "intent").length,
    };
  }

  /** Ends every process of the campaign, whatever happened. */
  async close(): Promise<void> {
    await Promise.all(this.#members.map((member) => member.kill()));
    await Promise.all(this.#proxies.map((proxy) => proxy.close()));
  }

  async #prepare(): Promise<Pawl> {
    const pawl = await connect(this.#url, { logger: timedLogger });
    await this.#withSql(async (sql) => {
      for (const statement of userTables) await sql.query(statement);
    });
    for (let n = 1; n <= workerCount; n += 1) await this.#add("worker", n);
    await Promise.all(this.#of("worker").map((member) => member.start()));
    for (let n = 1; n <= clientCount; n += 1) await this.#add("client", n);
    this.#operators = new Operators(this.#of("client"), this.#random);
    await Promise.all(this.#of("client").map((member) => member.start()));
    return pawl;
  }

  async #add(role: Role, n: number): Promise<void> {
    const { store, folder, seed } = this.#options;
    const proxy = store === "sqlite" ? null : await FaultProxy.open(this.#url);
    if (proxy !== null) this.#proxies.push(proxy);
    const place = { url: this.#url, store, ledger: this.#ledgerFolder, leaseMs, output: folder };
    const listen = {
      onWord: (word: Parameters<Operators["hear"]>[0]) => this.#operators?.hear(word),
      onDeath: (text: string) => void this.#violations.push({ invariant: "process", run: null, text }),
    };
    this.#members.push(new Member(role, `${role}-${n}`, proxy, place, seed + n + (role === "client" ? 50 : 0), listen));
  }

  #of(role: Role): Member[] {
    return this.#members.filter((member) => member.role === role);
  }

  async #torment(until: number): Promise<void> {
    const { faults } = this.#options;
    const order = faultOrder(
      faults.filter((kind) => kind !== lastFault),
      this.#random,
    );
    this.#operators?.start();
    const watch = this.#watch(until);
    await sleep(1_500);
    while (Date.now() < until) {
      await this.#inject(order.next().value);
      await sleep(400 + this.#random() * 1_800);
    }
    this.#operators?.stop();
    await watch;
    await this.#settle();
    if (faults.includes(lastFault)) await this.#inject(lastFault);
  }

  async #inject(kind: FaultKind): Promise<void> {
    const { server, say } = this.#options;
    const hasHit = await inject(kind, {
      workers: this.#of("worker"),
      clients: this.#of("client"),
      server,
      ledger: this.#ledger,
      random: this.#random,
      leaseMs,
      holdWriteLock: (ms) => this.#holdWriteLock(ms),
      alone: (work) => this.#alone(work),
    }).catch((error) => {
      say(`The fault ${kind} could not be made: ${error}`);
      return false;
    });
    if (hasHit) this.#counts.set(kind, (this.#counts.get(kind) ?? 0) + 1);
  }

  /** Clients finish their current command and exit, stopped workers continue; swallowed connections stay swallowed. */
  async #settle(): Promise<void> {
    for (const client of this.#of("client")) client.send({ kind: "pace", mayStart: false });
    await sleep(5_000);
    await Promise.all(this.#of("client").map((client) => client.kill()));
    for (const worker of this.#of("worker")) if (worker.isStopped) worker.thaw();
    const dead = this.#of("worker").filter(({ pid }) => !isAlive(pid));
    await Promise.all(dead.map((worker) => worker.start()));
  }

  /** Takes snapshots and keeps the number of open runs within bounds. */
  async #watch(until: number): Promise<void> {
    let snapshotAt = Date.now() + snapshotEveryMs;
    while (Date.now() < until) {
      await sleep(1_000);
      const open = await this.#withSql(async (sql) => {
        const [row] = await sql.query("SELECT count(*) AS n FROM pawl_tasks");
        return Number(row?.n);
      }).catch(() => Number.POSITIVE_INFINITY);
      for (const client of this.#of("client")) client.send({ kind: "pace", mayStart: open < maxOpen });
      if (Date.now() < snapshotAt) continue;
      snapshotAt = Date.now() + snapshotEveryMs;
      await this.#alone(async () => {
        const snapshot = await this.#withSql(takeSnapshot);
        // MariaDB shows a commit to others a moment before it is flushed. What was seen is durable after this delay.
        await sleep(1_000);
        this.#snapshots.push(snapshot);
      }).catch(() => {});
    }
  }

  #alone<T>(work: () => Promise<T>): Promise<T> {
    const next = this.#turn.then(work, work);
    this.#turn = next.catch(() => {});
    return next;
  }

  /**
   * Never waits inside SQLite: the process that holds the lock may be stopped, and this process must be able to resume
   * it.
   */
  async #holdWriteLock(ms: number): Promise<void> {
    const db = new Database(this.#url.slice("sqlite:".length), { timeout: 0 });
    const giveUpAt = Date.now() + 15_000;
    try {
      while (!isLocked(db)) {
        if (Date.now() > giveUpAt) throw new Error("Other processes have the write lock.");
        await sleep(20);
      }
      await sleep(ms);
      db.exec("ROLLBACK");
    } finally {
      db.close();
    }
  }

  async #withSql<T>(work: (sql: RawSql) => Promise<T>): Promise<T> {
    const sql = await rawSql(this.#url);
    try {
      return await work(sql);
    } finally {
      await sql.close().catch(() => {});
    }
  }

  async #stopWorkers(): Promise<void> {
    const stop = async (worker: Member) => {
      const { pid } = worker;
      if (!(await worker.stop(30_000)))
        this.#violations.push({
          invariant: "process",
          run: null,
          text: `${worker.name} (${pid}) does not stop when asked.`,
        });
    };
    await Promise.all(this.#of("worker").map(stop));
  }

  /** I16, by the library itself: a second judge beside the checker. */
  async #verify(pawl: Pawl): Promise<void> {
    const { differences } = await pawl.verify();
    for (const { runId, ...difference } of differences)
      this.#violations.push({ invariant: "I16", run: runId, text: `verify(): ${JSON.stringify(difference)}` });
  }
}

function isLocked(db: Database.Database): boolean {
  try {
    db.exec("BEGIN IMMEDIATE");
    return true;
  } catch {
    return false;
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
