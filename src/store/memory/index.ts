/**
 * The memory store: the executable specification of the contract in `store/contract`, and a store for tests and
 * experiments.
 *
 * Every method does its work synchronously before it returns, so each call is a transaction.
 */

import { InvalidInputError, StoreError } from "../../core/errors/errors.js";
import { dueAtOf } from "../../core/limits/order.js";
import type { Runtime } from "../../runtime/runtime.js";
import { systemRuntime } from "../../runtime/system.js";
import type {
  Batch,
  ClaimedTask,
  ClaimRequest,
  ClaimResult,
  CommitResult,
  CursorRow,
  Fence,
  HeartbeatResult,
  Hint,
  InboxRow,
  Message,
  NewRun,
  RunFilter,
  RunRecord,
  ScheduleInterest,
  SeenRun,
  Store,
  StoredEvent,
  StoreOptions,
  StoreTransaction,
  TaskRecord,
  WorkerInfo,
  WorkerLoad,
  WorkerRecord,
  WorkflowRecord,
  WorkflowRegistration,
} from "../contract/store.js";
import { HintEmitter, hintsOfCommit, hintsOfMessages } from "../shared/hint-emitter.js";
import { MemoryCommitter, takeOwnership } from "./commit.js";
import { matches, newestFirst } from "./filter.js";
import { MemoryGatherings } from "./gatherings.js";
import { MemoryLimits } from "./limits.js";
import { MemoryMaintenance } from "./maintenance.js";
import { MemoryRows } from "./rows.js";
import { MemorySchedules } from "./schedules.js";
import { type MemoryTask, publicRouteOf } from "./task.js";
import { txWithoutSql } from "./tx-without-sql.js";

/** A store in the memory of this process, and the executable specification of the {@link Store} contract. */
export class MemoryStore implements Store {
  #isClosed = false;
  /** True because no other process can share this store. */
  readonly hasCrossProcessHints = true;
  readonly description = "memory";
  readonly #clock: () => number;
  readonly #runtime: Runtime;
  readonly #hints = new HintEmitter();
  readonly #rows = new MemoryRows();
  readonly #committer = new MemoryCommitter(this.#rows);
  readonly maintenance: MemoryMaintenance;
  readonly limits: MemoryLimits;
  readonly schedules: MemorySchedules;
  readonly gatherings: MemoryGatherings;

