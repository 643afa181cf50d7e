/** What a turn needs from its worker, and the snapshot of the run that it is created from. */
import type { HeroPolicy } from "../../core/run/stored-schema.js";
import type { Logger } from "../../define/context.js";
import type { ErrorReporter } from "../../define/definition.js";
import type { Runtime } from "../../runtime/runtime.js";
import type { InboxRow, RunRecord, Store, StoredEvent } from "../../store/contract/store.js";
import type { GroupCommitter } from "../commit/group-committer.js";
import type { TurnEnd } from "../commit/run-writer.js";
import type { RunningAttempt } from "../step/running-attempts.js";
import type { WorkerWatchdog } from "../watchdog/watchdog.js";
import type { SuspectRunQueue } from "./suspect-run-queue.js";

/** What a worker knows about a workflow of which it has only the name. */
export interface WorkflowSummary {
  readonly queue: string;
  readonly version: string;
  readonly priority: number;
  readonly tags: readonly string[];
  /** Queues that its steps use or used before. */
  readonly stepQueues: readonly string[];
  readonly hero: HeroPolicy;
}

/** The settings of a job; null when no live worker has the job. */
export type JobInfo = { readonly queue: string; readonly priority: number; readonly tags: readonly string[] } | null;

/** The part of a turn that its worker uses. */
export interface HostedTurn {
  readonly runId: string;
  /** The worker stops: running steps may finish, then the next owner resumes the run. */
  stop(): void;
}

export interface TurnHost {
  readonly runtime: Runtime;
  readonly workerName: string;
  readonly store: Store;
  readonly committer: GroupCommitter;
  readonly log: Logger;
  /** Is told which run's code is being called, in case that code blocks the event loop. */
  readonly watchdog: WorkerWatchdog | null;
  readonly suspectRuns: SuspectRunQueue;
  /** The attempts that are running now; slow ones are reported. */
  readonly executing: Set<RunningAttempt>;
  /** In tests, the store's virtual time; null when real time is used. */
  readonly virtualClock: (() => number) | null;
  readonly maxDeliveries: number;
  /** How long idle code may take to make the calls that are in its log. */
  readonly replayGraceMs: number;
  /** After how long a run that a `PauseError` with a signal has paused is rechecked; null: never. */
  readonly recheckPausedMs: number | null;
  /** How long a canceled run waits for its running steps to end. */
  readonly cancelGraceMs: number;
  findRegistration(name: string): Promise<WorkflowSummary>;
  jobInfo(job: string): Promise<JobInfo>;
  /** Whether this worker executes steps of this route. */
  canExecute(route: string, version: string): boolean;
  /** False in tests that run a resumable step to its end without interruption. */
  allowsInterruptions(): boolean;
  /** Whether other runs may be waiting for a slot of this worker. */
  hasWaitingRuns(): boolean;
  /** Called when a step outside of another step's body has completed or was skipped; null without a listener. */
  readonly onStepEnded: ((turn: HostedTurn) => void) | null;
  readonly onError: ErrorReporter | null;
  readInbox(runId: string): Promise<readonly InboxRow[]>;
  onTurnEnd(turn: HostedTurn, turnEnd: TurnEnd): void;
}

export interface TurnSnapshot {
  readonly run: RunRecord;
  readonly deliveries: number;
  readonly log: readonly StoredEvent[];
  readonly inbox: readonly InboxRow[];
  /** The store's time at the claim. */
  readonly claimedAt: number;
}
