/** Flow control that user code has raised and that was not honoured yet: a `catch` in that code cannot make it unsaid. */
import type { FlowControlInterrupt } from "../../core/run/flow-control.js";
import { callTracked } from "../replay/nested-calls.js";
import type { Attempt, Body } from "./attempt.js";

export class FlowControlTracker {
  /** When it is not known in which step. */
  #signal: FlowControlInterrupt | null = null;
  #current: Attempt | null = null;

  /** Whose body runs right now, synchronously. */
  get current(): Attempt | null {
    return this.#current;
  }

  /** Calls the body of a step, and knows meanwhile whose code runs. */
  callBody(attempt: Attempt, body: Body, isTracked = false): unknown {
    const outer = this.#current;
    this.#current = attempt;
    try {
      return isTracked ? callTracked(attempt, body) : body(attempt);
    } finally {
      this.#current = outer;
    }
  }

  /** Noted before it is thrown. */
  raise(signal: FlowControlInterrupt, scope: Attempt | null): void {
    const attempt = this.#current ?? scope;
    if (attempt !== null) attempt.raisedSignal = signal;
    else this.#signal = signal;
  }

  /** What this step's body raised; or, when it is not known whose signal it is, what any body did. */
  take(attempt?: Attempt): FlowControlInterrupt | null {
    const signal = attempt?.raisedSignal ?? this.#signal;
    if (attempt?.raisedSignal == null) this.#signal = null;
    else attempt.raisedSignal = null;
    return signal === null || signal.isHandled ? null : signal;
  }
}
