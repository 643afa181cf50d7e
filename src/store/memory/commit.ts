/** What a commit does to the rows of the memory store: what can be refused is checked first, then everything is applied. */
import type {
  Batch,
  CommitResult,
  Fence,
  Mail,
  NewRun,
  Refusal,
  TerminalStatus,
  Transition,
} from "../contract/store.js";
import { type MemoryRows, startKeyOf } from "./rows.js";
import type { Run, Task } from "./task.js";

type Committed = Extract<CommitResult, { kind: "committed" }>;

export class MemoryCommits {
  readonly #rows: MemoryRows;
  #nextInboxId = 1;

  constructor(rows: MemoryRows) {
    this.#rows = rows;
  }

  /** Why the batch cannot be committed; null when it can. */
  refuses(batch: Batch): CommitResult | null {
    if (batch.fence !== null && !this.#rows.holds(batch.fence)) return { kind: "fenced" };
    for (const { runId, after, events, next, drained } of batch.transitions) {
      const task = this.#rows.tasks.get(runId);
      const mine =
        task !== undefined &&
        (batch.fence === null
          ? task.state !== "owned" && task.mail === 0
          : task.owner === batch.fence.workerId && task.epoch === batch.fence.epoch);
      const position = this.#rows.events.get(runId)?.length ?? 0;
      if (!mine || (events.length > 0 && position !== after)) return { kind: "conflict", runId };
      if (next.kind === "finish" && this.#unread(runId, drained)) return { kind: "conflict", runId, unread: true };
    }
    return null;
  }

  apply(batch: Batch, at: number): Committed {
    const kept: string[] = [];
    const mailed: string[] = [];
    for (const transition of batch.transitions) this.#transition(transition, batch.fence, at, kept, mailed);
    const refused = this.#startAll(batch.starts, batch.fence, at);
    return { kind: "committed", at, kept, mailed, refused };
  }

  #unread(runId: string, drained: readonly number[]): boolean {
    const rows = this.#rows.inboxes.get(runId) ?? [];
    return rows.some(({ id }) => !drained.includes(id));
  }

  #transition(transition: Transition, fence: Fence | null, at: number, kept: string[], mailed: string[]): void {
    const task = this.#rows.tasks.get(transition.runId) as Task;
    task.fresh = false;
    this.#append(transition, at);
    this.#drain(task, transition.drained);
    for (const write of transition.cursors) this.#writeCursor(transition.runId, write, at);
    for (const run of transition.starts) if (!this.#rows.runs.has(run.id)) this.#insert(run, fence, at);
    this.deliver(transition.mail, at);
    for (const runId of transition.release) this.#makeReady(this.#rows.tasks.get(runId), at);
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
      this.#rows.shelves.put(task, due.length === 0 ? null : Math.min(...due), at);
    }
  }

  #append({ runId, events }: Transition, at: number): void {
    if (events.length === 0) return;
    let log = this.#rows.events.get(runId);
    if (log === undefined) this.#rows.events.set(runId, (log = []));
    for (const event of events) log.push({ ...event, seq: log.length + 1, at });
  }

  #drain(task: Task, drained: readonly number[]): void {
    if (drained.length === 0) return;
    const rows = this.#rows.inboxes.get(task.run.id) ?? [];
    const ids = new Set(drained);
    const left = rows.filter((row) => !ids.has(row.id));
    task.mail -= rows.length - left.length;
    this.#rows.inboxes.set(task.run.id, left);
  }

  #writeCursor(runId: string, write: Transition["cursors"][number], at: number): void {
    let rows = this.#rows.cursors.get(runId);
    if (rows === undefined) this.#rows.cursors.set(runId, (rows = new Map()));
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
    if (run.heroKey !== null) this.#rows.heroKeys.delete(run.heroKey);
    run.heroKey = null;
    task.stamp += 1;
    this.#rows.tasks.delete(run.id);
    this.#rows.inboxes.delete(run.id);
  }

  #makeReady(task: Task | undefined, at: number): void {
    if (task?.state === "parked") this.#rows.shelves.put(task, at, at);
  }

  /** @returns the runs that have no inbox any more */
  deliver(mail: readonly Mail[], at: number): string[] {
    const undeliverable: string[] = [];
    for (const message of mail) {
      const task = this.#rows.tasks.get(message.to);
      if (task === undefined) {
        undeliverable.push(message.to);
        continue;
      }
      const rows = this.#rows.inboxes.get(message.to) ?? [];
      rows.push({ id: this.#nextInboxId++, kind: message.kind, data: message.data, at });
      this.#rows.inboxes.set(message.to, rows);
      task.mail += 1;
      this.#makeReady(task, at);
    }
    return undeliverable;
  }

  #startAll(starts: readonly NewRun[], fence: Fence | null, at: number): Refusal[] {
    const refused: Refusal[] = [];
    for (const run of starts) {
      if (this.#rows.runs.has(run.id)) continue;
      const byKey = run.startKey === null ? undefined : this.#rows.startKeys.get(startKeyOf(run));
      const byHero = run.heroKey === null ? undefined : this.#rows.heroKeys.get(run.heroKey);
      const existing = byKey ?? byHero;
      if (existing === undefined) this.#insert(run, fence, at);
      else
        refused.push({ runId: run.id, reason: byKey ? "startKey" : "heroKey", existing: this.#rows.record(existing) });
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
    this.#rows.runs.set(run.id, run);
    if (run.startKey !== null) this.#rows.startKeys.set(startKeyOf(run), run);
    if (run.heroKey !== null) this.#rows.heroKeys.set(run.heroKey, run);
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
    this.#rows.tasks.set(run.id, task);
    if (due.kind === "owned") own(task, fence as Fence);
    else if (due.kind === "now") this.#rows.shelves.put(task, at, at);
    else if (due.kind === "at") this.#rows.shelves.put(task, due.ms, at);
    else if (due.kind === "in") this.#rows.shelves.put(task, at + due.ms, at);
  }
}

/** The task belongs to this worker, by one more delivery. */
export function own(task: Task, fence: Fence): void {
  task.state = "owned";
  task.owner = fence.workerId;
  task.epoch = fence.epoch;
  task.deliveries += 1;
  task.fresh = false;
  task.stamp += 1;
}
