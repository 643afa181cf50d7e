/** Upkeep of the memory store, on the rows that it shares with it. */

import type {
  Age,
  Backlog,
  Child,
  ChildKey,
  Executing,
  PausedQueue,
  Root,
  RootsPage,
  RunSample,
  Upkeep,
  WaitingParent,
  WorkerRoutes,
} from "../contract/maintenance.js";
import type { WorkflowRecord } from "../contract/store.js";
import type { HintEmitter } from "../shared/hint-emitter.js";
import { MemoryAudit } from "./audit.js";
import { type MemoryRows, startKeyOf } from "./rows.js";
import type { Task } from "./task.js";

export class MemoryUpkeep implements Upkeep {
  readonly audit: MemoryAudit;
  readonly #rows: MemoryRows;
  readonly #clock: () => number;
  readonly #hints: HintEmitter;
  readonly #paused = new Map<string, PausedQueue>();

  constructor(rows: MemoryRows, clock: () => number, hints: HintEmitter) {
    this.#rows = rows;
    this.#clock = clock;
    this.#hints = hints;
    this.audit = new MemoryAudit(rows);
  }

  async roots({ bornBefore, workflow, after, limit }: RootsPage): Promise<readonly Root[]> {
    return [...this.#rows.runs.values()]
      .filter(
        (run) =>
          run.parentId === null &&
          run.createdAt < bornBefore &&
          (workflow === null || run.workflow === workflow) &&
          (after === null || oldestFirst(run, after) > 0),
      )
      .sort(oldestFirst)
      .slice(0, limit)
      .map(({ id, createdAt, finishedAt, status }) => ({ id, createdAt, finishedAt, hasFailed: status === "failed" }));
  }

  async children(
    parentIds: readonly string[],
    { after, limit }: { readonly after: ChildKey | null; readonly limit: number },
  ): Promise<readonly Child[]> {
    const parents = new Set(parentIds);
    const found: Child[] = [];
    for (const { id, parentId, finishedAt, status } of this.#rows.runs.values()) {
      if (parentId !== null && parents.has(parentId))
        found.push({ parentId, id, finishedAt, hasFailed: status === "failed" });
    }
    const left = after === null ? found : found.filter((child) => byParent(child, after) > 0);
    return left.sort(byParent).slice(0, limit);
  }

  async remove(runIds: readonly string[]): Promise<number> {
    let removed = 0;
    for (const id of runIds) {
      const run = this.#rows.runs.get(id);
      if (run === undefined || run.finishedAt === null) continue;
      removed += 1;
      this.#rows.events.delete(id);
      this.#rows.inboxes.delete(id);
      this.#rows.cursors.delete(id);
      if (run.startKey !== null) this.#rows.startKeys.delete(startKeyOf(run));
      this.#rows.runs.delete(id);
    }
    return removed;
  }

  async silentWorkers({ silentSince }: { readonly silentSince: number }): Promise<readonly string[]> {
    const silent = [...this.#rows.workers.values()].filter(({ live, beatAt }) => live && beatAt < silentSince);
    return silent.map(({ id }) => id).sort();
  }

  async forgetWorkers({ silentSince }: { readonly silentSince: number }): Promise<readonly string[]> {
    const owners = new Set([...this.#rows.tasks.values()].map(({ owner }) => owner));
    const forgotten = [...this.#rows.workers.values()].filter(
      ({ id, live, beatAt }) => !live && beatAt < silentSince && !owners.has(id),
    );
    for (const { id } of forgotten) this.#rows.workers.delete(id);
    return forgotten.map(({ name }) => name);
  }

  async workerRoutes(): Promise<readonly WorkerRoutes[]> {
    return [...this.#rows.workers.values()].map(({ routes, live, beatAt, leaseMs }) => ({
      routes,
      live,
      beatAt,
      leaseMs,
    }));
  }

  async parentsWaitingFor(routes: readonly string[], limit: number): Promise<readonly WaitingParent[]> {
    const asked = new Set(routes);
    const found = new Map<string, WaitingParent>();
    for (const task of this.#rows.tasks.values()) {
      const { parentId } = task.run;
      if (!asked.has(task.route) || parentId === null || !this.#isDue(task)) continue;
      if (this.#rows.runs.get(parentId)?.status === "paused" || this.#rows.tasks.get(parentId)?.mail !== 0) continue;
      found.set(`${parentId} ${task.route}`, { parentId, route: task.route });
    }
    return [...found.keys()]
      .sort()
      .slice(0, limit)
      .map((key) => found.get(key) as WaitingParent);
  }

  #isDue({ state, dueAt }: Task): boolean {
    return state === "ready" || (state === "parked" && dueAt !== null && dueAt <= this.#clock());
  }

  async samples(
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

  async backlog(): Promise<readonly Backlog[]> {
    const now = this.#clock();
    return this.#byRoute(
      (task) => this.#isDue(task),
      (key, tasks) => ({
        ...key,
        due: tasks.length,
        oldestDueAt: Math.min(...tasks.map(({ dueAt }) => dueAt ?? now)),
      }),
    );
  }

  async executing(): Promise<readonly Executing[]> {
    return this.#byRoute(
      ({ state }) => state === "owned",
      (key, tasks) => ({ ...key, owned: tasks.length }),
    );
  }

  #byRoute<T>(
    isMeant: (task: Task) => boolean,
    toResult: (key: { route: string; version: string }, tasks: readonly Task[]) => T,
  ): T[] {
    const groups = new Map<string, Task[]>();
    for (const task of this.#rows.tasks.values()) {
      if (!isMeant(task)) continue;
      const key = `${task.route}\u0000${task.run.version}`;
      groups.set(key, [...(groups.get(key) ?? []), task]);
    }
    return [...groups.entries()]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([, tasks]) => {
        const [{ route, run }] = tasks as [Task];
        return toResult({ route, version: run.version }, tasks);
      });
  }

  async workflows(): Promise<readonly WorkflowRecord[]> {
    return [...this.#rows.workflows.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  async pausedQueues(): Promise<readonly PausedQueue[]> {
    return [...this.#paused.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  get pausedNames(): readonly string[] {
    return [...this.#paused.keys()].sort();
  }

  async pauseQueue(name: string, reason: string | null): Promise<void> {
    const pausedAt = this.#paused.get(name)?.pausedAt ?? this.#clock();
    this.#paused.set(name, { name, pausedAt, reason });
    this.#hints.emit([{ kind: "anything" }]);
  }

  async resumeQueue(name: string): Promise<void> {
    this.#paused.delete(name);
    this.#hints.emit([{ kind: "anything" }]);
  }
}

const oldestFirst = (a: Age, b: Age) => a.createdAt - b.createdAt || compare(a.id, b.id);
const byParent = (a: ChildKey, b: ChildKey) => compare(a.parentId, b.parentId) || compare(a.id, b.id);
const compare = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);
