/** Flow control: `ctx.cancel()`, `ctx.skip()` and the like leave user code at once by throwing a `FlowControlInterrupt`. */
import type { StepOutcome } from "./event.js";

export type FlowControlAction =
  | { readonly kind: "cancel"; readonly reason: string | null; readonly outcome?: StepOutcome }
  | { readonly kind: "pause"; readonly reason: string | null; readonly key: string }
  | { readonly kind: "skip"; readonly outcome?: StepOutcome }
  | { readonly kind: "reattempt"; readonly waitMs: number; readonly rewind: boolean }
  | { readonly kind: "suspend"; readonly waitMs: number }
  | { readonly kind: "finish"; readonly output: unknown };

/** The interrupt is not an Error, because it is no failure, and error reporters in user code must not report it. */
export class FlowControlInterrupt {
  readonly action: FlowControlAction;
  /**
   * Whether the events of the interrupt were created. The engine gets each interrupt both from the `FlowControlTracker` and
   * as a thrown value, but must apply it only once.
   */
  isHandled = false;

  constructor(action: FlowControlAction) {
    this.action = action;
  }

  toString(): string {
    return `ctx.${this.action.kind}() was called; do not catch what it throws.`;
  }
}
