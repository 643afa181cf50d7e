/** The SQLite store: each method is a transaction (or a read) of the files beside this one. */

import type { Runtime } from "../../runtime/runtime.js";
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
  WorkflowRegistration,
} from "../contract/store.js";
import { HintEmitter, hintsOf, hintsOfMail, hintsOfStarts } from "../shared/hint-emitter.js";
import { migrate, pendingMigrations } from "../sql/migrations.js";
import { SqlReads } from "../sql/reads.js";
import { SqlUpkeep } from "../sql/upkeep.js";
import { Access } from "./access.js";
import { claim, claimNothing } from "./claim.js";
import { applyBatch, isCommitted } from "./commit.js";
import { sqliteDialect } from "./dialect.js";
import type { SqliteDriver } from "./driver.js";
import { deliver, deliverBy } from "./mail.js";
import { migrationPort } from "./migrate.js";
import { type Location, openConnection } from "./open.js";
import { migrations } from "./schema.js";
import { startRuns } from "./starts.js";
import { asQueryable, type OpenTransaction, SqliteTransaction, sendWithin, startWithin } from "./transaction.js";
import { FileWatch } from "./watch.js";
import { beat, enlist, reap, retire } from "./workers.js";

export class SqliteStore extends SqlReads implements Store {
  readonly description: string;
  readonly upkeep: SqlUpkeep;
  readonly #access: Access;
  readonly #options: StoreOptions;
  readonly #clock: () => number;
  readonly #runtime: Runtime;
  readonly #hints = new HintEmitter();
  readonly #registry: SqlReads;
  readonly #handles = new WeakMap<object, OpenTransaction>();
  #watchers = 0;
  #fileWatch: FileWatch | undefined;
  #dataVersion: unknown;

  static async open(
    driver: SqliteDriver,
    location: Location,
    options: StoreOptions,
    runtime: Runtime,
  ): Promise<SqliteStore> {
    const connection = await openConnection(driver, location, runtime);
    return new SqliteStore(new Access(driver, location, connection, runtime), options, runtime);
  }

  private constructor(access: Access, options: StoreOptions, runtime: Runtime) {
    const clock = options.clock ?? (() => runtime.now());
    const dialect = sqliteDialect(clock);
    super({ query: (sql, values) => access.read((db) => db.query(sql, values)) }, dialect);
    this.#registry = new SqlReads({ query: (sql, values) => access.write((db) => db.query(sql, values)) }, dialect);
    this.upkeep = new SqlUpkeep(
      {
        query: (sql, values) =>
          isRead(sql) ? access.read((db) => db.query(sql, values)) : access.writeEach((db) => db.query(sql, values)),
        atomically: (writes) =>
          access.write((db) => {
            for (const { text, values } of writes) db.query(text, values);
          }),
        tell: (hints) => this.#hints.emit(hints),
      },
      dialect,
    );
    this.description = access.location.description;
    this.#access = access;
    this.#options = options;
    this.#clock = clock;
    this.#runtime = runtime;
  }

