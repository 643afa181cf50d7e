/**
 * Records the start of steps that take longer than 100 ms, so that users see them while they run. Quick steps need no
 * event.
 */
import type { Runtime, Timer } from "../../runtime/runtime.js";
import type { RunningAttempt } from "../step/running-attempts.js";

const slowMs = 100;
const pollIntervalMs = 50;

/**
 * The running attempts. `onAdd` is called after each addition, so that the timer runs only while attempts are running.
 */
class ExecutingSet extends Set<RunningAttempt> {
  onAdd: () => void = () => {};

  override add(attempt: RunningAttempt): this {
    super.add(attempt);
    this.onAdd();
    return this;
  }
}

export class SlowSteps {
  readonly executing = new ExecutingSet();
  readonly #runtime: Runtime;
  #timer: Timer | null = null;

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
    this.executing.onAdd = () => {
      if (this.#timer !== null) return;
      this.#timer = runtime.setInterval(() => this.#poll(), pollIntervalMs);
      this.#timer.unref();
    };
  }

  #poll(): void {
    if (this.executing.size === 0) return this.stop();
    for (const attempt of this.executing) {
      if (!attempt.isStartRecorded && attempt.elapsedRealMs > slowMs) void attempt.recordStart();
    }
  }

  stop(): void {
    this.#runtime.clearInterval(this.#timer);
    this.#timer = null;
  }
}
