/**
 * The store on a libSQL server (sqld, Turso), over the network: the tables and statements of SQLite, each commit and each
 * claim as one guarded batch. The server has no way to tell of other processes' commits: they poll.
 */

import { StoreError } from "../../core/errors/errors.js";
import type { Runtime } from "../../runtime/runtime.js";
import { systemRuntime } from "../../runtime/system.js";
import type {
  Batch,
  BeatResult,
  ClaimRequest,
  ClaimResult,
  CommitResult,
  Fence,
  Hint,
  Mail,
  NewRun,
  Refusal,
  SentInTransaction,
  Store,
  StoreOptions,
  StoreTransaction,
  WorkerInfo,
} from "../contract/store.js";
import { HintEmitter, hintsOf, hintsOfMail, hintsOfStarts } from "../shared/hint-emitter.js";
import type { Dialect } from "../sql/dialect.js";
import { migrate, pendingMigrations } from "../sql/migrations.js";
import { SqlReads } from "../sql/reads.js";
import { SqlUpkeep } from "../sql/upkeep.js";
import { sqliteDialect } from "../sqlite/dialect.js";
import { migrations } from "../sqlite/schema.js";
import { type RemoteAddress, remoteAddress } from "./address.js";
import { lookStatement, nothingToClaim, planClaim } from "./claim.js";
import { planCommit } from "./commit.js";
import { RemoteDatabase } from "./database.js";
import { loadClient, type Value } from "./driver.js";
import { guardThatFailed, isUnauthorized } from "./errors.js";
import { planMail } from "./mail.js";
import { migrationPort } from "./migrate.js";
import { Plan } from "./plan.js";
import { ServerClock, serverNow } from "./server-clock.js";
import { Transactions } from "./transaction.js";
import { planBeat, planEnlist, planReap, planRetire } from "./workers.js";

export type { LibsqlTransactionHandle } from "./handle.js";

export async function openRemoteLibsql(url: string, options: StoreOptions = {}): Promise<Store> {
  const runtime = options.runtime ?? systemRuntime;
  const address = remoteAddress(url, options.authToken);
  const db = new RemoteDatabase(await loadClient(address), address, options.onTrouble, runtime);
  const store = new RemoteLibsqlStore(db, options.clock, runtime);
  try {
    // Fails now rather than later when the address or the token is wrong.
    await store.learnTime();
    return store;
  } catch (error) {
    await db.close();
    throw (await refusedToken(address)) ?? error;
  }
}

/** sqld closes a web socket whose token it refuses without saying why. Over HTTP it does say so. */
async function refusedToken(address: RemoteAddress): Promise<StoreError | null> {
  const { url, authToken, description } = address;
  const open = await loadClient({ url: url.replace(/^ws/, "http"), usesWebSocket: false, authToken });
  const client = open();
  try {
    await client.execute({ sql: "SELECT 1", args: [] });
    return null;
  } catch (error) {
    if (!isUnauthorized(error)) return null;
    const problem = authToken === undefined ? "asks for a token" : "refuses the token";
    return new StoreError(`${description} ${problem}: connect(url, { authToken }), or ?authToken=… in the URL.`, {
      transient: false,
      cause: error,
    });
  } finally {
    client.close();
  }
}

class RemoteLibsqlStore extends SqlReads implements Store {
  readonly hearsOthers = false;
  readonly description: string;
  readonly upkeep: SqlUpkeep;
  readonly #db: RemoteDatabase;
  readonly #runtime: Runtime;
  readonly #serverClock: ServerClock;
  readonly #clock: () => number;
  readonly #isVirtual: boolean;
  readonly #hints = new HintEmitter();
  readonly #transactions: Transactions;
  #hasFoundTasks = true;

