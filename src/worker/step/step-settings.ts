/** The settings of a step, in the form in which the engine uses them for all authoring styles. */
import type { Semaphore } from "../../concurrency/semaphore.js";
import type { StepOp } from "../../core/run/state.js";
import type { StepLimit } from "../../define/limit.js";
import type { Reaction } from "../../define/step-engine.js";

/** Whether the step's function receives a database transaction. */
export type StepKind = "plain" | "transaction";

export interface StepSettings {
  readonly timeoutMs: number | null;
  readonly onCrash: "rerun" | "pause";
  readonly input: unknown;
  readonly kind: StepKind;
  /** How long the step waits after its first call before its first attempt starts. */
  readonly waitMs: number;
  /** Whether the step is declared (class or graph style): its body may make durable calls, wait between them, and rewind. */
  readonly declared: boolean;
  /** Whether the step executes a job in a separate run. */
  readonly job: boolean;
  /** Whether the step has a compensation; the `step.completed` event records it. */
  readonly undoable: boolean;
  /** Limits how many attempts at the step run at a time in this process; null: no limit. */
  readonly semaphore: Semaphore | null;
  /** The limit in which each attempt needs a slot, in all processes together; null: none. */
  readonly limit: StepLimit | null;
  /** Creates the pause reason for operators, instead of the default text. */
  readonly explain?: (error: unknown) => string;
  /** Decides whether the step is retried, skipped, failed, paused or canceled after an exception. */
  react(error: unknown, op: StepOp | undefined): Reaction;
}
