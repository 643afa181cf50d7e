/** Flow control that user code has raised and that was not honoured yet: a `catch` in that code cannot make it unsaid. */
import type { FlowSignal } from "../../core/run/flow-control.js";
import { callFollowed } from "../replay/nested-calls.js";
import type { Attempt, Body } from "./attempt.js";

export class FlowControlTracker {
  /** When it is not known in which step. */
  #signal: FlowSignal | null = null;
  #current: Attempt | null = null;

  /** Whose body runs right now, synchronously. */
  get current(): Attempt | null {
    return this.#current;
  }

  /** Calls the body of a step, and knows meanwhile whose code runs. */
  callBody(execution: Attempt, body: Body, isFollowed = false): unknown {
    const outer = this.#current;
    this.#current = execution;
    try {
      return isFollowed ? callFollowed(execution, body) : body(execution);
    } finally {
      this.#current = outer;
    }
  }

  /** Noted before it is thrown. */
  raise(signal: FlowSignal, scope: Attempt | null): void {
    const execution = this.#current ?? scope;
    if (execution !== null) execution.raised = signal;
    else this.#signal = signal;
  }

  /** What this step's body raised; or, when it is not known whose signal it is, what any body did. */
  take(execution?: Attempt): FlowSignal | null {
    const signal = execution?.raised ?? this.#signal;
    if (execution?.raised == null) this.#signal = null;
    else execution.raised = null;
    return signal === null || signal.honoured ? null : signal;
  }
}
