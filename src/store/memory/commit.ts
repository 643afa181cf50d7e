/**
 * Commits of the memory store: everything that can refuse a batch is checked first, then the whole batch is applied.
 */
import { baseRouteOf } from "../../core/naming/route.js";
import { startDeadlineOf } from "../../core/run/transition.js";
import type {
  Batch,
  CommitResult,
  Fence,
  Message,
  NewRun,
  RefusedStart,
  TerminalStatus,
  Transition,
} from "../contract/store.js";
import { applyKeyChange, findKeyConflict } from "./key-changes.js";
import { type MemoryRows, startKeyOf } from "./rows.js";
import type { MemoryRun, MemoryTask } from "./task.js";

type Committed = Extract<CommitResult, { kind: "committed" }>;

export class MemoryCommitter {
  readonly #rows: MemoryRows;
  #nextInboxId = 1;

  constructor(rows: MemoryRows) {
    this.#rows = rows;
  }

  /** The result that refuses the batch; null when it can be committed. */
  findRefusal(batch: Batch): CommitResult | null {
    if (batch.fence !== null && !this.#rows.isFenceValid(batch.fence)) return { kind: "fenced" };
    for (const { runId, afterSeq, events, next, drainedInboxIds } of batch.transitions) {
      const task = this.#rows.tasks.get(runId);
      const isWritable =
        task !== undefined &&
        (batch.fence === null
          ? task.state !== "owned" && task.pendingMessages === 0
          : task.owner === batch.fence.workerId && task.epoch === batch.fence.epoch);
      const logLength = this.#rows.events.get(runId)?.length ?? 0;
      if (!isWritable || (events.length > 0 && logLength !== afterSeq)) return { kind: "conflict", runId };
      if (next.kind === "finish" && this.#hasUnreadMessages(runId, drainedInboxIds))
        return { kind: "conflict", runId, hasUnreadMessages: true };
    }
    return batch.keyChange === undefined ? null : findKeyConflict(this.#rows, batch.keyChange, batch.starts);
  }

  apply(batch: Batch, at: number): Committed {
    if (batch.keyChange !== undefined) {
      applyKeyChange(this.#rows, batch.keyChange, at);
      const message = batch.keyChange.openRun?.message ?? null;
      if (message !== null) this.deliver([message], at);
    }
    const notParked: string[] = [];
    const ownedWithMessages: string[] = [];
    for (const transition of batch.transitions)
      this.#applyTransition(transition, batch.fence, at, notParked, ownedWithMessages);
    const refused = this.createRuns(batch.starts, batch.fence, at);
    return { kind: "committed", at, notParked, ownedWithMessages, refused };
  }

  #hasUnreadMessages(runId: string, drainedIds: readonly number[]): boolean {
    const rows = this.#rows.inboxes.get(runId) ?? [];
    return rows.some(({ id }) => !drainedIds.includes(id));
  }

  #applyTransition(
    transition: Transition,
    fence: Fence | null,
    at: number,
    notParked: string[],
    ownedWithMessages: string[],
  ): void {
    const task = this.#rows.tasks.get(transition.runId) as MemoryTask;
    task.isFresh = false;
    this.#appendEvents(transition, at);
    this.#drainInbox(task, transition.drainedInboxIds);
    for (const write of transition.cursors) this.#writeCursor(transition.runId, write, at);
    for (const run of transition.newChildren) if (!this.#rows.runs.has(run.id)) this.#insertRun(run, fence, at);
    this.deliver(transition.messages, at);
    for (const runId of transition.releasedChildIds) this.#makeReady(this.#rows.tasks.get(runId), at);
    const { next } = transition;
    if (next.kind === "keep") {
      if (task.pendingMessages > 0) ownedWithMessages.push(transition.runId);
      return;
    }
    const startedAt = next.startedAt === "now" ? at : next.startedAt;
    if (next.kind === "finish") {
      this.#finish(task, next.status, next.output, next.error, startedAt, at);
      task.run.waiting = String(transition.afterSeq + transition.events.length);
      if (next.releasesSlots) this.#rows.slots.releaseWhere(({ runId }) => runId === transition.runId);
      if (next.scheduleName !== undefined) this.#endScheduledRun(next.scheduleName, at);
    } else if (task.pendingMessages > 0) {
      notParked.push(transition.runId);
    } else {
      task.run.status = next.status;
      task.run.waiting = next.waiting;
      task.run.startedAt ??= startedAt;
      if (next.keepsDueTime) return;
      const dueInstants = [next.wakeAt, next.wakeInMs === null ? null : at + next.wakeInMs].filter(
        (instant) => instant !== null,
      );
      task.owner = null;
      task.epoch = null;
      task.deliveries = 0;
      task.route = next.route ?? baseRouteOf(task.route);
      if (next.releasesSlots)
        this.#rows.slots.releaseWhere(({ runId, owner }) => runId === transition.runId && owner !== null);
      task.priority = next.priority ?? task.priority;
      this.#rows.taskQueues.enqueue(task, dueInstants.length === 0 ? null : Math.min(...dueInstants), at);
    }
  }

  #appendEvents({ runId, events }: Transition, at: number): void {
    if (events.length === 0) return;
    let log = this.#rows.events.get(runId);
    if (log === undefined) this.#rows.events.set(runId, (log = []));
    for (const event of events) log.push({ ...event, seq: log.length + 1, at });
  }

  #drainInbox(task: MemoryTask, drainedIds: readonly number[]): void {
    if (drainedIds.length === 0) return;
    const rows = this.#rows.inboxes.get(task.run.id) ?? [];
    const drainedIdSet = new Set(drainedIds);
    const remainingRows = rows.filter((row) => !drainedIdSet.has(row.id));
    task.pendingMessages -= rows.length - remainingRows.length;
    this.#rows.inboxes.set(task.run.id, remainingRows);
  }

  #writeCursor(runId: string, write: Transition["cursors"][number], at: number): void {
    let rows = this.#rows.cursors.get(runId);
    if (rows === undefined) this.#rows.cursors.set(runId, (rows = new Map()));
    const previousRow = rows.get(write.node);
    rows.set(write.node, {
      node: write.node,
      cursor: write.cursor === undefined ? (previousRow?.cursor ?? null) : write.cursor,
      progress: write.progress === undefined ? (previousRow?.progress ?? null) : write.progress,
      at,
    });
  }

