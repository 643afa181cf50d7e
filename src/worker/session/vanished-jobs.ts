/**
 * Detects jobs that no live worker has any more, and sends a message to the runs that wait for them, which pauses these runs.
 * The runs themselves do not poll. Each worker periodically reads the rows of all workers, which are few. Only if a job has
 * no live worker are the waiting runs read, a limited number at a time.
 */

import { jobOf } from "../../core/naming/route.js";
import { encodeMessage } from "../../core/run/message.js";
import type { Runtime } from "../../runtime/runtime.js";
import { isWorkerLive } from "../../store/contract/live-workers.js";
import type { Store, WorkerRoutes } from "../../store/contract/store.js";

/**
 * How long a job may be without a live worker: long enough for a worker to restart and for most deployments to finish.
 */
export const jobMissingGraceMs = 60_000;
/** Jobs and runs beyond these limits are found by the next check. */
const maxJobsPerCheck = 100;
const maxRunsPerCheck = 200;

export class VanishedJobs {
  readonly #store: Store;
  readonly #runtime: Runtime;

  constructor(store: Store, runtime: Runtime) {
    this.#store = store;
    this.#runtime = runtime;
  }

  /** @param graceMs how long a job must have been without a live worker */
  async check(graceMs = jobMissingGraceMs): Promise<void> {
    const [workers, now] = await Promise.all([this.#store.maintenance.workerRoutes(), this.#store.now()]);
    const isLive = (worker: WorkerRoutes) => isWorkerLive(worker, now, this.#runtime);
    await this.notifyWaitingRuns(findVanishedRoutes(workers, isLive, now, graceMs));
  }

  /** Sends each waiting run a message. The worker that processes it checks again whether the job is missing. */
  async notifyWaitingRuns(routes: readonly string[]): Promise<void> {
    const checkedRoutes = routes.slice(0, maxJobsPerCheck);
    const waitingRuns = await this.#store.maintenance.parentsWaitingFor(checkedRoutes, maxRunsPerCheck);
    if (waitingRuns.length === 0) return;
    await this.#store.send(
      waitingRuns.map(({ parentId, route }) =>
        encodeMessage(parentId, { type: "jobGone", job: jobOf(route) as string }),
      ),
    );
  }
}

/**
 * Returns the routes of jobs that dead workers had and no live worker has. The rows of dead workers are deleted after a
 * day.
 */
function findVanishedRoutes(
  workers: readonly WorkerRoutes[],
  isLive: (worker: WorkerRoutes) => boolean,
  now: number,
  graceMs: number,
): string[] {
  const routesWithWorkers = new Set<string>();
  const lastHeartbeatAt = new Map<string, number>();
  for (const worker of workers) {
    const live = isLive(worker);
    for (const { workflow } of worker.routes) {
      if (jobOf(workflow) === null) continue;
      if (live) routesWithWorkers.add(workflow);
      lastHeartbeatAt.set(workflow, Math.max(lastHeartbeatAt.get(workflow) ?? 0, worker.heartbeatAt));
    }
  }
  const hasVanished = ([route, at]: [string, number]) =>
    !routesWithWorkers.has(route) && Math.max(0, now - at) >= graceMs;
  return [...lastHeartbeatAt].filter(hasVanished).map(([route]) => route);
}
