/** What a turn needs from its worker, and the snapshot of the run that it is created from. */
import type { HeroPolicy } from "../../core/run/stored-schema.js";
import type { Logger } from "../../define/context.js";
import type { ErrorReporter } from "../../define/definition.js";
import type { Runtime } from "../../runtime/runtime.js";
import type { InboxRow, RunRecord, Store, StoredEvent } from "../../store/contract/store.js";
import type { RunTally } from "../../telemetry/run-tally.js";
import type { GroupCommitter } from "../commit/group-committer.js";
import type { TurnEnd } from "../commit/run-writer.js";
import type { StepSlots } from "../limits/step-slots.js";
import type { RunningAttempt } from "../step/running-attempts.js";
import type { WorkerWatchdog } from "../watchdog/watchdog.js";
import type { SuspectRunQueue } from "./suspect-run-queue.js";

/** The settings of a workflow that a worker needs in order to start runs of it, even if it does not have its code. */
export interface WorkflowSummary {
  readonly queue: string;
  readonly version: string;
  readonly priority: number;
  /** How soon its runs must begin; null: whenever a worker is free. */
  readonly startByMs: number | null;
  readonly tags: readonly string[];
  /** The queues that the workflow's steps use now or used in earlier code. */
  readonly stepQueues: readonly string[];
  readonly hero: HeroPolicy;
}

/** The settings of a job; null when no live worker has the job. */
export type JobInfo = { readonly queue: string; readonly priority: number; readonly tags: readonly string[] } | null;

/** The part of a turn that its worker uses. */
export interface HostedTurn {
  readonly runId: string;
  /** The route of the run's task while the turn lasts. */
  readonly route: string;
  /** Called when the worker stops: running steps may finish, then the run is released and its next owner resumes it. */
  stop(): void;
}

export interface TurnHost {
  readonly runtime: Runtime;
  readonly workerName: string;
  readonly store: Store;
  readonly committer: GroupCommitter;
  readonly log: Logger;
  readonly tally: RunTally;
  /** Receives the id of each run whose code is called, so that it can name the run if the code blocks the event loop. */
  readonly watchdog: WorkerWatchdog | null;
  readonly suspectRuns: SuspectRunQueue;
  /** The slots of limits that steps hold or wait for; they are created when the first step has a limit. */
  stepSlots(): StepSlots;
  /** The attempts that are running now; the slow-step recorder writes the start of those that take longer than 100 ms. */
  readonly executing: Set<RunningAttempt>;
  /** Returns the store's virtual time in tests that control the clock; null when real time is used. */
  readonly virtualClock: (() => number) | null;
  readonly maxDeliveries: number;
  /** If replayed code is idle for this long and has not made all calls that are in its log, the run is paused. */
  readonly replayGraceMs: number;
  /** How long a run that a `PauseError` has paused waits for its signal before the step runs once more; null: forever. */
  readonly recheckPausedMs: number | null;
  /** How long a canceled run waits for its running steps to end. */
  readonly cancelGraceMs: number;
  findRegistration(name: string): Promise<WorkflowSummary>;
  jobInfo(job: string): Promise<JobInfo>;
  /** Whether this worker may execute steps of this route. */
  canExecute(route: string, version: string): boolean;
  /** False in tests that run a resumable step to its end without interruption. */
  allowsInterruptions(): boolean;
  /** Whether other runs may be waiting for a slot of this worker. */
  hasWaitingRuns(): boolean;
  /**
   * Called when a top-level step, not one inside another step's body, has completed or was skipped; null except in
   * tests.
   */
  readonly onStepEnded: ((turn: HostedTurn) => void) | null;
  readonly onError: ErrorReporter | null;
  readInbox(runId: string): Promise<readonly InboxRow[]>;
  onTurnEnd(turn: HostedTurn, turnEnd: TurnEnd): void;
}

export interface TurnSnapshot {
  readonly run: RunRecord;
  /** The route by which the task was claimed. */
  readonly route: string;
  readonly deliveries: number;
  readonly log: readonly StoredEvent[];
  readonly inbox: readonly InboxRow[];
  /** The store's time at the claim. */
  readonly claimedAt: number;
}
