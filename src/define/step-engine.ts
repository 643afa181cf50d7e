/**
 * The interface between the worker and the authoring styles whose steps are declared (class and graph). The worker puts
 * a `StepEngine` into `ctx` under a symbol that the package does not export, because users must not call the engine.
 */

import type { Semaphore } from "../concurrency/semaphore.js";
import type { FrozenDag } from "../core/graph/frozen-dag.js";
import type { RetryPolicy } from "../core/naming/retry-policy.js";
import type { FlowControlAction } from "../core/run/flow-control.js";
import type { StepTools, WorkflowContext } from "./context.js";
import type { HeroRef } from "./hero.js";
import type { StepLimit } from "./limit.js";

export const stepEngineKey: unique symbol = Symbol.for("pawl.stepping");

export interface StepEngine {
  /** The declared steps in the log, in the order in which they started. */
  readonly recordedSteps: readonly RecordedStep[];
  /** Whether the run was executed as a chain or as a graph so far; null before its first execution. */
  readonly executedAs: "chain" | "graph" | null;
  /** The step that an operator moved the run to with `resumeAt`; null if the run was not moved. */
  readonly resumeAtStep: string | null;
  /** Runs the step unless its result is in the log. Resolves when the step is completed or skipped. */
  execute(step: DeclaredStep): Promise<unknown>;
  /** The graph that an operator imported into the run, which replaces the graph of the code; null if there is none. */
  readonly dag: FrozenDag | null;
  /** Starts the node's job on any worker that has the job. Resolves when the node is completed or skipped. */
  dispatch(node: DispatchedNode): Promise<unknown>;
  /** Registers the steps, so that the engine can call their `compensate` if the run fails or is canceled. */
  compensateWith(steps: Iterable<DeclaredStep>): void;
  recordOf(step: string): StepRecord | null;
  /** Records that a step does not run because a branch chose another case. */
  recordSkipped(step: string): void;
  /** Records that an open step is skipped because the definition lists it as removed. */
  skipRemovedStep(step: string): Promise<void>;
  /** Pauses the run until an operator resumes it or, if `step` is given, skips that step. The promise never resolves. */
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
  /** When the graph was frozen; the error that no worker has the job contains it. */
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
  /** The limit in which each attempt needs a slot; null: none. */
  readonly limit: StepLimit | null;
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
  /** Returns the same step with another job, for an imported graph in which an operator replaced the job. */
  withJob(job: string): DeclaredStep;
}

/** The attempts at a step before the attempt that threw. */
export interface StepHistory {
  /** The number of reattempts in a row that exceptions caused. */
  readonly reattempts: number;
  /** The number of attempts in a row that a transient error postponed. */
  readonly postponed: number;
  /** The number of failures that count against the retry policy. */
  readonly failures: number;
  /** The number of all failures, including those that do not count against the retry policy. */
  readonly totalFailures: number;
}

/** The state of a step in the log. `output` is a getter that decodes the stored text on access. */
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
  /** `countsAsReattempt`: whether the new attempt counts against `maxReattempts` or the attempts of the retry policy. */
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
  /** Whether the body is called again, in the same attempt, to continue after a durable wait. */
  readonly resumesAfterWait: boolean;
  /** The number of the job's run that this attempt uses (1, 2, …). It is increased only after a run of the job failed. */
  readonly jobRunNumber: number;
  /** Marks the job's run as failed, so that the next attempt starts another run of the job. */
  markJobFailed(): void;
  /** Runs user code that must not make recorded calls. `what` names that code in the error. */
  withoutRecords<T>(what: string, work: () => Promise<T>): Promise<T>;
  /** Calls user code in a watchdog frame, so that a blocked event loop is attributed to this step. */
  inFrame<T>(call: () => T): T;
  /** Leaves the step by throwing. The action takes effect even if user code catches what is thrown. */
  leave(action: FlowControlAction): never;
}

/** The cursor of one execution of a resumable step. */
export interface Checkpoints {
  readonly cursor: unknown;
  /** Whether an earlier execution of the step was interrupted or failed. */
  readonly resumed: boolean;
  /** Whether this execution moved the cursor. */
  readonly advanced: boolean;
  /** Moves the cursor durably and counts an item as done. Leaves the step if the step is to be interrupted. */
  set(cursor: unknown): Promise<void>;
  /** Makes the cursor durable, and leaves the step if the step is to be interrupted. */
  checkpoint(): Promise<void>;
  /** Moves the cursor and leaves the step; the next execution starts from the cursor after `waitMs`. */
  skipTo(cursor: unknown, waitMs: number): never;
  /** Sets the number of items, for progress. */
  total(count: number): void;
  /** Runs the code for one item; the recorded calls of the code belong to this item. */
  item(run: () => unknown): Promise<void>;
}
