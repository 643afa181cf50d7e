/**
 * Notices that no live worker has a job any more while runs wait for it: it tells them, and they are paused. No run asks by
 * itself, however many wait. Each worker looks at the workers' rows, of which there are few, once in a while; only when a
 * job is missing there the runs that wait for it are looked for, a limited number at a time.
 */

import { jobOf } from "../../core/naming/route.js";
import { writeMail } from "../../core/run/message.js";
import type { Runtime } from "../../runtime/runtime.js";
import { isHeardOf } from "../../store/contract/live-workers.js";
import type { Store, WorkerRoutes } from "../../store/contract/store.js";

/** A worker may be restarted, and a deploy may take a while. */
export const jobPatienceMs = 60_000;
/** So many jobs and so many runs at a time; the others are found the next time. */
const jobsAtOnce = 100;
const runsAtOnce = 200;

export class VanishedJobs {
  readonly #store: Store;
  readonly #runtime: Runtime;

  constructor(store: Store, runtime: Runtime) {
    this.#store = store;
    this.#runtime = runtime;
  }

  /** @param patienceMs how long a job has to be gone */
  async look(patienceMs = jobPatienceMs): Promise<void> {
    const [workers, now] = await Promise.all([this.#store.upkeep.workerRoutes(), this.#store.now()]);
    const isLive = (worker: WorkerRoutes) => isHeardOf(worker, now, this.#runtime);
    await this.tell(routesGone(workers, isLive, now, patienceMs));
  }

  /** The owner of each run looks for itself whether the job is gone. */
  async tell(routes: readonly string[]): Promise<void> {
    const asked = routes.slice(0, jobsAtOnce);
    const waiting = await this.#store.upkeep.parentsWaitingFor(asked, runsAtOnce);
    if (waiting.length === 0) return;
    await this.#store.send(
      waiting.map(({ parentId, route }) => writeMail(parentId, { type: "jobGone", job: jobOf(route) as string })),
    );
  }
}

/** Jobs that dead workers had and no live one has. Dead workers are remembered for a day. */
function routesGone(
  workers: readonly WorkerRoutes[],
  isLive: (worker: WorkerRoutes) => boolean,
  now: number,
  patienceMs: number,
): string[] {
  const served = new Set<string>();
  const lastHeard = new Map<string, number>();
  for (const worker of workers) {
    const live = isLive(worker);
    for (const { workflow } of worker.routes) {
      if (jobOf(workflow) === null) continue;
      if (live) served.add(workflow);
      lastHeard.set(workflow, Math.max(lastHeard.get(workflow) ?? 0, worker.beatAt));
    }
  }
  const isGone = ([route, at]: [string, number]) => !served.has(route) && Math.max(0, now - at) >= patienceMs;
  return [...lastHeard].filter(isGone).map(([route]) => route);
}
