/** The maintenance of the memory store. It reads and changes the store's own maps. */

import { dueAtOf } from "../../core/limits/order.js";
import { baseRouteOf } from "../../core/naming/route.js";
import type {
  AgePosition,
  ChildKey,
  ChildRun,
  Maintenance,
  PausedQueue,
  RootRun,
  RootRunsPage,
  RouteBacklog,
  RunSample,
  WaitingParent,
  WorkerRoutes,
} from "../contract/maintenance.js";
import type { DatabaseSize } from "../contract/size.js";
import type { WorkflowRecord } from "../contract/store.js";
import type { HintEmitter } from "../shared/hint-emitter.js";
import { MemoryAudit } from "./audit.js";
import { MemoryGatherings } from "./gatherings.js";
import type { MemoryLimits } from "./limits.js";
import { MemoryQuestions } from "./questions.js";
import { type MemoryRows, startKeyOf } from "./rows.js";
import { sizeOf } from "./size.js";
import { MemoryStartDeadlines } from "./start-deadlines.js";
import type { MemoryTask } from "./task.js";

export class MemoryMaintenance implements Maintenance {
  readonly audit: MemoryAudit;
  readonly questions: MemoryQuestions;
  readonly startDeadlines: MemoryStartDeadlines;
  readonly #rows: MemoryRows;
  readonly #clock: () => number;
  readonly #hints: HintEmitter;
  readonly #limits: MemoryLimits;
  readonly #pausedQueues = new Map<string, PausedQueue>();

  constructor(rows: MemoryRows, clock: () => number, hints: HintEmitter, limits: MemoryLimits) {
    this.#rows = rows;
    this.#limits = limits;
    this.#clock = clock;
    this.#hints = hints;
    this.audit = new MemoryAudit(rows);
    this.questions = new MemoryQuestions(rows, clock);
    this.startDeadlines = new MemoryStartDeadlines(rows, clock);
  }

