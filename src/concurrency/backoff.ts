/** Growing pauses between tries at something that is down: 20 ms doubling to 2 s, with jitter. */
import type { Runtime } from "../runtime/runtime.js";
import { sleep } from "../runtime/wait.js";

export class Backoff {
  readonly #runtime: Runtime;
  #delayMs = 20;

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
  }

  wait(): Promise<void> {
    const ms = this.#delayMs * (0.5 + this.#runtime.random() / 2);
    this.#delayMs = Math.min(this.#delayMs * 2, 2_000);
    return sleep(this.#runtime, ms);
  }

  reset(): void {
    this.#delayMs = 20;
  }
}
