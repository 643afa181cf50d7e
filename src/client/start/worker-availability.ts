/** A start without a live worker is accepted and waits; its caller should know: on the handle, and once in the log. */

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
  /** Routes that have a live worker, as of a moment ago. */
  #routesWithWorkers = new Set<string>();
  #cachedUntil = 0;
  #pendingRead: Promise<void> | null = null;
  readonly #warnedRoutes = new Set<string>();

  constructor(store: Store, log: Logger, runtime: Runtime) {
    this.#store = store;
    this.#log = log;
    this.#runtime = runtime;
  }

  /** What to tell the caller who started a run of this route; null when there is nothing to worry about. */
  async warningFor(workflow: string, version: string): Promise<string | null> {
    const route = `${workflow}@${version}`;
    if (this.#routesWithWorkers.has(route) && this.#runtime.now() < this.#cachedUntil) return null;
    // Its worker may be new: asked again, but once for all who start it now.
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

  /** When the database does not say, that is no reason to let a start fail that has been made. */
  async #read(): Promise<void> {
    try {
      const live = await findLiveWorkers(this.#store, this.#runtime);
      this.#routesWithWorkers = new Set(
        live.flatMap(({ routes }) => routes.map((route) => `${route.workflow}@${route.version}`)),
      );
      this.#cachedUntil = this.#runtime.now() + cacheTtlMs;
    } catch {
      this.#cachedUntil = 0;
    }
  }
}