  constructor(db: RemoteDatabase, clock: StoreOptions["clock"], runtime: Runtime) {
    const sqlite = sqliteDialect(clock ?? (() => runtime.now()));
    const dialect: Dialect = clock === undefined ? { ...sqlite, now: () => serverNow } : sqlite;
    super(db, dialect);
    this.upkeep = new SqlUpkeep(
      {
        query: (sql, values) => db.query(sql, values),
        atomically: async (writes) => {
          await db.write(writes.map(({ text, values }) => ({ sql: text, args: values as readonly Value[] })));
        },
        tell: (hints) => this.#hints.emit(hints),
      },
      dialect,
    );
    this.#db = db;
    this.#runtime = runtime;
    this.#serverClock = new ServerClock(runtime);
    this.description = db.description;
    this.#isVirtual = clock !== undefined;
    this.#clock = clock ?? (() => this.#serverClock.now());
    this.#transactions = new Transactions(db, this.#clock, (batch, result, started) => {
      this.#hints.emit(hintsOf(batch, result));
      if (result.kind === "committed") this.#hints.emit(hintsOfStarts(started));
    });
  }

  migrate(): Promise<void> {
    return migrate(migrationPort(this.#db), migrations);
  }

  pendingMigrations(): Promise<readonly number[]> {
    return pendingMigrations(migrationPort(this.#db), migrations);
  }

  async commit(batch: Batch): Promise<CommitResult> {
    const { plan, resultOf } = planCommit(batch, this.#clock());
    const result = await this.#guarded(plan, resultOf);
    this.#hints.emit(hintsOf(batch, result));
    return result;
  }

  async startInTransaction(
    tx: unknown,
    starts: readonly NewRun[],
  ): Promise<{ readonly at: number; readonly refused: readonly Refusal[] }> {
    const at = this.#clock();
    const refused = await this.#transactions.startRuns(tx, starts, at);
    // Too early, since the caller has yet to commit; a worker that looks now in vain finds them at its next poll.
    this.#hints.emit(hintsOfStarts(starts));
    return { at, refused };
  }

  async sendInTransaction(tx: unknown, mail: readonly Mail[]): Promise<SentInTransaction> {
    const sent = await this.#transactions.send(tx, mail, this.#clock());
    // Too early, as above.
    this.#hints.emit(hintsOfMail(mail));
    return sent;
  }

  async send(mail: readonly Mail[]): Promise<{ readonly undeliverable: readonly string[] }> {
    const plan = new Plan<never>();
    const raised = planMail(plan, mail, this.#clock());
    const results = plan.statements.length === 0 ? [] : await this.#db.write(plan.statements);
    this.#hints.emit(hintsOfMail(mail));
    return { undeliverable: mail.flatMap(({ to }, i) => (results[raised[i] ?? -1]?.rowsAffected === 0 ? [to] : [])) };
  }

  begin(): Promise<StoreTransaction> {
    return this.#transactions.begin();
  }

  /** While there are tasks each claim is one batch. Once there are none, a look without the write lock comes first. */
  async claim(request: ClaimRequest): Promise<ClaimResult> {
    if (!this.#hasFoundTasks) {
      const sentAt = this.#runtime.now();
      const [row] = await this.#db.read(lookStatement(request));
      this.#serverClock.learn(Number(row?.now), sentAt, this.#runtime.now());
      const nothing = row === undefined ? null : nothingToClaim(row, this.#clock());
      if (nothing !== null) return nothing;
    }
    const { plan, resultOf } = planClaim(request, this.#clock());
    const result = await this.#guarded<ClaimResult>(plan, (results) => resultOf(results, (ids) => this.runsById(ids)));
    this.#hasFoundTasks = result.kind === "claimed" && result.tasks.length > 0;
    return result;
  }

  async enlist(worker: WorkerInfo): Promise<Fence> {
    this.#db.deadline.enlisted(worker.id, worker.leaseMs);
    const { plan, resultOf } = planEnlist(worker, this.#clock());
    const { fence, freed } = resultOf(await this.#db.write(plan.statements));
    if (freed) this.#tellToLook();
    return fence;
  }

  async beat(fence: Fence): Promise<BeatResult> {
    const { plan, resultOf } = planBeat(fence);
    const sentAt = this.#runtime.now();
    const { someSilent, now, ...news } = resultOf(await this.#db.write(plan.statements));
    this.#serverClock.learn(now, sentAt, this.#runtime.now());
    const reaped = someSilent ? await this.#reap() : [];
    if (reaped.length > 0) this.#tellToLook();
    return { ...news, reaped };
  }

  async #reap(): Promise<string[]> {
    const { plan, resultOf } = planReap(this.#clock());
    return resultOf(await this.#db.write(plan.statements));
  }

  async retire(fence: Fence): Promise<void> {
    await this.#db.write(planRetire(fence, this.#clock()).statements);
    this.#db.deadline.retired(fence.workerId);
    this.#tellToLook();
  }

  #tellToLook(): void {
    this.#hints.emit([{ kind: "ready", workflows: [] }]);
  }

  async now(): Promise<number> {
    return this.#isVirtual ? this.#clock() : this.learnTime();
  }

  /** The server's time, by which this process' idea of it is corrected. */
  async learnTime(): Promise<number> {
    const sentAt = this.#runtime.now();
    const [row] = await this.#db.read({ sql: `SELECT ${serverNow} AS now`, args: [] });
    const now = Number(row?.now);
    this.#serverClock.learn(now, sentAt, this.#runtime.now());
    return now;
  }

  watch(listener: (hint: Hint) => void): () => void {
    return this.#hints.watch(listener);
  }

  close(): Promise<void> {
    return this.#db.close();
  }

  /** What a plan comes to: the refusal of the guard that stopped it, or what its results say. */
  async #guarded<R>(
    plan: Plan<R>,
    resultOf: (results: Awaited<ReturnType<RemoteDatabase["write"]>>) => R | Promise<R>,
  ): Promise<R> {
    let results: Awaited<ReturnType<RemoteDatabase["write"]>>;
    try {
      results = await this.#db.write(plan.statements);
    } catch (error) {
      const failed = guardThatFailed((error as Error).cause ?? error);
      const refusal = failed === null ? null : plan.refusalAt(failed);
      if (refusal === null) throw error;
      return refusal;
    }
    return resultOf(results);
  }
}
