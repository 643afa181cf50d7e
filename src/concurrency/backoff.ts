/**
 * Exponential backoff with jitter for a service that is down. The delay starts at 20 ms and doubles up to 2 s; each wait
 * takes a random 50% to 100% of it.
 */
import type { Runtime } from "../runtime/runtime.js";
import { sleep } from "../runtime/wait.js";

export class Backoff {
  readonly #runtime: Runtime;
  #delayMs = 20;

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
  }

  /** Sleeps for the present delay, and doubles the delay for the next call. */
  wait(): Promise<void> {
    const ms = this.#delayMs * (0.5 + this.#runtime.random() / 2);
    this.#delayMs = Math.min(this.#delayMs * 2, 2_000);
    return sleep(this.#runtime, ms);
  }

  reset(): void {
    this.#delayMs = 20;
  }
}
