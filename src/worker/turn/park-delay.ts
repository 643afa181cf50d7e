/**
 * The next owner of a run reads its whole log. A long one whose nodes or children report all the time is not let go
 * of in between, or the cost of a graph would grow with the square of its size.
 */

import { hasOpenChildren } from "../../core/run/cancel-children.js";
import type { RunState } from "../../core/run/state.js";
import type { Runtime, Timer } from "../../runtime/runtime.js";
import type { PendingWrites } from "../commit/pending-writes.js";

/** Shorter logs are read again in no time. */
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

  /** @param turn stirred when nothing has come */
  constructor(turn: DelayedTurn) {
    this.#turn = turn;
  }

  /** Mail came, or is to be expected: more of it may follow soon. */
  expectMessages(): void {
    this.#lastExpectedAt = this.#turn.host.runtime.monotonic();
  }

  /** Whether it is worth waiting for more. Then the turn is stirred when nothing has come. */
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
