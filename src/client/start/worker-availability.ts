/** Warns about started runs that no live worker can execute: on the handle of each run, and once per workflow in the log. */

import { graphRoute } from "../../core/naming/route.js";
import type { Logger } from "../../define/context.js";
import type { Runtime } from "../../runtime/runtime.js";
import { findLiveWorkers } from "../../store/contract/live-workers.js";
import type { Store } from "../../store/contract/store.js";

const cacheTtlMs = 10_000;

export class WorkerAvailability {
  readonly #store: Store;
  readonly #log: Logger;
  readonly #runtime: Runtime;
  /** The routes that had a live worker at the last read. */
  #routesWithWorkers = new Set<string>();
  #cachedUntil = 0;
  #pendingRead: Promise<void> | null = null;
  readonly #warnedRoutes = new Set<string>();

  constructor(store: Store, log: Logger, runtime: Runtime) {
    this.#store = store;
    this.#log = log;
    this.#runtime = runtime;
  }

  /** Returns the warning for the caller that started a run of this workflow; null if a live worker has the workflow. */
  async warningFor(workflow: string, version: string): Promise<string | null> {
    const route = `${workflow}@${version}`;
    if (this.#routesWithWorkers.has(route) && this.#runtime.now() < this.#cachedUntil) return null;
    // A worker may have been started since the last read, so the workers are read again, once for all concurrent starts.
    this.#pendingRead ??= this.#read().finally(() => {
      this.#pendingRead = null;
    });
    await this.#pendingRead;
    if (this.#routesWithWorkers.has(route) || this.#cachedUntil === 0) return null;
    const warning =
      workflow === graphRoute
        ? "A graph was built, but no live worker has `jobs`; the run waits for one."
        : `Workflow "${workflow}" was started, but no live worker has it${version === "" ? "" : ` in version "${version}"`}; the run waits for one.`;
    if (!this.#warnedRoutes.has(route)) this.#log.warn(warning);
    this.#warnedRoutes.add(route);
    return warning;
  }

  /** Ignores errors: the run has been started, and its start must not fail because the warning cannot be computed. */
  async #read(): Promise<void> {
    try {
      const liveWorkers = await findLiveWorkers(this.#store, this.#runtime);
      this.#routesWithWorkers = new Set(
        liveWorkers.flatMap(({ routes }) => routes.map((route) => `${route.workflow}@${route.version}`)),
      );
      this.#cachedUntil = this.#runtime.now() + cacheTtlMs;
    } catch {
      this.#cachedUntil = 0;
    }
  }
}
