/**
 * The memory store: the executable specification of `store.ts`, and a real store for tests and scratch work.
 *
 * Every method does its work synchronously before it returns, so each is a transaction by construction: what can be
 * refused is checked first, then everything is applied.
 */

import { InvalidInputError, StoreError } from "../../core/errors/errors.js";
import type { Runtime } from "../../runtime/runtime.js";
import { systemRuntime } from "../../runtime/system.js";
import type {
  Batch,
  BeatResult,
  Claimed,
  ClaimRequest,
  ClaimResult,
  CommitResult,
  CursorRow,
  Fence,
  Hint,
  InboxRow,
  Mail,
  RunFilter,
  RunRecord,
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
import { HintEmitter, hintsOf, hintsOfMail } from "../shared/hint-emitter.js";
import { MemoryCommits, own } from "./commit.js";
import { matches, newestFirst } from "./filter.js";
import { noSql } from "./no-sql.js";
import { MemoryRows } from "./rows.js";
import type { Task } from "./task.js";
import { MemoryUpkeep } from "./upkeep.js";

export class MemoryStore implements Store {
  #closed = false;
  /** There are no others. */
  readonly hearsOthers = true;
  readonly description = "memory";
  readonly #clock: () => number;
  readonly #runtime: Runtime;
  readonly #hints = new HintEmitter();
  readonly #rows = new MemoryRows();
  readonly #commits = new MemoryCommits(this.#rows);
  readonly upkeep: MemoryUpkeep;

  constructor(options: Pick<StoreOptions, "clock" | "runtime"> = {}) {
    const runtime = options.runtime ?? systemRuntime;
    this.#runtime = runtime;
    this.#clock = options.clock ?? (() => runtime.now());
    this.upkeep = new MemoryUpkeep(this.#rows, this.#clock, this.#hints);
  }

  async migrate(): Promise<void> {}

  async pendingMigrations(): Promise<readonly number[]> {
    return [];
  }

  async commit(batch: Batch): Promise<CommitResult> {
    this.#checkOpen();
    const refusal = this.#commits.refuses(batch);
    if (refusal !== null) return refusal;
    const result = this.#commits.apply(batch, this.#clock());
    this.#hints.emit(hintsOf(batch, result));
    return result;
  }

  async startInTransaction(): Promise<never> {
    throw new InvalidInputError(
      "The memory store has no transactions of its own to join; start without `tx`, or use a SQL store.",
    );
  }

  async sendInTransaction(): Promise<never> {
    throw new InvalidInputError(
      "The memory store has no transactions of its own to join; send the signal without `tx`, or use a SQL store.",
    );
  }

  async send(mail: readonly Mail[]): Promise<{ readonly undeliverable: readonly string[] }> {
    const undeliverable = this.#commits.deliver(mail, this.#clock());
    this.#hints.emit(hintsOfMail(mail));
    return { undeliverable };
  }

  /** There is nothing to roll back, and nothing to write with: a body that leaves `tx` alone is a step like any other. */
  async begin(): Promise<StoreTransaction> {
    return { handle: noSql, commit: (batch) => this.commit(batch), rollback: async () => {} };
  }

  async claim({ fence, routes, limit, limitPerRoute }: ClaimRequest): Promise<ClaimResult> {
    if (!this.#rows.holds(fence)) return { kind: "fenced" };
    const at = this.#clock();
    const due: Task[] = [];
    let nextDueAt: number | null = null;
    for (const route of routes) {
      const found = this.#rows.shelves.take(route, at, limitPerRoute);
      due.push(...found.due);
      if (found.nextDueAt !== null) nextDueAt = Math.min(found.nextDueAt, nextDueAt ?? found.nextDueAt);
    }
    due.sort((a, b) => b.priority - a.priority || (a.dueAt ?? 0) - (b.dueAt ?? 0));
    const tasks = due.slice(0, limit);
    for (const task of due.slice(limit)) this.#rows.shelves.put(task, task.dueAt, at);
    const claimed = tasks.map((task): Claimed => {
      const { fresh } = task;
      own(task, fence);
      return { run: this.#rows.record(task.run), deliveries: task.deliveries, mail: task.mail, fresh };
    });
    return { kind: "claimed", at, tasks: claimed, nextDueAt: due.length >= limit ? null : nextDueAt };
  }

  async enlist(worker: WorkerInfo): Promise<Fence> {
    this.#checkOpen();
    const old = this.#rows.workers.get(worker.id);
    if (old !== undefined) this.#freeTasksOf(worker.id);
    const epoch = (old?.epoch ?? 0) + 1;
    const now = this.#runtime.now();
    this.#rows.workers.set(worker.id, { ...worker, epoch, live: true, startedAt: now, beatAt: now });
    return { workerId: worker.id, epoch };
  }

  async beat(fence: Fence): Promise<BeatResult> {
    if (!this.#rows.holds(fence)) return { alive: false, mail: [], reaped: [], pausedQueues: [] };
    const now = this.#runtime.now();
    const me = this.#rows.workers.get(fence.workerId) as Omit<WorkerRecord, "owned">;
    this.#rows.workers.set(me.id, { ...me, beatAt: now });
    const reaped: string[] = [];
    for (const worker of this.#rows.workers.values()) {
      if (!worker.live || worker.beatAt + worker.leaseMs >= now) continue;
      this.#bury(worker);
      reaped.push(worker.id);
    }
    const mail: string[] = [];
    for (const task of this.#rows.tasks.values()) if (task.owner === me.id && task.mail > 0) mail.push(task.run.id);
    return { alive: true, mail, reaped, pausedQueues: this.upkeep.pausedNames };
  }

  async retire(fence: Fence): Promise<void> {
    const worker = this.#rows.workers.get(fence.workerId);
    if (worker !== undefined && this.#rows.holds(fence)) this.#bury(worker);
  }

  /** Dead first, then its tasks are freed: in between it can no longer write. */
  #bury(worker: Omit<WorkerRecord, "owned">): void {
    this.#rows.workers.set(worker.id, { ...worker, live: false });
    this.#freeTasksOf(worker.id);
  }

  #freeTasksOf(workerId: string): void {
    const now = this.#clock();
    for (const task of this.#rows.tasks.values()) {
      if (task.owner !== workerId) continue;
      task.owner = null;
      task.epoch = null;
      this.#rows.shelves.put(task, now, now);
    }
    this.#hints.emit([{ kind: "ready", workflows: [] }]);
  }

  async now(): Promise<number> {
    return this.#clock();
  }

  async run(id: string): Promise<RunRecord | null> {
    const run = this.#rows.runs.get(id);
    return run === undefined ? null : this.#rows.record(run);
  }

  async runsById(ids: readonly string[]): Promise<readonly RunRecord[]> {
    return ids.flatMap((id) => this.#rows.runs.get(id) ?? []).map((run) => this.#rows.record(run));
  }

  async runs(filter: RunFilter): Promise<readonly RunRecord[]> {
    const { after } = filter;
    const matching: RunRecord[] = [];
    for (const run of this.#rows.runs.values()) {
      const record = this.#rows.record(run);
      if (matches(record, filter) && (after === undefined || newestFirst(record, after) > 0)) matching.push(record);
    }
    return matching.sort(newestFirst).slice(0, filter.limit);
  }

  async tasks(runIds: readonly string[]): Promise<readonly TaskRecord[]> {
    return runIds
      .flatMap((id) => this.#rows.tasks.get(id) ?? [])
      .map(({ run, route, state, dueAt, owner, epoch, deliveries, mail }) => ({
        runId: run.id,
        route,
        state,
        dueAt,
        owner,
        epoch,
        deliveries,
        mail,
      }));
  }

  async owned(fence: Fence): Promise<readonly TaskRecord[]> {
    const mine = [...this.#rows.tasks.values()].filter(
      (task) => task.owner === fence.workerId && task.epoch === fence.epoch,
    );
    return this.tasks(mine.map((task) => task.run.id));
  }

  async mailed(fence: Fence): Promise<readonly string[]> {
    return (await this.owned(fence)).flatMap((task) => (task.mail > 0 ? [task.runId] : []));
  }

  async log(runId: string, page: { readonly after: number; readonly limit: number }): Promise<readonly StoredEvent[]> {
    return (this.#rows.events.get(runId) ?? []).slice(page.after, page.after + page.limit);
  }

  async logs(runIds: readonly string[]): Promise<ReadonlyMap<string, readonly StoredEvent[]>> {
    return new Map(runIds.map((id) => [id, [...(this.#rows.events.get(id) ?? [])]]));
  }

  async inbox(runIds: readonly string[]): Promise<ReadonlyMap<string, readonly InboxRow[]>> {
    return new Map(runIds.map((id) => [id, [...(this.#rows.inboxes.get(id) ?? [])]]));
  }

  async cursors(runId: string): Promise<readonly CursorRow[]> {
    return [...(this.#rows.cursors.get(runId)?.values() ?? [])];
  }

  async workers(): Promise<readonly WorkerRecord[]> {
    const owned = new Map<string, number>();
    for (const { owner } of this.#rows.tasks.values())
      if (owner !== null) owned.set(owner, (owned.get(owner) ?? 0) + 1);
    return [...this.#rows.workers.values()].map((worker) => ({ ...worker, owned: owned.get(worker.id) ?? 0 }));
  }

  async registerWorkflows(workflows: readonly WorkflowRegistration[]): Promise<void> {
    for (const { name, queue, version, signature, graph } of workflows) {
      const old = this.#rows.workflows.get(name);
      this.#rows.workflows.set(name, {
        name,
        queue: queue ?? old?.queue ?? name,
        version: version ?? old?.version ?? "",
        signature: signature ?? old?.signature ?? null,
        graph: graph ?? old?.graph ?? null,
        createdAt: old?.createdAt ?? this.#clock(),
      });
    }
  }

  async workflow(name: string): Promise<WorkflowRecord | null> {
    return this.#rows.workflows.get(name) ?? null;
  }

  watch(listener: (hint: Hint) => void): () => void {
    return this.#hints.watch(listener);
  }

  async close(): Promise<void> {
    this.#closed = true;
  }

  #checkOpen(): void {
    if (this.#closed)
      throw new StoreError("The memory store is closed; connect() opens another.", { transient: false });
  }
}
