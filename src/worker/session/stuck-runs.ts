/** Finds runs that no worker will advance. Warns once of each cause, and again if the cause disappears and returns. */

import { graphRoute, jobOf } from "../../core/naming/route.js";
import type { Logger } from "../../define/context.js";
import type { Runtime } from "../../runtime/runtime.js";
import { findLiveWorkers, isWorkerLive } from "../../store/contract/live-workers.js";
import type { RouteBacklog, Store } from "../../store/contract/store.js";
import { VanishedJobs } from "./vanished-jobs.js";

/** A run is stuck after this time, which is long enough for a worker to restart and for a deployment to finish. */
const stuckAfterMs = 10 * 60_000;
/** A longer backlog is no more alarming, and counting it would take longer. */
const maxCountedRuns = 10_000;

export class StuckRuns {
  readonly #store: Store;
  readonly #log: Logger;
  readonly #runtime: Runtime;
  readonly #vanishedJobs: VanishedJobs;
  #warnedAbout: ReadonlySet<string> = new Set();

  constructor(store: Store, log: Logger, runtime: Runtime, vanishedJobs = new VanishedJobs(store, runtime)) {
    this.#store = store;
    this.#log = log;
    this.#runtime = runtime;
    this.#vanishedJobs = vanishedJobs;
  }

  async check(): Promise<void> {
    const warnings = [...(await this.#findRunsWithoutWorkers()), ...(await this.#findRunsOfDeadWorkers())];
    for (const [subject, text] of warnings) if (!this.#warnedAbout.has(subject)) this.#log.warn(text);
    this.#warnedAbout = new Set(warnings.map(([subject]) => subject));
  }

  /**
   * Finds runs that are overdue and have no live worker for their route. Runs of a paused queue have one, so they do
   * not count.
   */
  async #findRunsWithoutWorkers(): Promise<[about: string, text: string][]> {
    const { maintenance } = this.#store;
    const [backlog, now] = await Promise.all([maintenance.backlog({ cap: maxCountedRuns }), this.#store.now()]);
    const overdueGroups = backlog.filter(({ oldestDueAt }) => now - oldestDueAt > stuckAfterMs);
    if (overdueGroups.length === 0) return [];
    const routes = (await findLiveWorkers(this.#store, this.#runtime)).flatMap((worker) => worker.routes);
    const hasWorker = ({ route, version }: RouteBacklog) =>
      routes.some((liveRoute) => liveRoute.workflow === route && liveRoute.version === version);
    const groupsWithoutWorkers = overdueGroups.filter((group) => !hasWorker(group));
    // `VanishedJobs.check` misses jobs whose last worker's row was deleted, so their waiting runs are notified here.
    await this.#vanishedJobs.notifyWaitingRuns(
      groupsWithoutWorkers.flatMap(({ route }) => (jobOf(route) === null ? [] : [route])),
    );
    return groupsWithoutWorkers.map((group) => [
      `no worker for ${group.route} ${group.version}`,
      `${group.dueCount}${group.isCapped ? " or more" : ""} run(s) of ${describeRoute(group)} are due, the first since ${formatInstant(group.oldestDueAt)}, and no live worker takes them.`,
    ]);
  }

  /**
   * Finds runs of workers with an expired lease, which the heartbeat of any other worker should have freed. Their tasks,
   * for which the store may read all open tasks, are counted only if there are such workers.
   */
  async #findRunsOfDeadWorkers(): Promise<[about: string, text: string][]> {
    const expiredWorkers = await this.#store.maintenance.expiredWorkers({
      lastHeartbeatBefore: this.#runtime.now() - stuckAfterMs,
    });
    if (expiredWorkers.length === 0) return [];
    const [workers, now] = await Promise.all([this.#store.workers(), this.#store.now()]);
    const deadWorkers = workers.filter((worker) => !isWorkerLive(worker, now, this.#runtime));
    const ownedTaskCounts = await this.#store.maintenance.ownedTaskCounts(deadWorkers.map(({ id }) => id));
    return deadWorkers
      .filter(({ id }) => ownedTaskCounts.has(id))
      .map(({ id, name, heartbeatAt }) => [
        `abandoned ${id}`,
        `${ownedTaskCounts.get(id)} run(s) belong to worker "${name}", whose last heartbeat was at ${formatInstant(heartbeatAt)}, and no other worker has freed them.`,
      ]);
  }
}

function describeRoute({ route, version }: RouteBacklog): string {
  if (route === graphRoute) return "graphs built at run time (a worker with `jobs` takes them)";
  const [workflow, queue] = route.split("\t");
  const ofVersion = version === "" ? "" : ` version "${version}"`;
  return `workflow "${workflow}"${ofVersion}${queue === undefined ? "" : `, queue "${queue}"`}`;
}

const formatInstant = (instant: number) => new Date(instant).toISOString();
