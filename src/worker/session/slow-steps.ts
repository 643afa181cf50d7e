/** Records the start of steps that take long, so that people can see what is running. Quick steps save that row. */
import type { RunningAttempt } from "../step/running-attempts.js";

const slowMs = 100;
const lookEveryMs = 50;

class ExecutingSet extends Set<RunningAttempt> {
  onAdd: () => void = () => {};

  override add(execution: RunningAttempt): this {
    super.add(execution);
    this.onAdd();
    return this;
  }
}

export class SlowSteps {
  readonly executing = new ExecutingSet();
  #timer: NodeJS.Timeout | null = null;

  constructor() {
    this.executing.onAdd = () => {
      if (this.#timer !== null) return;
      this.#timer = setInterval(() => this.#look(), lookEveryMs);
      this.#timer.unref();
    };
  }

  #look(): void {
    if (this.executing.size === 0) return this.stop();
    for (const execution of this.executing) {
      if (!execution.startRecorded && execution.elapsedRealMs > slowMs) void execution.recordStart();
    }
  }

  stop(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
  }
}