  async rootRuns({ createdBefore, workflow, after, limit }: RootRunsPage): Promise<readonly RootRun[]> {
    return [...this.#rows.runs.values()]
      .filter(
        (run) =>
          run.parentId === null &&
          run.createdAt < createdBefore &&
          (workflow === null || run.workflow === workflow) &&
          (after === null || oldestFirst(run, after) > 0),
      )
      .sort(oldestFirst)
      .slice(0, limit)
      .map(({ id, createdAt, finishedAt, status }) => ({ id, createdAt, finishedAt, hasFailed: status === "failed" }));
  }

  async childRuns(
    parentIds: readonly string[],
    { after, limit }: { readonly after: ChildKey | null; readonly limit: number },
  ): Promise<readonly ChildRun[]> {
    const parentIdSet = new Set(parentIds);
    const matchingChildren: ChildRun[] = [];
    for (const { id, parentId, finishedAt, status } of this.#rows.runs.values()) {
      if (parentId !== null && parentIdSet.has(parentId))
        matchingChildren.push({ parentId, id, finishedAt, hasFailed: status === "failed" });
    }
    const remainingChildren =
      after === null ? matchingChildren : matchingChildren.filter((child) => byParent(child, after) > 0);
    return remainingChildren.sort(byParent).slice(0, limit);
  }

  async deleteRuns(runIds: readonly string[]): Promise<number> {
    let deletedCount = 0;
    for (const id of runIds) {
      const run = this.#rows.runs.get(id);
      if (run === undefined || run.finishedAt === null) continue;
      deletedCount += 1;
      this.#rows.events.delete(id);
      this.#rows.inboxes.delete(id);
      this.#rows.cursors.delete(id);
      this.#rows.startDeadlines.delete(id);
      if (run.startKey !== null) this.#rows.startKeys.delete(startKeyOf(run));
      MemoryGatherings.forget(this.#rows, run);
      this.#rows.runs.delete(id);
    }
    return deletedCount;
  }

  async expiredWorkers({ lastHeartbeatBefore }: { readonly lastHeartbeatBefore: number }): Promise<readonly string[]> {
    const expiredWorkers = [...this.#rows.workers.values()].filter(
      ({ live, heartbeatAt }) => live && heartbeatAt < lastHeartbeatBefore,
    );
    return expiredWorkers.map(({ id }) => id).sort();
  }

  async deleteDeadWorkers({
    lastHeartbeatBefore,
  }: {
    readonly lastHeartbeatBefore: number;
  }): Promise<readonly string[]> {
    const owners = new Set([...this.#rows.tasks.values()].map(({ owner }) => owner));
    const deletedWorkers = [...this.#rows.workers.values()].filter(
      ({ id, live, heartbeatAt }) => !live && heartbeatAt < lastHeartbeatBefore && !owners.has(id),
    );
    for (const { id } of deletedWorkers) this.#rows.workers.delete(id);
    return deletedWorkers.map(({ name }) => name);
  }

  async workerRoutes(): Promise<readonly WorkerRoutes[]> {
    return [...this.#rows.workers.values()].map(({ routes, live, heartbeatAt, leaseMs }) => ({
      routes,
      live,
      heartbeatAt,
      leaseMs,
    }));
  }

  async parentsWaitingFor(routes: readonly string[], limit: number): Promise<readonly WaitingParent[]> {
    const requestedRoutes = new Set(routes);
    const parentsByKey = new Map<string, WaitingParent>();
    for (const task of this.#rows.tasks.values()) {
      const { parentId } = task.run;
      if (!requestedRoutes.has(task.route) || parentId === null || !this.#isDue(task)) continue;
      if (this.#rows.runs.get(parentId)?.status === "paused" || this.#rows.tasks.get(parentId)?.pendingMessages !== 0)
        continue;
      parentsByKey.set(`${parentId} ${task.route}`, { parentId, route: task.route });
    }
    return [...parentsByKey.keys()]
      .sort()
      .slice(0, limit)
      .map((key) => parentsByKey.get(key) as WaitingParent);
  }

  #isDue({ state, dueAt }: MemoryTask): boolean {
    return state === "ready" || (state === "parked" && dueAt !== null && dueAt <= this.#clock());
  }

  async runSamples(
    workflow: string,
    { since, limit }: { readonly since: number; readonly limit: number },
  ): Promise<readonly RunSample[]> {
    return [...this.#rows.runs.values()]
      .filter((run) => run.workflow === workflow && run.createdAt >= since)
      .sort((a, b) => oldestFirst(b, a))
      .slice(0, limit)
      .map(({ id, status, createdAt, startedAt, finishedAt }) => ({
        status: this.#rows.tasks.get(id)?.state === "owned" ? "running" : status,
        createdAt,
        startedAt,
        finishedAt,
      }));
  }

  async backlog({ cap }: { readonly cap: number }): Promise<readonly RouteBacklog[]> {
    const groups = new Map<string, MemoryTask[]>();
    for (const task of this.#rows.tasks.values()) {
      if (!this.#isDue(task)) continue;
      const key = `${baseRouteOf(task.route)}\u0000${task.run.version}`;
      groups.set(key, [...(groups.get(key) ?? []), task]);
    }
    return [...groups.entries()].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, tasks]) => this.#backlogOf(tasks, cap));
  }

  #backlogOf(tasks: readonly MemoryTask[], cap: number): RouteBacklog {
    const [{ route, run }] = tasks as [MemoryTask];
    const readyCount = tasks.filter(({ state }) => state === "ready").length;
    const counts = [readyCount, tasks.length - readyCount];
    return {
      route: baseRouteOf(route),
      version: run.version,
      dueCount: counts.reduce((sum, count) => sum + Math.min(count, cap), 0),
      isCapped: counts.some((count) => count > cap),
      oldestDueAt: Math.min(...tasks.map(({ dueAt }) => (dueAt === null ? this.#clock() : dueAtOf(dueAt)))),
    };
  }

  async ownedTaskCounts(workerIds: readonly string[]): Promise<ReadonlyMap<string, number>> {
    const counts = new Map<string, number>();
    for (const { owner } of this.#rows.tasks.values())
      if (owner !== null && workerIds.includes(owner)) counts.set(owner, (counts.get(owner) ?? 0) + 1);
    return counts;
  }

  async workflows(): Promise<readonly WorkflowRecord[]> {
    return [...this.#rows.workflows.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  async size({ cap }: { readonly cap: number }): Promise<DatabaseSize> {
    const others = { queues: this.#pausedQueues.size, figures: this.questions.figureCount, ...this.#limits.rowCounts };
    return sizeOf(this.#rows, others, cap);
  }

  async pausedQueues(): Promise<readonly PausedQueue[]> {
    return [...this.#pausedQueues.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  get pausedQueueNames(): readonly string[] {
    return [...this.#pausedQueues.keys()].sort();
  }

  async pauseQueue(name: string, reason: string | null, by: string | null): Promise<void> {
    const pausedAt = this.#pausedQueues.get(name)?.pausedAt ?? this.#clock();
    this.#pausedQueues.set(name, { name, pausedAt, reason, by });
    this.#hints.emit([{ kind: "anything" }]);
  }

  async resumeQueue(name: string): Promise<void> {
    this.#pausedQueues.delete(name);
    this.#hints.emit([{ kind: "anything" }]);
  }
}

const oldestFirst = (a: AgePosition, b: AgePosition) => a.createdAt - b.createdAt || compare(a.id, b.id);
const byParent = (a: ChildKey, b: ChildKey) => compare(a.parentId, b.parentId) || compare(a.id, b.id);
const compare = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);
