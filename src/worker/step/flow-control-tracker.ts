/**
 * Remembers the flow control that user code raised (`ctx.cancel()`, `ctx.pause()`, …) until the engine applies it, so
 * that a `catch` in user code cannot suppress it.
 */
import type { FlowControlInterrupt } from "../../core/run/flow-control.js";
import { callTracked } from "../replay/nested-calls.js";
import type { Attempt, Body } from "./attempt.js";

export class FlowControlTracker {
  /** Flow control that was raised by the handler, or by code whose step is unknown. */
  #unattributedInterrupt: FlowControlInterrupt | null = null;
  #current: Attempt | null = null;

  /** The attempt whose body is on the JavaScript call stack right now; null while no body is. */
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

  /** Registers the interrupt; must be called before it is thrown, because user code may catch it. */
  raise(interrupt: FlowControlInterrupt, scopeAttempt: Attempt | null): void {
    const attempt = this.#current ?? scopeAttempt;
    if (attempt !== null) attempt.raisedInterrupt = interrupt;
    else this.#unattributedInterrupt = interrupt;
  }

  /**
   * Returns and removes the interrupt that this attempt's body raised, or else the one that was raised outside any known
   * body. Returns null if there is none or the engine has already applied it.
   */
  take(attempt?: Attempt): FlowControlInterrupt | null {
    const interrupt = attempt?.raisedInterrupt ?? this.#unattributedInterrupt;
    if (attempt?.raisedInterrupt == null) this.#unattributedInterrupt = null;
    else attempt.raisedInterrupt = null;
    return interrupt === null || interrupt.isHandled ? null : interrupt;
  }
}
