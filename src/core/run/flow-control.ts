import type { StepOutcome } from "./event.js";

/** `ctx.cancel()`, `ctx.skip()` and the rest leave user code at once by throwing one of these. */
export type FlowControlAction =
  | { readonly kind: "cancel"; readonly reason: string | null; readonly outcome?: StepOutcome }
  | { readonly kind: "pause"; readonly reason: string | null; readonly key: string }
  | { readonly kind: "skip"; readonly outcome?: StepOutcome }
  | { readonly kind: "reattempt"; readonly waitMs: number; readonly rewind: boolean }
  | { readonly kind: "suspend"; readonly waitMs: number }
  | { readonly kind: "finish"; readonly output: unknown };

/** Not an Error: it is no failure, and code that reports errors has no business with it. */
export class FlowControlInterrupt {
  readonly action: FlowControlAction;
  /** It was noted where it was raised, and is thrown as well: who meets it second knows that it has been seen to. */
  isHandled = false;

  constructor(action: FlowControlAction) {
    this.action = action;
  }

  toString(): string {
    return `ctx.${this.action.kind}() leaves the code; let it pass.`;
  }
}
