/**
 * The interface between the worker and the authoring styles whose steps are declared (class and graph). The worker puts
 * a `StepEngine` into `ctx` under a symbol that the package does not export, because it is not for users.
 */

import type { Semaphore } from "../concurrency/semaphore.js";
import type { FrozenDag } from "../core/graph/frozen-dag.js";
import type { RetryPolicy } from "../core/naming/retry-policy.js";
import type { FlowControlAction } from "../core/run/flow-control.js";
import type { StepTools, WorkflowContext } from "./context.js";
import type { HeroRef } from "./hero.js";

export const stepEngineKey: unique symbol = Symbol.for("pawl.stepping");

export interface StepEngine {
  /** The declared steps in the log, in the order in which they started. */
  readonly recordedSteps: readonly RecordedStep[];
  /** Whether the run was executed as a chain or as a graph so far; null before its first execution. */
  readonly executedAs: "chain" | "graph" | null;
  /** The step that an operator moved the run to with `resumeAt`. */
  readonly resumeAtStep: string | null;
  /** Runs the step unless the log has its result. Resolves when the step is completed or skipped. */
  execute(step: DeclaredStep): Promise<unknown>;
  /** The graph that an operator imported into the run; it replaces the graph of the code. */
  readonly dag: FrozenDag | null;
  /** Hands the node to any worker that has its job. Resolves when the node is completed or skipped. */
  dispatch(node: DispatchedNode): Promise<unknown>;
  /** Registers the steps whose `compensate` may be needed later. */
  compensateWith(steps: Iterable<DeclaredStep>): void;
  recordOf(step: string): StepRecord | null;
  /** Records that a step does not run because a branch chose another case. */
  recordSkipped(step: string): void;
  /** Records that an open step is skipped because the definition lists it as removed. */
  skipRemovedStep(step: string): Promise<void>;
  /** Pauses the run until an operator acts. With `step`, `skip()` can skip that step. The promise never resolves. */
  pauseWithError(error: Error, step?: string): Promise<never>;
  /** Whether an operator accepted, in `resume({ accept })`, that the code lacks this recorded step. */
  isAccepted(step: string): boolean;
  /** Pauses the run because steps of the log could be steps of the code under other names. The promise never resolves. */
  pauseForMismatch(unrecorded: readonly string[], vanished: readonly string[]): Promise<never>;
}

/** A node of a frozen graph. */
export interface DispatchedNode {
  readonly id: string;
  readonly name: string;
  readonly job: string;
  readonly args: unknown;
  /** When the graph was frozen, for the error that no worker has the job any more. */
  readonly frozenAt: string;
}

export interface RecordedStep {
  readonly name: string;
  readonly phase: "completed" | "skipped" | "open";
}

/** One step of a class or graph, in the form that the engine executes. */
export interface DeclaredStep {
  readonly name: string;
  /** The delay after the previous step. */
  readonly waitMs: number;
  readonly timeoutMs: number | null;
  readonly onCrash: "rerun" | "pause";
  /** The queue of the step; null: that of the workflow. */
  readonly queue: string | null;
  /** The priority while the run waits for the step; null: that of the run. */
  readonly priority: number | null;
  /** Limits how many executions run at the same time in this process; null: no limit. */
  readonly semaphore: Semaphore | null;
  /** The checkpoint settings of a resumable step; null for other steps. */
  readonly checkpoints: CheckpointOptions | null;
  /** The job that the step runs; null: the step has code of its own. */
  readonly job: StepJob | null;
  body(scope: StepScope): unknown;
  /** Undoes the step; null if the step has no compensation. */
  readonly compensate: ((scope: StepScope, output: unknown) => unknown) | null;
  /** The retry policy of `compensate`. */
  readonly retry: RetryPolicy;
  /** Decides what follows an exception. `random` is for the jitter. */
  react(error: unknown, history: StepHistory, random: number): Reaction;
}

export interface StepJob {
  readonly name: string;
  /** The same step with another job, which an operator put into an imported graph. */
  withJob(job: string): DeclaredStep;
}

/** The attempts at a step before the one that threw. */
export interface StepHistory {
  /** Reattempts in a row that exceptions caused. */
  readonly reattempts: number;
  /** Attempts in a row that a transient error postponed. */
  readonly postponed: number;
  /** Failures that count against the retry policy. */
  readonly failures: number;
  /** All failures, also those that do not count against the retry policy. */
  readonly totalFailures: number;
}

/** The state of a step in the log. The output is a getter that decodes on access. */
export type StepRecord =
  | { readonly phase: "completed"; readonly output: unknown }
  | { readonly phase: "skipped" | "failed" | "open" };

export interface CheckpointOptions {
  readonly maxRuntimeMs: number | null;
  readonly maxIterations: number | null;
  /** Whether the step continues while its cursor is being written. */
  readonly relaxed: boolean;
}

export type Reaction =
  /** `countsAsReattempt`: whether it counts against `maxReattempts` or the attempts of the retry policy. */
  | { readonly kind: "reattempt"; readonly waitMs: number; readonly countsAsReattempt: boolean }
  | { readonly kind: "fail" }
  | { readonly kind: "pause" }
  | { readonly kind: "skip" }
  | { readonly kind: "cancel" };

/** One execution of a declared step: the argument of its body. */
export interface StepScope {
  /** The context of the step; its calls are recorded as parts of the step. */
  readonly ctx: WorkflowContext<any>;
  readonly hero: HeroRef | null;
  readonly execution: StepTools & { readonly id: string; readonly name: string };
  /** The cursor of a resumable step; null for other steps. */
  readonly checkpoints: Checkpoints | null;
  /** Whether the body runs again to continue after a durable wait, as the same attempt. */
  readonly resumesAfterWait: boolean;
  /** The number of the job's run that this attempt uses (1, 2, …). It grows only after a run of the job failed. */
  readonly jobRunNumber: number;
  /** Notes that the job's run failed, so the next attempt starts another one. */
  markJobFailed(): void;
  /** Runs user code that must not make recorded calls. `what` names it in the error. */
  withoutRecords<T>(what: string, work: () => Promise<T>): Promise<T>;
  /** Calls user code in a watchdog frame, so that a blocked event loop is attributed to this step. */
  inFrame<T>(call: () => T): T;
  /** Leaves the step. The action is noted first, so a `catch` in user code cannot revoke it. */
  leave(action: FlowControlAction): never;
}

/** The cursor of one execution of a resumable step. */
export interface Checkpoints {
  readonly cursor: unknown;
  /** Whether an earlier execution of the step was interrupted or failed. */
  readonly resumed: boolean;
  /** Whether this execution moved the cursor. */
  readonly advanced: boolean;
  /** Moves the cursor durably and counts an item as done. Leaves the step if it is to be interrupted. */
  set(cursor: unknown): Promise<void>;
  /** Makes the cursor durable, and leaves the step if it is to be interrupted. */
  checkpoint(): Promise<void>;
  /** Moves the cursor and leaves the step; the next execution starts there after `waitMs`. */
  skipTo(cursor: unknown, waitMs: number): never;
  /** Sets the number of items, for progress. */
  total(count: number): void;
  /** Runs the code for one item; the recorded calls of the code belong to this item. */
  item(run: () => unknown): Promise<void>;
}