  /** Creates an empty store. */
  constructor(options: Pick<StoreOptions, "clock" | "runtime"> = {}) {
    const runtime = options.runtime ?? systemRuntime;
    this.#runtime = runtime;
    this.#clock = options.clock ?? (() => runtime.now());
    this.limits = new MemoryLimits({
      rows: this.#rows,
      clock: this.#clock,
      emit: (hints) => this.#hints.emit(hints),
      deliver: (messages, at) => this.#committer.deliver(messages, at),
    });
    this.maintenance = new MemoryMaintenance(this.#rows, this.#clock, this.#hints, this.limits);
    const port = {
      rows: this.#rows,
      hints: this.#hints,
      now: this.#clock,
      start: (starts: readonly NewRun[], at: number) => this.#committer.createAllRuns(starts, at),
    };
    this.schedules = new MemorySchedules(port);
    this.gatherings = new MemoryGatherings(port);
  }

  async migrate(): Promise<void> {}

  async pendingMigrations(): Promise<readonly number[]> {
    return [];
  }

  async commit(batch: Batch): Promise<CommitResult> {
    this.#checkOpen();
    const refusal = this.#committer.findRefusal(batch);
    if (refusal !== null) return refusal;
    const result = this.#committer.apply(batch, this.#clock());
    this.#hints.emit(hintsOfCommit(batch, result));
    return result;
  }

  async startInTransaction(): Promise<never> {
    throw new InvalidInputError(
      "The memory store has no transactions to join; start without `tx`, or use a SQL store.",
    );
  }

  async sendInTransaction(): Promise<never> {
    throw new InvalidInputError(
      "The memory store has no transactions to join; send the signal without `tx`, or use a SQL store.",
    );
  }

  async send(messages: readonly Message[], seen?: SeenRun): Promise<{ readonly undeliverable: readonly string[] }> {
    if (seen !== undefined && !messages.every(({ to }) => this.#rows.isAsSeen(to, seen)))
      return { undeliverable: messages.map(({ to }) => to) };
    const undeliverable = this.#committer.deliver(messages, this.#clock());
    this.#hints.emit(hintsOfMessages(messages));
    return { undeliverable };
  }

  /**
   * The transaction has nothing to roll back, because its `tx` cannot write. A transactional step that does not use
   * `tx` works like any other step.
   */
  async beginTransaction(): Promise<StoreTransaction> {
    return { handle: txWithoutSql, commit: (batch) => this.commit(batch), rollback: async () => {} };
  }

  async claim({ fence, routes, limit, limitPerRoute }: ClaimRequest): Promise<ClaimResult> {
    if (!this.#rows.isFenceValid(fence)) return { kind: "fenced" };
    const at = this.#clock();
    const dueTasks: MemoryTask[] = [];
    let nextDueAt: number | null = null;
    for (const route of routes) {
      const dequeueResult = this.#rows.taskQueues.dequeueDue(route, at, limitPerRoute);
      dueTasks.push(...dequeueResult.due);
      if (dequeueResult.nextDueAt !== null)
        nextDueAt = Math.min(dequeueResult.nextDueAt, nextDueAt ?? dequeueResult.nextDueAt);
    }
    dueTasks.sort((a, b) => b.priority - a.priority || (a.dueAt ?? 0) - (b.dueAt ?? 0));
    const tasksToClaim = dueTasks.slice(0, limit);
    for (const task of dueTasks.slice(limit)) this.#rows.taskQueues.enqueue(task, task.dueAt, at);
    const claimedTasks = tasksToClaim.map((task): ClaimedTask => {
      const { isFresh } = task;
      takeOwnership(task, fence);
      return {
        run: this.#rows.toRecord(task.run),
        route: task.route,
        deliveries: task.deliveries,
        pendingMessages: task.pendingMessages,
        isFresh,
      };
    });
    return { kind: "claimed", at, tasks: claimedTasks, nextDueAt: dueTasks.length >= limit ? null : nextDueAt };
  }

  async registerWorker(worker: WorkerInfo): Promise<Fence> {
    this.#checkOpen();
    const previousRecord = this.#rows.workers.get(worker.id);
    if (previousRecord !== undefined) this.#freeTasksOf(worker.id);
    const epoch = (previousRecord?.epoch ?? 0) + 1;
    const now = this.#runtime.now();
    this.#rows.workers.set(worker.id, {
      ...worker,
      epoch,
      live: true,
      startedAt: now,
      heartbeatAt: now,
      executing: [],
      loopLagMs: null,
    });
    return { workerId: worker.id, epoch };
  }

  async heartbeat(fence: Fence, load?: WorkerLoad, schedules?: ScheduleInterest): Promise<HeartbeatResult> {
    const noSchedules = {
      nextScheduleInMs: null,
      nextStartDeadlineInMs: null,
      nextOfferInMs: null,
      scheduleSetInForce: null,
    };
    if (!this.#rows.isFenceValid(fence))
      return { isAlive: false, ownedWithMessages: [], reapedWorkerIds: [], pausedQueues: [], ...noSchedules };
    const now = this.#runtime.now();
    const currentWorker = this.#rows.workers.get(fence.workerId) as WorkerRecord;
    this.#rows.workers.set(currentWorker.id, { ...currentWorker, ...load, heartbeatAt: now });
    const reapedWorkerIds: string[] = [];
    for (const worker of this.#rows.workers.values()) {
      if (!worker.live || worker.heartbeatAt + worker.leaseMs >= now) continue;
      this.#markDead(worker);
      reapedWorkerIds.push(worker.id);
    }
    const ownedWithMessages: string[] = [];
    for (const task of this.#rows.tasks.values())
      if (task.owner === currentWorker.id && task.pendingMessages > 0) ownedWithMessages.push(task.run.id);
    return {
      isAlive: true,
      ownedWithMessages,
      reapedWorkerIds,
      pausedQueues: this.maintenance.pausedQueueNames,
      ...this.#scheduleReport(schedules),
      nextStartDeadlineInMs: this.maintenance.startDeadlines.nextInMs(),
      nextOfferInMs: this.limits.nextOfferInMs(),
    };
  }

  #scheduleReport({ app, setKey }: ScheduleInterest = { app: null, setKey: "" }) {
    const nextAt = this.schedules.nextAtNow(["", setKey]);
    return {
      nextScheduleInMs: nextAt === null ? null : nextAt - this.#clock(),
      scheduleSetInForce: app === null ? null : (this.#rows.scheduleApps.get(app)?.setKey ?? null),
    };
  }

  async deregisterWorker(fence: Fence): Promise<void> {
    const worker = this.#rows.workers.get(fence.workerId);
    if (worker !== undefined && this.#rows.isFenceValid(fence)) this.#markDead(worker);
  }

  /** Marks the worker dead before it frees the tasks, so that the worker cannot write to a freed run. */
  #markDead(worker: WorkerRecord): void {
    this.#rows.workers.set(worker.id, { ...worker, live: false, executing: [], loopLagMs: null });
    this.#freeTasksOf(worker.id);
  }

  #freeTasksOf(workerId: string): void {
    const now = this.#clock();
    this.#rows.slots.releaseWhere(({ owner }) => owner === workerId);
    for (const task of this.#rows.tasks.values()) {
      if (task.owner !== workerId) continue;
      task.owner = null;
      task.epoch = null;
      this.#rows.taskQueues.enqueue(task, now, now);
    }
    this.#hints.emit([{ kind: "ready", workflows: [] }]);
  }

  async now(): Promise<number> {
    return this.#clock();
  }

  async run(id: string): Promise<RunRecord | null> {
    const run = this.#rows.runs.get(id);
    return run === undefined ? null : this.#rows.toRecord(run);
  }

  async runsById(ids: readonly string[]): Promise<readonly RunRecord[]> {
    return ids.flatMap((id) => this.#rows.runs.get(id) ?? []).map((run) => this.#rows.toRecord(run));
  }

  async runs(filter: RunFilter): Promise<readonly RunRecord[]> {
    const { after } = filter;
    const matchingRuns: RunRecord[] = [];
    for (const run of this.#rows.runs.values()) {
      const record = this.#rows.toRecord(run);
      if (matches(record, filter) && (after === undefined || newestFirst(record, after) > 0)) matchingRuns.push(record);
    }
    return matchingRuns.sort(newestFirst).slice(0, filter.limit);
  }

  async tasks(runIds: readonly string[]): Promise<readonly TaskRecord[]> {
    return runIds
      .flatMap((id) => this.#rows.tasks.get(id) ?? [])
      .map(({ run, route, state, dueAt, owner, epoch, deliveries, pendingMessages }) => ({
        runId: run.id,
        ...publicRouteOf(route),
        state,
        dueAt: dueAt === null ? null : dueAtOf(dueAt),
        owner,
        epoch,
        deliveries,
        pendingMessages,
      }));
  }

  async ownedTasks(fence: Fence): Promise<readonly TaskRecord[]> {
    const ownedTasks = [...this.#rows.tasks.values()].filter(
      (task) => task.owner === fence.workerId && task.epoch === fence.epoch,
    );
    return this.tasks(ownedTasks.map((task) => task.run.id));
  }

  async ownedWithMessages(fence: Fence): Promise<readonly string[]> {
    return (await this.ownedTasks(fence)).flatMap((task) => (task.pendingMessages > 0 ? [task.runId] : []));
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
    return [...this.#rows.workers.values()];
  }

  async registerWorkflows(workflows: readonly WorkflowRegistration[]): Promise<void> {
    for (const { name, queue, version, signature, graph } of workflows) {
      const previousRecord = this.#rows.workflows.get(name);
      this.#rows.workflows.set(name, {
        name,
        queue: queue ?? previousRecord?.queue ?? name,
        version: version ?? previousRecord?.version ?? "",
        signature: signature ?? previousRecord?.signature ?? null,
        graph: graph ?? previousRecord?.graph ?? null,
        createdAt: previousRecord?.createdAt ?? this.#clock(),
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
    this.#isClosed = true;
  }

  #checkOpen(): void {
    if (this.#isClosed)
      throw new StoreError("The memory store is closed; connect() opens another.", { transient: false });
  }
}
