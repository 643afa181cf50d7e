/** The PostgreSQL store: its parts, put together. */

import { FencedError, StoreError } from "../../core/errors/errors.js";
import { randomHex } from "../../runtime/random-hex.js";
import type { Runtime } from "../../runtime/runtime.js";
import type {
  Batch,
  BeatResult,
  ClaimRequest,
  ClaimResult,
  CommitResult,
  CursorRow,
  Fence,
  Hint,
  InboxRow,
  Mail,
  NewRun,
  Refusal,
  RunFilter,
  RunRecord,
  SentInTransaction,
  Store,
  StoredEvent,
  StoreOptions,
  StoreTransaction,
  TaskRecord,
  WorkerInfo,
  WorkerRecord,
  WorkflowRecord,
  WorkflowRegistration,
} from "../contract/store.js";
import { HintEmitter, hintsOf, hintsOfMail, hintsOfStarts } from "../shared/hint-emitter.js";
import { closingPatienceMs } from "../shared/reachability.js";
import { migrate, pendingMigrations } from "../sql/migrations.js";
import { SqlReads } from "../sql/reads.js";
import { taskState } from "../sql/records.js";
import { SqlUpkeep, type UpkeepPort } from "../sql/upkeep.js";
import { Claimer } from "./claim/claim.js";
import { ScanBounds } from "./claim/claim-bounds.js";
import { type SqlClock, sqlClock } from "./clock.js";
import { Committer, needsTransaction } from "./commit/commit.js";
import type { Database } from "./connection/database.js";
import type { PgModule, Run } from "./connection/driver.js";
import { isTooOptimistic, runOfDuplicateEvent } from "./connection/errors.js";
import { Listener } from "./connection/listener.js";
import { channelOf, encodeHints, Notifier } from "./connection/notifier.js";
import { postgresDialect } from "./dialect.js";
import { History } from "./history.js";
import { migrationPort } from "./migrate.js";
import { Operations } from "./operations.js";
import { migrationsOf } from "./schema.js";
import type { Tables } from "./tables.js";
import { assertTransaction, type CallersTransaction, PostgresTransaction } from "./transaction.js";
import { deadBeat, Workers } from "./workers.js";

export interface Opened {
  readonly runtime: Runtime;
  readonly pg: PgModule;
  readonly url: string;
  readonly db: Database;
  readonly tables: Tables;
  readonly description: string;
  readonly options: StoreOptions;
}

export class PostgresStore implements Store {
  readonly description: string;
  readonly upkeep: SqlUpkeep;
  readonly #opened: Opened;
  readonly #db: Database;
  readonly #clock: SqlClock;
  readonly #reads: SqlReads;
  readonly #committer: Committer;
  readonly #claimer: Claimer;
  readonly #workers: Workers;
  readonly #history: History;
  readonly #hints = new HintEmitter();
  readonly #runtime: Runtime;
  readonly #instance: string;
  readonly #channel: string;
  readonly #notifier: Notifier | null;
  readonly #transactions = new Set<PostgresTransaction>();
  readonly #write: Run;
  readonly #operations = new Operations();
  #listener: Listener | null = null;
  #closing: Promise<void> | null = null;

