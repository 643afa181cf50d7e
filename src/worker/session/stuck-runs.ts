/** Finds runs that no worker will move by itself, and says so once: until it is better, and worse again. */

import { graphRoute, jobOf } from "../../core/naming/route.js";
import type { Logger } from "../../define/context.js";
import type { Runtime } from "../../runtime/runtime.js";
import { findLiveWorkers, isWorkerLive } from "../../store/contract/live-workers.js";
import type { RouteBacklog, Store, WorkerRecord } from "../../store/contract/store.js";
import { VanishedJobs } from "./vanished-jobs.js";

/** A worker may be restarted, a deploy may take a while. */
const stuckAfterMs = 10 * 60_000;

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

  /** Due for long, and no live worker has their workflow. Runs of a paused queue have one: it does not take them. */
  async #findRunsWithoutWorkers(): Promise<[about: string, text: string][]> {
    const { maintenance } = this.#store;
    const [backlog, now] = await Promise.all([maintenance.backlog(), this.#store.now()]);
    const late = backlog.filter(({ oldestDueAt }) => now - oldestDueAt > stuckAfterMs);
    if (late.length === 0) return [];
    const routes = (await findLiveWorkers(this.#store, this.#runtime)).flatMap((worker) => worker.routes);
    const hasWorker = ({ route, version }: RouteBacklog) =>
      routes.some((one) => one.workflow === route && one.version === version);
    const withoutWorkers = late.filter((one) => !hasWorker(one));
    // Jobs that not even a dead worker is remembered with.
    await this.#vanishedJobs.notifyWaitingRuns(
      withoutWorkers.flatMap(({ route }) => (jobOf(route) === null ? [] : [route])),
    );
    return withoutWorkers.map((one) => [
      `unserved ${one.route} ${one.version}`,
      `${one.dueCount} run(s) of ${describeRoute(one)} are due, the first since ${formatInstant(one.oldestDueAt)}, and no live worker takes them.`,
    ]);
  }

  /**
   * Owned by workers that are gone: the beats of any other should have freed them. How many they own is asked only if there
   * are such workers: it may mean to read all open tasks.
   */
  async #findRunsOfDeadWorkers(): Promise<[about: string, text: string][]> {
    const expiredWorkers = await this.#store.maintenance.expiredWorkers({
      lastHeartbeatBefore: this.#runtime.now() - stuckAfterMs,
    });
    if (expiredWorkers.length === 0) return [];
    const [workers, now] = await Promise.all([this.#store.workers(), this.#store.now()]);
    const isGone = (worker: WorkerRecord) => worker.ownedTaskCount > 0 && !isWorkerLive(worker, now, this.#runtime);
    return workers
      .filter(isGone)
      .map(({ id, name, ownedTaskCount, heartbeatAt }) => [
        `abandoned ${id}`,
        `${ownedTaskCount} run(s) belong to worker "${name}", which was last heard of at ${formatInstant(heartbeatAt)}, and nobody has freed them.`,
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
