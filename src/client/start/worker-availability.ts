/** A start without a live worker is accepted and waits; its caller should know: on the handle, and once in the log. */

import { graphRoute } from "../../core/naming/route.js";
import type { Logger } from "../../define/context.js";
import type { Runtime } from "../../runtime/runtime.js";
import { heardOf } from "../../store/contract/live-workers.js";
import type { Store } from "../../store/contract/store.js";

const servedForMs = 10_000;

export class WorkerAvailability {
  readonly #store: Store;
  readonly #log: Logger;
  readonly #runtime: Runtime;
  /** Routes that have a live worker, as of a moment ago. */
  #served = new Set<string>();
  #until = 0;
  #asked: Promise<void> | null = null;
  readonly #warned = new Set<string>();

  constructor(store: Store, log: Logger, runtime: Runtime) {
    this.#store = store;
    this.#log = log;
    this.#runtime = runtime;
  }

  /** What to tell the caller who started a run of this route; null when there is nothing to worry about. */
  async warningFor(workflow: string, version: string): Promise<string | null> {
    const route = `${workflow}@${version}`;
    if (this.#served.has(route) && this.#runtime.now() < this.#until) return null;
    // Its worker may be new: asked again, but once for all who start it now.
    this.#asked ??= this.#read().finally(() => {
      this.#asked = null;
    });
    await this.#asked;
    if (this.#served.has(route) || this.#until === 0) return null;
    const warning =
      workflow === graphRoute
        ? "A graph was built, but no live worker has `jobs`; the run waits for one."
        : `Workflow "${workflow}" was started, but no live worker has it${version === "" ? "" : ` in version "${version}"`}; the run waits for one.`;
    if (!this.#warned.has(route)) this.#log.warn(warning);
    this.#warned.add(route);
    return warning;
  }

  /** When the database does not say, that is no reason to let a start fail that has been made. */
  async #read(): Promise<void> {
    try {
      const live = await heardOf(this.#store, this.#runtime);
      this.#served = new Set(live.flatMap(({ routes }) => routes.map((route) => `${route.workflow}@${route.version}`)));
      this.#until = this.#runtime.now() + servedForMs;
    } catch {
      this.#until = 0;
    }
  }
}
