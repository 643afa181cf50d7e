/**
 * What an authoring style whose steps are declared asks of the engine. The engine hangs it into `ctx` under a symbol
 * that the package does not export: it is not for users.
 */

import type { Semaphore } from "../concurrency/semaphore.js";
import type { FrozenDag } from "../core/graph/frozen-dag.js";
import type { RetryPolicy } from "../core/naming/retry-policy.js";
import type { FlowControlAction } from "../core/run/flow-control.js";
import type { StepTools, WorkflowContext } from "./context.js";
import type { HeroRef } from "./hero.js";

export const stepEngineKey: unique symbol = Symbol.for("pawl.stepping");

export interface StepEngine {
  /** The declared steps that the log knows, the one that was begun last at the end. */
  readonly recordedSteps: readonly RecordedStep[];
  /** As what the run has been executed so far; null when it begins now. */
  readonly executedAs: "chain" | "graph" | null;
  /** The step that an operator sent the run to. */
  readonly resumeAtStep: string | null;
  /** Runs the step unless the log has its result; comes back when it is completed or skipped. */
  execute(step: DeclaredStep): Promise<unknown>;
  /** The graph that was imported into the run, if any was: it goes before the code's. */
  readonly dag: FrozenDag | null;
  /** Has the node executed by a worker that has its job; comes back when it is completed or skipped. */
  dispatch(node: DispatchedNode): Promise<unknown>;
  /** Says how steps are undone, before any of them is needed. */
  compensateWith(steps: Iterable<DeclaredStep>): void;
  recordOf(step: string): StepRecord | null;
  /** Records that a step is not run, because of how a branch was decided. */
  recordSkipped(step: string): void;
  /** A step that the run was at is not in the code any more, and the code knows. */
  skipRemovedStep(step: string): Promise<void>;
  /** Something only a person can solve: the run is paused, at this step if there is one to pass over. Never comes back. */
  pauseWithError(error: Error, step?: string): Promise<never>;
  /** An operator has said that a recorded step which the code does not have any more is to be passed over. */
  isAccepted(step: string): boolean;
  /** The log has steps that the code does not know, and the code has steps that could be the same ones. Never comes back. */
  pauseForMismatch(unrecorded: readonly string[], vanished: readonly string[]): Promise<never>;
}

/** A node of a frozen graph. */
export interface DispatchedNode {
  readonly id: string;
  readonly name: string;
  readonly job: string;
  readonly args: unknown;
  /** When the graph was frozen: said in the error when the job is gone. */
  readonly frozenAt: string;
}

export interface RecordedStep {
  readonly name: string;
  readonly phase: "completed" | "skipped" | "open";
}

/** One step of a class or graph, in the terms of the engine. */
export interface DeclaredStep {
  readonly name: string;
  /** How long after the step before it. */
  readonly waitMs: number;
  readonly timeoutMs: number | null;
  readonly onCrash: "rerun" | "pause";
  /** null: as the workflow says. */
  readonly queue: string | null;
  readonly priority: number | null;
  /** How many may be executed at a time in this process; null: as many as there are. */
  readonly semaphore: Semaphore | null;
  /** null: it has no cursor. */
  readonly checkpoints: CheckpointOptions | null;
  /** The job that it runs instead of code of its own; null: it has code. */
  readonly job: StepJob | null;
  body(scope: StepScope): unknown;
  /** Undoes it; null when it cannot be undone. */
  readonly compensate: ((scope: StepScope, output: unknown) => unknown) | null;
  /** How often undoing it is tried. */
  readonly retry: RetryPolicy;
  /** What an exception means. `random` is for the jitter. */
  react(error: unknown, history: StepHistory, random: number): Reaction;
}

export interface StepJob {
  readonly name: string;
  /** The same step with another job: an operator has put that into its graph. */
  withJob(job: string): DeclaredStep;
}

/** What went before this attempt. */
export interface StepHistory {
  /** How many reattempts there were in a row because of exceptions. */
  readonly reattempts: number;
  /** How many attempts in a row a passing error has put off. */
  readonly postponed: number;
  /** Failures that count against a retry policy; and all of them. */
  readonly failures: number;
  readonly totalFailures: number;
}

/** What the log says of a step. Its output is decoded when it is asked for. */
export type StepRecord =
  | { readonly phase: "completed"; readonly output: unknown }
  | { readonly phase: "skipped" | "failed" | "open" };

export interface CheckpointOptions {
  readonly maxRuntimeMs: number | null;
  readonly maxIterations: number | null;
  /** Go on while the cursor is being written. */
  readonly relaxed: boolean;
}

export type Reaction =
  /** `counts`: it is one of the reattempts that are limited. */
  | { readonly kind: "reattempt"; readonly waitMs: number; readonly countsAsReattempt: boolean }
  | { readonly kind: "fail" }
  | { readonly kind: "pause" }
  | { readonly kind: "skip" }
  | { readonly kind: "cancel" };

/** What the body of a declared step works with. */
export interface StepScope {
  /** A context of its own: what is asked for through it is recorded as a part of the step. */
  readonly ctx: WorkflowContext<any>;
  readonly hero: HeroRef | null;
  readonly execution: StepTools & { readonly id: string; readonly name: string };
  /** Of a step with a cursor. */
  readonly checkpoints: Checkpoints | null;
  /** The body had begun to wait for something durable, and is run again to go on there: it is the same attempt. */
  readonly resumesAfterWait: boolean;
  /** Which run of its job this attempt asks for (1, 2, …). It is the same one until that run has failed. */
  readonly jobRunNumber: number;
  /** The run of the job has failed: the next attempt is to start another one. */
  markJobFailed(): void;
  /** Runs code that must not wait for anything durable, nor record anything. */
  withoutRecords<T>(what: string, work: () => Promise<T>): Promise<T>;
  /** Calls user code that is not the first to be called in the body: until it returns, it is known whose it is. */
  inFrame<T>(call: () => T): T;
  /** Leaves the step, noted so that no `catch` can make it unsaid. */
  leave(action: FlowControlAction): never;
}

/** The cursor of one execution: where it stands, and how to move it. */
export interface Checkpoints {
  readonly cursor: unknown;
  readonly resumed: boolean;
  readonly advanced: boolean;
  /** Moves the cursor, counts an item as done, and makes that durable. Leaves the step when it is to be interrupted. */
  set(cursor: unknown): Promise<void>;
  /** Makes durable what there is, and leaves the step when it is to be interrupted. */
  checkpoint(): Promise<void>;
  /** Moves the cursor and leaves the step; its successor begins there, so much later. */
  skipTo(cursor: unknown, waitMs: number): never;
  total(count: number): void;
  /** Runs the code for one item: what it does durably is recorded as done for this item. */
  item(run: () => unknown): Promise<void>;
}