  constructor(opened: Opened) {
    const { runtime, db, tables, description, options } = opened;
    this.#opened = opened;
    this.#runtime = runtime;
    this.#instance = randomHex(runtime, 16);
    this.description = description;
    this.#db = db;
    this.#write = (query) => db.write(query);
    this.#clock = sqlClock(options.clock);
    const dialect = postgresDialect(tables, options.clock);
    this.#reads = new SqlReads({ query: (text, values) => db.read({ text, values }) }, dialect);
    this.upkeep = new SqlUpkeep(this.#upkeepPort(), dialect);
    this.#history = new History(tables);
    this.#committer = new Committer(tables, this.#clock, (runId, end) => this.#history.knowsEnd(runId, end));
    this.#claimer = new Claimer(tables, this.#clock, new ScanBounds(() => runtime.monotonic()), runtime);
    this.#channel = channelOf(tables.schema);
    this.#notifier =
      options.notify === false
        ? null
        : new Notifier(this.#write, this.#channel, this.#instance, this.#trouble, runtime);
    const inTransaction = <T>(work: (run: Run) => Promise<T>) => db.transaction(work);
    const onFreed = () => this.#tell([{ kind: "ready", workflows: [] }]);
    this.#workers = new Workers(tables, this.#clock, inTransaction, onFreed);
    db.remember(this.#history);
    db.whenPooled(() => this.#stopListening());
  }

  /** That the server is out of reach has been told. */
  readonly #trouble = (what: string, error: unknown): void => {
    if (!(error instanceof StoreError && error.unreachable)) this.#opened.options.onTrouble?.(what, error);
  };

  /** Whatever it does may be done twice, so it is tried again like a read. */
  #upkeepPort(): UpkeepPort {
    return {
      query: (text, values) => this.#operations.run(() => this.#db.read({ text, values })),
      atomically: (writes) =>
        this.#operations.run(() =>
          this.#db.transaction(async (run) => {
            for (const write of writes) await run(write);
          }),
        ),
      tell: (hints) => this.#tell(hints),
    };
  }

  migrate(): Promise<void> {
    const { tables } = this.#opened;
    return this.#operations.run(() => migrate(migrationPort(this.#db, tables), migrationsOf(tables)));
  }

  pendingMigrations(): Promise<readonly number[]> {
    const { tables } = this.#opened;
    return this.#operations.run(() => pendingMigrations(migrationPort(this.#db, tables), migrationsOf(tables)));
  }

  commit(batch: Batch): Promise<CommitResult> {
    return this.#operations.run(() => this.#commit(batch));
  }

  async #commit(batch: Batch): Promise<CommitResult> {
    if (needsTransaction(batch)) return (await this.#begin()).commit(batch);
    const { fence } = batch;
    try {
      const apply = () => this.#apply(fence === null ? this.#write : this.#writeUnder(fence), batch);
      const result = await this.#surelyFenced(apply);
      this.#committed(batch, result);
      return result;
    } catch (error) {
      if (error instanceof FencedError) return { kind: "fenced" };
      this.#history.uncertain(batch);
      if (runOfDuplicateEvent(error) === null) throw error;
      return this.#committer.conflictOf((query) => this.#db.read(query), batch, error);
    }
  }

  /** A fence of a past that the database has lost is refused by the time the statement would be sent. */
  #writeUnder(fence: Fence): Run {
    const check = () => this.#history.check(fence);
    return (query) => this.#db.write(query, check);
  }

  /** Behind a pooler, what looks like a lost fence may be a statement that met another server, or was overtaken by time. */
  async #surelyFenced<T extends { readonly kind: string }>(operation: () => Promise<T>): Promise<T> {
    const aim = this.#db.aim();
    const result = await operation();
    return result.kind === "fenced" && (await this.#db.hasMissed(aim)) ? operation() : result;
  }

  async #apply(run: Run, batch: Batch): Promise<CommitResult> {
    try {
      return await this.#committer.apply(run, batch, true);
    } catch (error) {
      // Nothing was written: a run of it exists (the answer to its birth was lost), or is not the worker's, or has mail.
      if (!isTooOptimistic(error)) throw error;
      return this.#committer.apply(run, batch);
    }
  }

  #committed(batch: Batch, result: CommitResult): void {
    if (result.kind === "committed") this.#history.committed(batch, result);
    this.#tell(hintsOf(batch, result));
  }

  async startInTransaction(
    tx: unknown,
    starts: readonly NewRun[],
  ): Promise<{ readonly at: number; readonly refused: readonly Refusal[] }> {
    assertTransaction(tx);
    // Without a name: the connection is not ours, and may know another schema's statement by that name.
    const result = await this.#committer.start(
      async ({ text, values = [] }) => (await tx.query(text, values)).rows,
      starts,
    );
    await this.#notifyIn(tx, hintsOfStarts(starts));
    return result;
  }

  async sendInTransaction(tx: unknown, mail: readonly Mail[]): Promise<SentInTransaction> {
    assertTransaction(tx);
    const { tasks, runs } = this.#opened.tables;
    const isWaiting = `SELECT t.run_id FROM ${tasks} t JOIN ${runs} r ON r.id = t.run_id
      WHERE t.run_id = ANY ($1::uuid[]) AND t.state = ${taskState.parked} AND r.started_at IS NULL`;
    const { rows } = await tx.query(isWaiting, [mail.map(({ to }) => to)]);
    const unbegun = rows.map(({ run_id }) => run_id as string);
    const deliverable = mail.filter(({ to }) => !unbegun.includes(to));
    const delivered = await this.#committer.send(
      async ({ text, values = [] }) => (await tx.query(text, values)).rows,
      deliverable,
    );
    await this.#notifyIn(tx, hintsOfMail(deliverable));
    return { undeliverable: deliverable.map(({ to }) => to).filter((to) => !delivered.has(to)), unbegun };
  }

  /** The server sends it when the caller commits, to this process as well: it cannot know when that is. */
  async #notifyIn(tx: CallersTransaction, hints: readonly Hint[]): Promise<void> {
    if (this.#notifier === null || hints.length === 0) return;
    await tx.query("SELECT pg_notify($1, $2)", [this.#channel, encodeHints(hints)]);
  }

  async send(mail: readonly Mail[]): Promise<{ readonly undeliverable: readonly string[] }> {
    const delivered = await this.#operations.run(() => this.#committer.send(this.#write, mail));
    this.#tell(hintsOfMail(mail));
    return { undeliverable: mail.map(({ to }) => to).filter((to) => !delivered.has(to)) };
  }

  begin(): Promise<StoreTransaction> {
    return this.#operations.run(() => this.#begin());
  }

  async #begin(): Promise<StoreTransaction> {
    const transaction = await PostgresTransaction.begin(
      this.#db,
      this.#committer,
      this.#operations,
      this.#history,
      (batch, applied) => this.#committed(batch, applied),
      (ended) => this.#transactions.delete(ended),
    );
    this.#transactions.add(transaction);
    return transaction;
  }

  claim(request: ClaimRequest): Promise<ClaimResult> {
    const write = this.#writeUnder(request.fence);
    const claim = () => this.#claimer.claim(write, request);
    return this.#unlessLost({ kind: "fenced" }, () => this.#surelyFenced(claim));
  }

  /** What a fence gets that the database cannot know any more. */
  #unlessLost<T>(fenced: T, operation: () => Promise<T>): Promise<T> {
    return this.#operations.run(operation).catch((error: unknown) => {
      if (error instanceof FencedError) return fenced;
      throw error;
    });
  }

  async enlist(worker: WorkerInfo): Promise<Fence> {
    this.#db.deadline.enlisted(worker.id, worker.leaseMs);
    // Its writes are meant for the server that answers now.
    await this.#operations.run(() => this.#db.lookAtServer());
    const fence = await this.#operations.run(() => this.#workers.enlist(worker, this.#history.epochOf(worker.id)));
    this.#history.enlisted(fence);
    return fence;
  }

  beat(fence: Fence): Promise<BeatResult> {
    // A beat that is made twice is still one beat, so it may be repeated like a read.
    const read: Run = (query) => this.#db.read(query, () => this.#history.check(fence));
    return this.#unlessLost(deadBeat, () => this.#workers.beat(read, fence));
  }

  async retire(fence: Fence): Promise<void> {
    await this.#operations.run(() => this.#workers.retire(fence));
    this.#db.deadline.retired(fence.workerId);
  }

  async now(): Promise<number> {
    let bound = 0;
    const text = `SELECT ${this.#clock.now(() => `$${++bound}`)} AS now`;
    const [row] = await this.#operations.run(() => this.#db.read({ text, values: this.#clock.values() }));
    return Number(row?.now);
  }

  run(id: string): Promise<RunRecord | null> {
    return this.#operations.run(() => this.#reads.run(id));
  }

  runsById(ids: readonly string[]): Promise<readonly RunRecord[]> {
    return this.#operations.run(() => this.#reads.runsById(ids));
  }

  runs(filter: RunFilter): Promise<readonly RunRecord[]> {
    return this.#operations.run(() => this.#reads.runs(filter));
  }

  tasks(runIds: readonly string[]): Promise<readonly TaskRecord[]> {
    return this.#operations.run(() => this.#reads.tasks(runIds));
  }

  owned(fence: Fence): Promise<readonly TaskRecord[]> {
    return this.#operations.run(() => this.#reads.owned(fence));
  }

  mailed(fence: Fence): Promise<readonly string[]> {
    return this.#operations.run(() => this.#reads.mailed(fence));
  }

  log(runId: string, page: { readonly after: number; readonly limit: number }): Promise<readonly StoredEvent[]> {
    return this.#operations.run(() => this.#reads.log(runId, page));
  }

  logs(runIds: readonly string[]): Promise<ReadonlyMap<string, readonly StoredEvent[]>> {
    return this.#operations.run(() => this.#reads.logs(runIds));
  }

  inbox(runIds: readonly string[]): Promise<ReadonlyMap<string, readonly InboxRow[]>> {
    return this.#operations.run(() => this.#reads.inbox(runIds));
  }

  cursors(runId: string): Promise<readonly CursorRow[]> {
    return this.#operations.run(() => this.#reads.cursors(runId));
  }

  workers(): Promise<readonly WorkerRecord[]> {
    return this.#operations.run(() => this.#reads.workers());
  }

  registerWorkflows(workflows: readonly WorkflowRegistration[]): Promise<void> {
    return this.#operations.run(() => this.#reads.registerWorkflows(workflows));
  }

  workflow(name: string): Promise<WorkflowRecord | null> {
    return this.#operations.run(() => this.#reads.workflow(name));
  }

  /** A pooler gives what a LISTEN would hear to another client. */
  get hearsOthers(): boolean {
    return this.#notifier !== null && (!this.#db.isPooled || this.#opened.options.listenUrl !== undefined);
  }

  watch(listener: (hint: Hint) => void): () => void {
    if (this.hearsOthers && this.#closing === null) this.#listener ??= this.#listen();
    return this.#hints.watch(listener);
  }

  /** On a pooler's connection it would hear nothing. */
  #stopListening(): void {
    if (this.hearsOthers) return;
    void this.#listener?.close();
    this.#listener = null;
  }

  #listen(): Listener {
    const { pg, db, options } = this.#opened;
    const url = options.listenUrl ?? this.#opened.url;
    const emit = (hints: readonly Hint[]) => this.#hints.emit(hints);
    const to = { channel: this.#channel, self: this.#instance, emit };
    return new Listener({
      runtime: this.#runtime,
      pg,
      connection: db.connectionConfig(url),
      ...to,
      reach: db.reach,
      deadline: db.deadline,
      onTrouble: this.#trouble,
    });
  }

  /** To this process at once, to the others by way of the server. */
  #tell(hints: readonly Hint[]): void {
    this.#hints.emit(hints);
    this.#notifier?.tell(hints);
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    // A server that has gone without a word would keep us here for as long as the network likes.
    const impatience = this.#runtime.setTimeout(() => this.#db.cutOff(), closingPatienceMs);
    await Promise.all([this.#operations.close(), this.#listener?.close()]);
    await this.#notifier?.settled();
    for (const transaction of this.#transactions) transaction.abandon();
    await this.#db.close();
    this.#runtime.clearTimeout(impatience);
  }
}
