/** `ctx.cancel()`, `ctx.skip()` and the rest leave user code at once by throwing one of these. */
export type FlowAction =
  | { readonly kind: "cancel"; readonly reason: string | null }
  | { readonly kind: "pause"; readonly reason: string | null; readonly key: string }
  | { readonly kind: "skip" }
  | { readonly kind: "reattempt"; readonly waitMs: number; readonly rewind: boolean }
  | { readonly kind: "suspend"; readonly waitMs: number }
  | { readonly kind: "finish"; readonly output: unknown };

/** Not an Error: it is no failure, and code that reports errors has no business with it. */
export class FlowSignal {
  readonly action: FlowAction;

  constructor(action: FlowAction) {
    this.action = action;
  }

  toString(): string {
    return `ctx.${this.action.kind}() leaves the code; let it pass.`;
  }
}
