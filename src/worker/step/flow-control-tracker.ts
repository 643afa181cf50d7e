/** Remembers flow control that user code raised until the engine applies it, so that a `catch` in that code cannot drop it. */
import type { FlowControlInterrupt } from "../../core/run/flow-control.js";
import { callTracked } from "../replay/nested-calls.js";
import type { Attempt, Body } from "./attempt.js";

export class FlowControlTracker {
  /** Flow control that was raised outside any known step body. */
  #unattributedInterrupt: FlowControlInterrupt | null = null;
  #current: Attempt | null = null;

  /** The attempt whose body is on the stack right now. */
  get current(): Attempt | null {
    return this.#current;
  }

  /** Calls the body of a step; `current` is its attempt until the body returns. */
  callBody(attempt: Attempt, body: Body, isTracked = false): unknown {
    const outer = this.#current;
    this.#current = attempt;
    try {
      return isTracked ? callTracked(attempt, body) : body(attempt);
    } finally {
      this.#current = outer;
    }
  }

  /** Must be called before the interrupt is thrown. */
  raise(interrupt: FlowControlInterrupt, scopeAttempt: Attempt | null): void {
    const attempt = this.#current ?? scopeAttempt;
    if (attempt !== null) attempt.raisedInterrupt = interrupt;
    else this.#unattributedInterrupt = interrupt;
  }

  /** Takes what this attempt's body raised, or else what was raised outside any known body. */
  take(attempt?: Attempt): FlowControlInterrupt | null {
    const interrupt = attempt?.raisedInterrupt ?? this.#unattributedInterrupt;
    if (attempt?.raisedInterrupt == null) this.#unattributedInterrupt = null;
    else attempt.raisedInterrupt = null;
    return interrupt === null || interrupt.isHandled ? null : interrupt;
  }
}
