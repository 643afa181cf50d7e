/** The paused queues as of the last heartbeat. The worker claims no runs from them; running steps continue. */
import type { QueuedRoute } from "./routes.js";

export class PausedQueues {
  #names: ReadonlySet<string> = new Set();

  /** Returns whether the set of paused queues has changed. */
  update(names: readonly string[]): boolean {
    const previousNames = this.#names;
    if (names.length === previousNames.size && names.every((name) => previousNames.has(name))) return false;
    this.#names = new Set(names);
    return true;
  }

  get names(): readonly string[] {
    return [...this.#names];
  }

  isOpen({ queue }: QueuedRoute): boolean {
    return queue === null || !this.#names.has(queue);
  }

  filterOpen(routes: readonly QueuedRoute[]): readonly QueuedRoute[] {
    return this.#names.size === 0 ? routes : routes.filter((route) => this.isOpen(route));
  }
}
