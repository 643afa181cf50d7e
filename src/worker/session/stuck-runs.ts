/** Finds runs that no worker will move by itself, and says so once: until it is better, and worse again. */

import { graphRoute, jobOf } from "../../core/naming/route.js";
import type { Logger } from "../../define/context.js";
import type { Runtime } from "../../runtime/runtime.js";
import { heardOf, isHeardOf } from "../../store/contract/live-workers.js";
import type { Backlog, Store, WorkerRecord } from "../../store/contract/store.js";
import { VanishedJobs } from "./vanished-jobs.js";

/** A worker may be restarted, a deploy may take a while. */
const patienceMs = 10 * 60_000;

export class StuckRuns {
  readonly #store: Store;
  readonly #log: Logger;
  readonly #runtime: Runtime;
  readonly #vanished: VanishedJobs;
  #told: ReadonlySet<string> = new Set();

  constructor(store: Store, log: Logger, runtime: Runtime, vanished = new VanishedJobs(store, runtime)) {
    this.#store = store;
    this.#log = log;
    this.#runtime = runtime;
    this.#vanished = vanished;
  }

  async look(): Promise<void> {
    const warnings = [...(await this.#unserved()), ...(await this.#abandoned())];
    for (const [about, text] of warnings) if (!this.#told.has(about)) this.#log.warn(text);
    this.#told = new Set(warnings.map(([about]) => about));
  }

  /** Due for long, and no live worker has their workflow. Runs of a paused queue have one: it does not take them. */
  async #unserved(): Promise<[about: string, text: string][]> {
    const { upkeep } = this.#store;
    const [backlog, now] = await Promise.all([upkeep.backlog(), this.#store.now()]);
    const late = backlog.filter(({ oldestDueAt }) => now - oldestDueAt > patienceMs);
    if (late.length === 0) return [];
    const routes = (await heardOf(this.#store, this.#runtime)).flatMap((worker) => worker.routes);
    const isServed = ({ route, version }: Backlog) =>
      routes.some((one) => one.workflow === route && one.version === version);
    const unserved = late.filter((one) => !isServed(one));
    // Jobs that not even a dead worker is remembered with.
    await this.#vanished.tell(unserved.flatMap(({ route }) => (jobOf(route) === null ? [] : [route])));
    return unserved.map((one) => [
      `unserved ${one.route} ${one.version}`,
      `${one.due} run(s) of ${nameOf(one)} are due, the first since ${at(one.oldestDueAt)}, and no live worker takes them.`,
    ]);
  }

  /**
   * Owned by workers that are gone: the beats of any other should have freed them. How many they own is asked only if there
   * are such workers: it may mean to read all open tasks.
   */
  async #abandoned(): Promise<[about: string, text: string][]> {
    const silent = await this.#store.upkeep.silentWorkers({ silentSince: this.#runtime.now() - patienceMs });
    if (silent.length === 0) return [];
    const [workers, now] = await Promise.all([this.#store.workers(), this.#store.now()]);
    const isGone = (worker: WorkerRecord) => worker.owned > 0 && !isHeardOf(worker, now, this.#runtime);
    return workers
      .filter(isGone)
      .map(({ id, name, owned, beatAt }) => [
        `abandoned ${id}`,
        `${owned} run(s) belong to worker "${name}", which was last heard of at ${at(beatAt)}, and nobody has freed them.`,
      ]);
  }
}

function nameOf({ route, version }: Backlog): string {
  if (route === graphRoute) return "graphs built at run time (a worker with `jobs` takes them)";
  const [workflow, queue] = route.split("\t");
  const ofVersion = version === "" ? "" : ` version "${version}"`;
  return `workflow "${workflow}"${ofVersion}${queue === undefined ? "" : `, queue "${queue}"`}`;
}

const at = (instant: number) => new Date(instant).toISOString();
