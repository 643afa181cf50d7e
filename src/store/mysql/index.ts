/** The store on MySQL 8.0+ and MariaDB 10.6+. Nothing wakes other processes here: they poll. */

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
import { migrate, pendingMigrations } from "../sql/migrations.js";
import { SqlReads } from "../sql/reads.js";
import { SqlUpkeep } from "../sql/upkeep.js";
import { append, isAppend } from "./append.js";
import { claim } from "./claim.js";
import { type Clock, nowOf } from "./clock.js";
import { commitIn, conflictOf } from "./commit.js";
import { Database } from "./database.js";
import { mysqlDialect } from "./dialect.js";
import { loadDriver, parseUrl } from "./driver.js";
import { send } from "./mail.js";
import { migrationPort } from "./migrate.js";
import { migrations } from "./schema.js";
import { sql, type Value } from "./sql.js";
import { begin, sendIn, startIn } from "./transactions.js";
import { beat, enlist, retire } from "./workers.js";

/**
 * Opens a store on a MySQL or MariaDB database.
 *
 * @example const store = await openMysql("mysql://app:secret@localhost:3306/app");
 */
export async function openMysql(url: string, options: StoreOptions = {}): Promise<Store> {
  const runtime = options.runtime ?? systemRuntime;
  const { uri, description } = parseUrl(url);
  const db = new Database(await loadDriver(), uri, runtime, options.onTrouble, options.pool);
  const store = new MysqlStore(db, description, options.clock);
  try {
    // Fails now rather than later when the address or the password is wrong.
    await store.now();
    return store;
  } catch (error) {
    await db.close();
    throw error;
  }
}

class MysqlStore extends SqlReads implements Store {
  /** The server has no way to tell. */
  readonly hearsOthers = false;
  readonly description: string;
  readonly upkeep: SqlUpkeep;
  readonly #db: Database;
  readonly #clock: Clock;
  readonly #hints = new HintEmitter();

  constructor(db: Database, description: string, clock: Clock) {
    const dialect = mysqlDialect(clock);
    super(db, dialect);
    this.upkeep = new SqlUpkeep(
      {
        query: (text, values) => db.query(text, values),
        atomically: (writes) =>
          db.transaction(async (transaction) => {
            await transaction.commit(writes.map(({ text, values }) => sql(text, values as readonly Value[])));
          }),
        tell: (hints) => this.#hints.emit(hints),
      },
      dialect,
    );
    this.#db = db;
    this.description = description;
    this.#clock = clock;
  }

  migrate(): Promise<void> {
    return migrate(migrationPort(this.#db), migrations);
  }

  pendingMigrations(): Promise<readonly number[]> {
    return pendingMigrations(migrationPort(this.#db), migrations);
  }

  async commit(batch: Batch): Promise<CommitResult> {
    const appended = isAppend(batch) ? await append(this.#db, batch, this.#now()) : null;
    if (appended !== null) return appended;
    const result = await this.#db
      .transaction((transaction) => commitIn(transaction, batch, this.#now()))
      .catch((error: unknown) => conflictOf(this.#db.reader, batch, this.#now(), error));
    this.#hints.emit(hintsOf(batch, result));
    return result;
  }

  async startInTransaction(
    tx: unknown,
    starts: readonly NewRun[],
  ): Promise<{ readonly at: number; readonly refused: readonly Refusal[] }> {
    const result = await startIn(tx, starts, this.#now());
    // Too early, since the caller has yet to commit; a worker that looks now in vain finds them at its next poll.
    this.#hints.emit(hintsOfStarts(starts));
    return result;
  }

  async sendInTransaction(tx: unknown, mail: readonly Mail[]): Promise<SentInTransaction> {
    const sent = await sendIn(tx, mail, this.#now());
    this.#hints.emit(hintsOfMail(mail));
    return sent;
  }

  async send(mail: readonly Mail[]): Promise<{ readonly undeliverable: readonly string[] }> {
    const undeliverable = await send(this.#db, mail, this.#now());
    this.#hints.emit(hintsOfMail(mail));
    return { undeliverable };
  }

  begin(): Promise<StoreTransaction> {
    const onCommitted = (batch: Batch, result: CommitResult) => this.#hints.emit(hintsOf(batch, result));
    return begin(this.#db, () => this.#now(), onCommitted);
  }

  claim(request: ClaimRequest): Promise<ClaimResult> {
    return claim(this.#db, request, this.#clock);
  }

  async enlist(worker: WorkerInfo): Promise<Fence> {
    this.#db.deadline.enlisted(worker.id, worker.leaseMs);
    const { fence, freed } = await enlist(this.#db, worker, this.#now());
    if (freed) this.#hints.emit(tasksFreed);
    return fence;
  }

  async beat(fence: Fence): Promise<BeatResult> {
    const { freed, ...result } = await beat(this.#db, fence, () => this.#now());
    if (freed || result.reaped.length > 0) this.#hints.emit(tasksFreed);
    return result;
  }

  async retire(fence: Fence): Promise<void> {
    await retire(this.#db, fence, this.#now());
    this.#db.deadline.retired(fence.workerId);
    this.#hints.emit(tasksFreed);
  }

  async now(): Promise<number> {
    const [result] = await this.#db.read([sql(`SELECT ${this.#now()} AS now`)]);
    return Number(result?.rows[0]?.now);
  }

  watch(listener: (hint: Hint) => void): () => void {
    return this.#hints.watch(listener);
  }

  close(): Promise<void> {
    return this.#db.close();
  }

  #now(): string {
    return nowOf(this.#clock);
  }
}

const tasksFreed: readonly Hint[] = [{ kind: "ready", workflows: [] }];
