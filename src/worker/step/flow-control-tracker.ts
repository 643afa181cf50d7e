/** Flow control that user code has raised and that was not honoured yet: a `catch` in that code cannot make it unsaid. */
import type { FlowControlInterrupt } from "../../core/run/flow-control.js";
import { callTracked } from "../replay/nested-calls.js";
import type { Attempt, Body } from "./attempt.js";

export class FlowControlTracker {
  /** When it is not known in which step. */
  #unattributedInterrupt: FlowControlInterrupt | null = null;
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
  raise(interrupt: FlowControlInterrupt, scopeAttempt: Attempt | null): void {
    const attempt = this.#current ?? scopeAttempt;
    if (attempt !== null) attempt.raisedInterrupt = interrupt;
    else this.#unattributedInterrupt = interrupt;
  }

  /** What this step's body raised; or, when it is not known whose signal it is, what any body did. */
  take(attempt?: Attempt): FlowControlInterrupt | null {
    const interrupt = attempt?.raisedInterrupt ?? this.#unattributedInterrupt;
    if (attempt?.raisedInterrupt == null) this.#unattributedInterrupt = null;
    else attempt.raisedInterrupt = null;
    return interrupt === null || interrupt.isHandled ? null : interrupt;
  }
}
