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
  NewRun,
  Refusal,
  RunFilter,
  RunRecord,
  Store,
  StoredEvent,
  StoreOptions,
  StoreTransaction,
  TaskRecord,
  TerminalStatus,
  Transition,
  WorkerInfo,
  WorkerRecord,
  WorkflowRecord,
  WorkflowRegistration,
} from "../contract/store.js";
import { HintEmitter, hintsOf, hintsOfMail } from "../shared/hint-emitter.js";
import { matches, newestFirst } from "./filter.js";
import { noSql } from "./no-sql.js";
import type { Run, Task } from "./task.js";
import { Shelves } from "./task-queues.js";
import { MemoryUpkeep } from "./upkeep.js";

export class MemoryStore implements Store {
  #closed = false;
  /** There are no others. */
  readonly hearsOthers = true;
  readonly description = "memory";
  readonly #clock: () => number;
  readonly #runtime: Runtime;
  readonly #hints = new HintEmitter();
  readonly #runs = new Map<string, Run>();
  readonly #tasks = new Map<string, Task>();
  readonly #events = new Map<string, StoredEvent[]>();
  readonly #inboxes = new Map<string, InboxRow[]>();
  readonly #cursors = new Map<string, Map<string, CursorRow>>();
  readonly #workers = new Map<string, Omit<WorkerRecord, "owned">>();
  readonly #workflows = new Map<string, WorkflowRecord>();
  readonly #startKeys = new Map<string, Run>();
  readonly #heroKeys = new Map<string, Run>();
  readonly #shelves = new Shelves();
  readonly upkeep: MemoryUpkeep;
  #nextInboxId = 1;

  constructor(options: Pick<StoreOptions, "clock" | "runtime"> = {}) {
    const runtime = options.runtime ?? systemRuntime;
    this.#runtime = runtime;
    this.#clock = options.clock ?? (() => runtime.now());
    this.upkeep = new MemoryUpkeep({
      runs: this.#runs,
      tasks: this.#tasks,
      events: this.#events,
      inboxes: this.#inboxes,
      cursors: this.#cursors,
      workers: this.#workers,
      workflows: this.#workflows,
      forgetStartKey: (run) => void (run.startKey !== null && this.#startKeys.delete(startKeyOf(run))),
      clock: this.#clock,
      hints: this.#hints,
    });
  }

  async migrate(): Promise<void> {}

  async pendingMigrations(): Promise<readonly number[]> {
    return [];
  }

  async commit(batch: Batch): Promise<CommitResult> {
    this.#checkOpen();
    const refusal = this.#refuses(batch);
    if (refusal !== null) return refusal;
    const at = this.#clock();
    const kept: string[] = [];
    const mailed: string[] = [];
    for (const transition of batch.transitions) this.#apply(transition, batch.fence, at, kept, mailed);
    const refused = this.#startAll(batch.starts, batch.fence, at);
    const result: CommitResult = { kind: "committed", at, kept, mailed, refused };
    this.#hints.emit(hintsOf(batch, result));
    return result;
  }

  #refuses(batch: Batch): CommitResult | null {
    if (batch.fence !== null && !this.#holds(batch.fence)) return { kind: "fenced" };
    for (const { runId, after, events, next, drained } of batch.transitions) {
      const task = this.#tasks.get(runId);
      const mine =
        task !== undefined &&
        (batch.fence === null
          ? task.state !== "owned" && task.mail === 0
          : task.owner === batch.fence.workerId && task.epoch === batch.fence.epoch);
      const position = this.#events.get(runId)?.length ?? 0;
      if (!mine || (events.length > 0 && position !== after)) return { kind: "conflict", runId };
      if (next.kind === "finish" && this.#unread(runId, drained)) return { kind: "conflict", runId, unread: true };
    }
    return null;
  }

  #unread(runId: string, drained: readonly number[]): boolean {
    const rows = this.#inboxes.get(runId) ?? [];
    return rows.some(({ id }) => !drained.includes(id));
  }

  #apply(transition: Transition, fence: Fence | null, at: number, kept: string[], mailed: string[]): void {
    const task = this.#tasks.get(transition.runId) as Task;
    task.fresh = false;
    this.#append(transition, at);
    this.#drain(task, transition.drained);
    for (const write of transition.cursors) this.#writeCursor(transition.runId, write, at);
    for (const run of transition.starts) if (!this.#runs.has(run.id)) this.#insert(run, fence, at);
    this.#deliver(transition.mail, at);
    for (const runId of transition.release) this.#makeReady(this.#tasks.get(runId), at);
    const { next } = transition;
    if (next.kind === "keep") {
      if (task.mail > 0) mailed.push(transition.runId);
      return;
    }
    const startedAt = next.startedAt === "now" ? at : next.startedAt;
    if (next.kind === "finish") {
      this.#finish(task, next.status, next.output, next.error, startedAt, at);
      task.run.waiting = String(transition.after + transition.events.length);
    } else if (task.mail > 0) {
      kept.push(transition.runId);
    } else {
      task.run.status = next.status;
      task.run.waiting = next.waiting;
      task.run.startedAt ??= startedAt;
      if (next.keepsDue) return;
      const due = [next.wakeAt, next.wakeIn === null ? null : at + next.wakeIn].filter((instant) => instant !== null);
      task.owner = null;
      task.epoch = null;
      task.deliveries = 0;
      task.route = next.route ?? task.route;
      task.priority = next.priority ?? task.priority;
      this.#shelves.put(task, due.length === 0 ? null : Math.min(...due), at);
    }
  }

  #append({ runId, events }: Transition, at: number): void {
    if (events.length === 0) return;
    let log = this.#events.get(runId);
    if (log === undefined) this.#events.set(runId, (log = []));
    for (const event of events) log.push({ ...event, seq: log.length + 1, at });
  }

