/** What the engine has to know of a step, in whichever style it was written. */
import type { Semaphore } from "../../concurrency/semaphore.js";
import type { StepOp } from "../../core/run/state.js";
import type { Reaction } from "../../define/step-engine.js";

/** What makes the step: an ordinary function, or one that gets a database transaction. */
export type StepKind = "plain" | "transaction";

export interface StepSettings {
  readonly timeoutMs: number | null;
  readonly onCrash: "rerun" | "pause";
  readonly input: unknown;
  readonly kind: StepKind;
  /** How long after it was first asked for. */
  readonly waitMs: number;
  /** It is declared, with a scope of its own: it may rest in the middle, and start over. */
  readonly declared: boolean;
  /** It runs a job, which is a run of its own. */
  readonly job: boolean;
  /** Its record says that it can be undone. */
  readonly undoable: boolean;
  /** How many may be executed at a time in this process; null: as many as there are. */
  readonly semaphore: Semaphore | null;
  /** Words for a person who finds the run paused because of it. */
  readonly explain?: (error: unknown) => string;
  /** What an exception means. */
  react(error: unknown, op: StepOp | undefined): Reaction;
}
