/**
 * Delays the parking of runs with a long log. The next owner of a parked run reads its whole log, so if such a run were
 * parked between the reports of its nodes or children, the cost of a graph would grow with the square of its size.
 */

import { hasOpenChildren } from "../../core/run/cancel-children.js";
import type { RunState } from "../../core/run/state.js";
import type { Runtime, Timer } from "../../runtime/runtime.js";
import type { PendingWrites } from "../commit/pending-writes.js";

/** The minimum number of events. Reading a shorter log again costs too little to justify a delay. */
const minLogLength = 500;
const maxDelayMs = 250;

interface DelayedTurn {
  readonly host: { readonly runtime: Runtime };
  scheduleIdleCheck(): void;
}

export class ParkDelay {
  readonly #turn: DelayedTurn;
  #lastExpectedAt = Number.NEGATIVE_INFINITY;
  #timer: Timer | null = null;

  constructor(turn: DelayedTurn) {
    this.#turn = turn;
  }

  /** Called when a message has arrived or is expected, so that more messages may follow soon. */
  expectMessages(): void {
    this.#lastExpectedAt = this.#turn.host.runtime.monotonic();
  }

  /** Whether the run must not be parked yet. If so, a timer runs the idle check again at the end of the delay. */
  shouldDelay(state: RunState, { starts }: PendingWrites): boolean {
    if (state.seq < minLogLength || !(starts.length > 0 || hasOpenChildren(state))) return false;
    const remainingMs = this.#lastExpectedAt + maxDelayMs - this.#turn.host.runtime.monotonic();
    if (remainingMs <= 0) return false;
    this.stop();
    this.#timer = this.#turn.host.runtime.setTimeout(() => this.#turn.scheduleIdleCheck(), remainingMs);
    return true;
  }

  stop(): void {
    if (this.#timer !== null) this.#turn.host.runtime.clearTimeout(this.#timer);
  }
}