  #finish(
    task: MemoryTask,
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
    if (run.heroKey !== null) this.#rows.heroKeys.delete(run.heroKey);
    run.heroKey = null;
    task.revision += 1;
    this.#rows.tasks.delete(run.id);
    this.#rows.inboxes.delete(run.id);
  }

  /** Makes the schedule due, and gives it a new revision: a worker that is looking at it must look again. */
  #endScheduledRun(name: string, at: number): void {
    const row = this.#rows.schedules.get(name);
    if (row === undefined) return;
    const nextAt = Math.min(row.nextAt ?? at, at);
    this.#rows.schedules.set(name, { ...row, nextAt, revision: row.revision + 1 });
  }

  #makeReady(task: MemoryTask | undefined, at: number): void {
    if (task?.state === "parked") this.#rows.taskQueues.enqueue(task, at, at);
  }

  /** @returns the receivers that have no task */
  deliver(messages: readonly Message[], at: number): string[] {
    const undeliverable: string[] = [];
    for (const message of messages) {
      const task = this.#rows.tasks.get(message.to);
      if (task === undefined) {
        undeliverable.push(message.to);
        continue;
      }
      const rows = this.#rows.inboxes.get(message.to) ?? [];
      rows.push({ id: this.#nextInboxId++, kind: message.kind, data: message.data, at });
      this.#rows.inboxes.set(message.to, rows);
      task.pendingMessages += 1;
      this.#makeReady(task, at);
    }
    return undeliverable;
  }

  /** Creates all of these runs, or none of them if some are refused. */
  createAllRuns(starts: readonly NewRun[], at: number): RefusedStart[] {
    const { runs, tasks, startKeys, heroKeys, startDeadlines } = this.#rows;
    const newIds = new Set(starts.map(({ id }) => id).filter((id) => !runs.has(id)));
    const refused = this.createRuns(starts, null, at);
    if (refused.length === 0) return refused;
    for (const id of newIds) {
      const run = runs.get(id);
      const task = tasks.get(id);
      if (run === undefined || task === undefined) continue;
      // The entry in the queue of due tasks is not valid any more.
      task.revision += 1;
      tasks.delete(id);
      runs.delete(id);
      startDeadlines.delete(id);
      if (run.startKey !== null) startKeys.delete(startKeyOf(run));
      if (run.heroKey !== null) heroKeys.delete(run.heroKey);
    }
    return refused;
  }

  #refusalOf(run: NewRun): RefusedStart | null {
    const startKeyHolder = run.startKey === null ? undefined : this.#rows.startKeys.get(startKeyOf(run));
    const heroKeyHolder = run.heroKey === null ? undefined : this.#rows.heroKeys.get(run.heroKey);
    const keyHolder = startKeyHolder ?? heroKeyHolder;
    if (keyHolder === undefined) return null;
    return {
      runId: run.id,
      reason: startKeyHolder ? "startKey" : "heroKey",
      existing: this.#rows.toRecord(keyHolder),
    };
  }

  createRuns(starts: readonly NewRun[], fence: Fence | null, at: number): RefusedStart[] {
    const refused: RefusedStart[] = [];
    for (const run of starts) {
      if (this.#rows.runs.has(run.id)) continue;
      const refusal = this.#refusalOf(run);
      if (refusal === null) this.#insertRun(run, fence, at);
      else refused.push(refusal);
    }
    return refused;
  }

  #insertRun(newRun: NewRun, fence: Fence | null, at: number): void {
    const { due, startBy: _startBy, runClass, route: baseRoute = newRun.workflow, ...spec } = newRun;
    const route = runClass?.id ?? baseRoute;
    if (runClass !== undefined) this.#rows.classes.create(runClass, at);
    const deadline = startDeadlineOf(newRun, at);
    if (deadline !== null) this.#rows.startDeadlines.set(newRun.id, deadline);
    const initialFields = {
      status: "pending" as const,
      output: null,
      error: null,
      waiting: null,
      startedAt: null,
      finishedAt: null,
    };
    const run: MemoryRun = { ...spec, ...initialFields, createdAt: at };
    this.#rows.runs.set(run.id, run);
    if (run.startKey !== null) this.#rows.startKeys.set(startKeyOf(run), run);
    if (run.heroKey !== null) this.#rows.heroKeys.set(run.heroKey, run);
    const task: MemoryTask = {
      run,
      route,
      priority: run.priority,
      state: "parked",
      dueAt: null,
      owner: null,
      epoch: null,
      deliveries: 0,
      pendingMessages: 0,
      isFresh: true,
      revision: 0,
      order: this.#rows.nextOrder(),
    };
    this.#rows.tasks.set(run.id, task);
    if (due.kind === "owned") takeOwnership(task, fence as Fence);
    else if (due.kind === "now") this.#rows.taskQueues.enqueue(task, at, at);
    else if (due.kind === "at") this.#rows.taskQueues.enqueue(task, due.ms, at);
    else if (due.kind === "in") this.#rows.taskQueues.enqueue(task, at + due.ms, at);
  }
}

/** Makes the worker the owner of the task and adds one to the task's deliveries. */
export function takeOwnership(task: MemoryTask, fence: Fence): void {
  task.state = "owned";
  task.owner = fence.workerId;
  task.epoch = fence.epoch;
  task.deliveries += 1;
  task.isFresh = false;
  task.revision += 1;
}