  async migrate(): Promise<void> {
    await migrate(this.#migrationPort(), migrations);
  }

  async pendingMigrations(): Promise<readonly number[]> {
    return pendingMigrations(this.#migrationPort(), migrations);
  }

  #migrationPort() {
    return migrationPort(
      (work) => this.#access.read(work),
      (work) => this.#access.write(work),
      this.#runtime,
    );
  }

  async commit(batch: Batch): Promise<CommitResult> {
    const result = await this.#access.write((db) => applyBatch(db, batch, this.#clock()), isCommitted);
    this.#hints.emit(hintsOf(batch, result));
    return result;
  }

  async startInTransaction(
    tx: unknown,
    starts: readonly NewRun[],
  ): Promise<{ readonly at: number; readonly refused: readonly Refusal[] }> {
    const at = this.#clock();
    const ours = typeof tx === "object" && tx !== null ? this.#handles.get(tx) : undefined;
    if (ours === undefined) return { at, refused: await startWithin(this.#access, tx, starts, at) };
    ours.guard.assertUsable();
    ours.started.push(...starts);
    return { at, refused: startRuns(ours.db, starts, null, at) };
  }

  async sendInTransaction(tx: unknown, mail: readonly Mail[]): Promise<SentInTransaction> {
    const at = this.#clock();
    const ours = typeof tx === "object" && tx !== null ? this.#handles.get(tx) : undefined;
    ours?.guard.assertUsable();
    const sent = await (ours === undefined
      ? sendWithin(this.#access, tx, mail, at)
      : deliverBy(asQueryable(ours.db), mail, at));
    // Too early, since the caller has yet to commit; a worker that looks now in vain finds them at its next poll.
    this.#hints.emit(hintsOfMail(mail));
    return sent;
  }

  async send(mail: readonly Mail[]): Promise<{ readonly undeliverable: readonly string[] }> {
    const undeliverable = await this.#access.write((db) => deliver(db, mail, this.#clock()));
    this.#hints.emit(hintsOfMail(mail));
    return { undeliverable };
  }

  async begin(): Promise<StoreTransaction> {
    const transaction = await this.#access.begin();
    const begun = new SqliteTransaction(
      this.#access,
      transaction,
      this.#clock,
      this.#runtime,
      (batch, result, started) => {
        this.#hints.emit(hintsOf(batch, result));
        if (isCommitted(result)) this.#hints.emit(hintsOfStarts(started));
      },
    );
    this.#handles.set(begun.handle, begun.open);
    return begun;
  }

  async claim(request: ClaimRequest): Promise<ClaimResult> {
    const nothing = await this.#access.read((db) => claimNothing(db, request, this.#clock()));
    return nothing ?? this.#access.write((db) => claim(db, request, this.#clock()));
  }

  async enlist(worker: WorkerInfo): Promise<Fence> {
    const { fence, freed } = await this.#access.write((db) => enlist(db, worker, this.#clock(), this.#runtime.now()));
    if (freed > 0) this.#tellToLook();
    return fence;
  }

  async beat(fence: Fence): Promise<BeatResult> {
    const { someSilent, ...news } = await this.#access.writeEach((db) => beat(db, fence, this.#runtime));
    const reaped = someSilent ? await this.#access.write((db) => reap(db, this.#clock(), this.#runtime.now())) : [];
    if (reaped.length > 0) this.#tellToLook();
    return { ...news, reaped };
  }

  async retire(fence: Fence): Promise<void> {
    await this.#access.write((db) => retire(db, fence, this.#clock()));
    this.#tellToLook();
  }

  #tellToLook(): void {
    this.#hints.emit([{ kind: "ready", workflows: [] }]);
  }

  async now(): Promise<number> {
    return this.#clock();
  }

  override registerWorkflows(workflows: readonly WorkflowRegistration[]): Promise<void> {
    return this.#registry.registerWorkflows(workflows);
  }

  /** By watching the file; a database in memory has no others. */
  get hearsOthers(): boolean {
    return this.#access.location.file === null || this.#options.notify !== false;
  }

  watch(listener: (hint: Hint) => void): () => void {
    const unwatch = this.#hints.watch(listener);
    this.#watchers += 1;
    if (this.#watchers === 1) this.#fileWatch = this.#watchFile();
    let stopped = false;
    return () => {
      if (stopped) return;
      stopped = true;
      unwatch();
      this.#watchers -= 1;
      if (this.#watchers === 0) this.#fileWatch?.stop();
    };
  }

  #watchFile(): FileWatch | undefined {
    const { file } = this.#access.location;
    if (file === null || this.#options.notify === false) return undefined;
    return new FileWatch({
      runtime: this.#runtime,
      file: `${file}-wal`,
      hasChanged: () => this.#hasForeignCommits(),
      onChange: () => this.#hints.emit([{ kind: "anything" }]),
      onTrouble: (error) => this.#options.onTrouble?.("commits of other processes are not noticed", error),
    });
  }

  /** The number changes with the commits of other connections, not with our own. */
  #hasForeignCommits(): boolean {
    const before = this.#dataVersion;
    try {
      this.#dataVersion = this.#access.readNow((db) => db.query("PRAGMA data_version")[0]?.data_version, before);
      return this.#dataVersion !== before;
    } catch {
      // A timer has nobody to tell. Those who look now will be told.
      return true;
    }
  }

  async close(): Promise<void> {
    this.#fileWatch?.stop();
    await this.#access.close();
  }
}

const isRead = (sql: string) => sql.startsWith("SELECT");
