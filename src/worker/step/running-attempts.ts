/** The bodies of steps that run in a turn, and whatever else is under way: while there is anything, its run cannot be parked. */
import type { TurnExecution } from "./step.js";

export class Executions {
  readonly #running = new Set<TurnExecution>();
  /** Those of all turns of the worker, for whoever watches for slow steps. */
  readonly #watched: Set<TurnExecution>;
  /** Bodies and look-ups under way. */
  #busy = 0;

  constructor(watched: Set<TurnExecution>) {
    this.#watched = watched;
  }

  get busy(): boolean {
    return this.#busy > 0;
  }

  get any(): boolean {
    return this.#running.size > 0;
  }

  /** Whether a body of this step is running: a call that was given up on may still be. */
  has(key: string): boolean {
    for (const execution of this.#running) if (execution.key === key) return true;
    return false;
  }

  began(execution: TurnExecution): void {
    this.#busy += 1;
    this.#running.add(execution);
    this.#watched.add(execution);
  }

  /** The body is over; what came of it is not in the log yet. */
  ended(execution: TurnExecution): void {
    execution.over = true;
    execution.leavePlace?.();
    execution.scope?.close();
    this.#running.delete(execution);
    this.#watched.delete(execution);
  }

  /** Something more is under way, or goes on. */
  hold(): void {
    this.#busy += 1;
  }

  release(): void {
    this.#busy -= 1;
  }

  /** Nobody waits for what runs. */
  giveUp(): void {
    this.#busy = 0;
  }

  abort(reason: unknown): void {
    for (const execution of this.#running) execution.abort(reason);
  }

  /** The run is let go of: what still runs here is of no use to anybody. */
  leave(): void {
    for (const execution of this.#running) {
      execution.dispose();
      execution.leavePlace?.();
      this.#watched.delete(execution);
    }
  }

  clear(): void {
    this.#running.clear();
  }
}