  #drain(task: Task, drained: readonly number[]): void {
    if (drained.length === 0) return;
    const rows = this.#inboxes.get(task.run.id) ?? [];
    const ids = new Set(drained);
    const left = rows.filter((row) => !ids.has(row.id));
    task.mail -= rows.length - left.length;
    this.#inboxes.set(task.run.id, left);
  }

  #writeCursor(runId: string, write: Transition["cursors"][number], at: number): void {
    let rows = this.#cursors.get(runId);
    if (rows === undefined) this.#cursors.set(runId, (rows = new Map()));
    const old = rows.get(write.node);
    rows.set(write.node, {
      node: write.node,
      cursor: write.cursor === undefined ? (old?.cursor ?? null) : write.cursor,
      progress: write.progress === undefined ? (old?.progress ?? null) : write.progress,
      at,
    });
  }

  #finish(
    task: Task,
    status: TerminalStatus,
    output: string | null,
    error: string | null,
    startedAt: number | null,
    at: number,
  ): void {
    const { run } = task;
    run.status = status;
    run.output = output;
    run.error = error;
    run.waiting = null;
    run.startedAt ??= startedAt;
    run.finishedAt = at;
    if (run.heroKey !== null) this.#heroKeys.delete(run.heroKey);
    run.heroKey = null;
    task.stamp += 1;
    this.#tasks.delete(run.id);
    this.#inboxes.delete(run.id);
  }

  #makeReady(task: Task | undefined, at: number): void {
    if (task?.state === "parked") this.#shelves.put(task, at, at);
  }

  #deliver(mail: readonly Mail[], at: number): string[] {
    const undeliverable: string[] = [];
    for (const message of mail) {
      const task = this.#tasks.get(message.to);
      if (task === undefined) {
        undeliverable.push(message.to);
        continue;
      }
      const rows = this.#inboxes.get(message.to) ?? [];
      rows.push({ id: this.#nextInboxId++, kind: message.kind, data: message.data, at });
      this.#inboxes.set(message.to, rows);
      task.mail += 1;
      this.#makeReady(task, at);
    }
    return undeliverable;
  }

  #startAll(starts: readonly NewRun[], fence: Fence | null, at: number): Refusal[] {
    const refused: Refusal[] = [];
    for (const run of starts) {
      if (this.#runs.has(run.id)) continue;
      const byKey = run.startKey === null ? undefined : this.#startKeys.get(startKeyOf(run));
      const byHero = run.heroKey === null ? undefined : this.#heroKeys.get(run.heroKey);
      const existing = byKey ?? byHero;
      if (existing === undefined) this.#insert(run, fence, at);
      else refused.push({ runId: run.id, reason: byKey ? "startKey" : "heroKey", existing: this.#record(existing) });
    }
    return refused;
  }

  #insert(born: NewRun, fence: Fence | null, at: number): void {
    const { due, route = born.workflow, ...birth } = born;
    const blank = {
      status: "pending" as const,
      output: null,
      error: null,
      waiting: null,
      startedAt: null,
      finishedAt: null,
    };
    const run: Run = { ...birth, ...blank, createdAt: at };
    this.#runs.set(run.id, run);
    if (run.startKey !== null) this.#startKeys.set(startKeyOf(run), run);
    if (run.heroKey !== null) this.#heroKeys.set(run.heroKey, run);
    const task: Task = {
      run,
      route,
      priority: run.priority,
      state: "parked",
      dueAt: null,
      owner: null,
      epoch: null,
      deliveries: 0,
      mail: 0,
      fresh: true,
      stamp: 0,
    };
    this.#tasks.set(run.id, task);
    if (due.kind === "owned") this.#own(task, fence as Fence);
    else if (due.kind === "now") this.#shelves.put(task, at, at);
    else if (due.kind === "at") this.#shelves.put(task, due.ms, at);
    else if (due.kind === "in") this.#shelves.put(task, at + due.ms, at);
  }

  #own(task: Task, fence: Fence): void {
    task.state = "owned";
    task.owner = fence.workerId;
    task.epoch = fence.epoch;
    task.deliveries += 1;
    task.fresh = false;
    task.stamp += 1;
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
    const undeliverable = this.#deliver(mail, this.#clock());
    this.#hints.emit(hintsOfMail(mail));
    return { undeliverable };
  }

  /** There is nothing to roll back, and nothing to write with: a body that leaves `tx` alone is a step like any other. */
  async begin(): Promise<StoreTransaction> {
    return { handle: noSql, commit: (batch) => this.commit(batch), rollback: async () => {} };
  }

  async claim({ fence, routes, limit, limitPerRoute }: ClaimRequest): Promise<ClaimResult> {
    if (!this.#holds(fence)) return { kind: "fenced" };
    const at = this.#clock();
    const due: Task[] = [];
    let nextDueAt: number | null = null;
    for (const route of routes) {
      const found = this.#shelves.take(route, at, limitPerRoute);
      due.push(...found.due);
      if (found.nextDueAt !== null) nextDueAt = Math.min(found.nextDueAt, nextDueAt ?? found.nextDueAt);
    }
    due.sort((a, b) => b.priority - a.priority || (a.dueAt ?? 0) - (b.dueAt ?? 0));
    const tasks = due.slice(0, limit);
    for (const task of due.slice(limit)) this.#shelves.put(task, task.dueAt, at);
    const claimed = tasks.map((task): Claimed => {
      const { fresh } = task;
      this.#own(task, fence);
      return { run: this.#record(task.run), deliveries: task.deliveries, mail: task.mail, fresh };
    });
    return { kind: "claimed", at, tasks: claimed, nextDueAt: due.length >= limit ? null : nextDueAt };
  }

  async enlist(worker: WorkerInfo): Promise<Fence> {
    this.#checkOpen();
    const old = this.#workers.get(worker.id);
    if (old !== undefined) this.#freeTasksOf(worker.id);
    const epoch = (old?.epoch ?? 0) + 1;
    const now = this.#runtime.now();
    this.#workers.set(worker.id, { ...worker, epoch, live: true, startedAt: now, beatAt: now });
    return { workerId: worker.id, epoch };
  }

  async beat(fence: Fence): Promise<BeatResult> {
    if (!this.#holds(fence)) return { alive: false, mail: [], reaped: [], pausedQueues: [] };
    const now = this.#runtime.now();
    const me = this.#workers.get(fence.workerId) as Omit<WorkerRecord, "owned">;
    this.#workers.set(me.id, { ...me, beatAt: now });
    const reaped: string[] = [];
    for (const worker of this.#workers.values()) {
      if (!worker.live || worker.beatAt + worker.leaseMs >= now) continue;
      this.#bury(worker);
      reaped.push(worker.id);
    }
    const mail: string[] = [];
    for (const task of this.#tasks.values()) if (task.owner === me.id && task.mail > 0) mail.push(task.run.id);
    return { alive: true, mail, reaped, pausedQueues: this.upkeep.pausedNames };
  }

  async retire(fence: Fence): Promise<void> {
    const worker = this.#workers.get(fence.workerId);
    if (worker !== undefined && this.#holds(fence)) this.#bury(worker);
  }

  /** Dead first, then its tasks are freed: in between it can no longer write. */
  #bury(worker: Omit<WorkerRecord, "owned">): void {
    this.#workers.set(worker.id, { ...worker, live: false });
    this.#freeTasksOf(worker.id);
  }

  #freeTasksOf(workerId: string): void {
    const now = this.#clock();
    for (const task of this.#tasks.values()) {
      if (task.owner !== workerId) continue;
      task.owner = null;
      task.epoch = null;
      this.#shelves.put(task, now, now);
    }
    this.#hints.emit([{ kind: "ready", workflows: [] }]);
  }

  #holds(fence: Fence): boolean {
    const worker = this.#workers.get(fence.workerId);
    return worker?.live === true && worker.epoch === fence.epoch;
  }

  async now(): Promise<number> {
    return this.#clock();
  }

  async run(id: string): Promise<RunRecord | null> {
    const run = this.#runs.get(id);
    return run === undefined ? null : this.#record(run);
  }

  async runsById(ids: readonly string[]): Promise<readonly RunRecord[]> {
    return ids.flatMap((id) => this.#runs.get(id) ?? []).map((run) => this.#record(run));
  }

  async runs(filter: RunFilter): Promise<readonly RunRecord[]> {
    const { after } = filter;
    const matching: RunRecord[] = [];
    for (const run of this.#runs.values()) {
      const record = this.#record(run);
      if (matches(record, filter) && (after === undefined || newestFirst(record, after) > 0)) matching.push(record);
    }
    return matching.sort(newestFirst).slice(0, filter.limit);
  }

  async tasks(runIds: readonly string[]): Promise<readonly TaskRecord[]> {
    return runIds
      .flatMap((id) => this.#tasks.get(id) ?? [])
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
    const mine = [...this.#tasks.values()].filter(
      (task) => task.owner === fence.workerId && task.epoch === fence.epoch,
    );
    return this.tasks(mine.map((task) => task.run.id));
  }

  async mailed(fence: Fence): Promise<readonly string[]> {
    return (await this.owned(fence)).flatMap((task) => (task.mail > 0 ? [task.runId] : []));
  }

  async log(runId: string, page: { readonly after: number; readonly limit: number }): Promise<readonly StoredEvent[]> {
    return (this.#events.get(runId) ?? []).slice(page.after, page.after + page.limit);
  }

  async logs(runIds: readonly string[]): Promise<ReadonlyMap<string, readonly StoredEvent[]>> {
    return new Map(runIds.map((id) => [id, [...(this.#events.get(id) ?? [])]]));
  }

  async inbox(runIds: readonly string[]): Promise<ReadonlyMap<string, readonly InboxRow[]>> {
    return new Map(runIds.map((id) => [id, [...(this.#inboxes.get(id) ?? [])]]));
  }

  async cursors(runId: string): Promise<readonly CursorRow[]> {
    return [...(this.#cursors.get(runId)?.values() ?? [])];
  }

  async workers(): Promise<readonly WorkerRecord[]> {
    const owned = new Map<string, number>();
    for (const { owner } of this.#tasks.values()) if (owner !== null) owned.set(owner, (owned.get(owner) ?? 0) + 1);
    return [...this.#workers.values()].map((worker) => ({ ...worker, owned: owned.get(worker.id) ?? 0 }));
  }

  async registerWorkflows(workflows: readonly WorkflowRegistration[]): Promise<void> {
    for (const { name, queue, version, signature, graph } of workflows) {
      const old = this.#workflows.get(name);
      this.#workflows.set(name, {
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
    return this.#workflows.get(name) ?? null;
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

  #record(run: Run): RunRecord {
    const { heroKey: _, ...record } = run;
    return { ...record, status: this.#tasks.get(run.id)?.state === "owned" ? "running" : run.status };
  }
}

const startKeyOf = (run: { readonly workflow: string; readonly startKey: string | null }) =>
  `${run.workflow}\u0000${run.startKey}`;
