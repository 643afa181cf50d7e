/** What a turn needs of the worker that has it, and what it is opened with. */
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

/** What is known of a workflow by its name alone. */
export interface WorkflowSummary {
  readonly queue: string;
  readonly version: string;
  readonly priority: number;
  readonly tags: readonly string[];
  /** Queues that its steps have, or had. */
  readonly stepQueues: readonly string[];
  readonly hero: HeroPolicy;
}

/** What there is to know of a job that some live worker has; null: none does. */
export type JobInfo = { readonly queue: string; readonly priority: number; readonly tags: readonly string[] } | null;

/** A turn, as far as its worker is concerned. */
export interface HostedTurn {
  readonly runId: string;
  /** The worker stops: what runs may finish, then the next owner goes on. */
  stop(): void;
}

export interface TurnHost {
  readonly runtime: Runtime;
  /** The name of the worker. */
  readonly workerName: string;
  readonly store: Store;
  readonly committer: GroupCommitter;
  readonly log: Logger;
  /** Knows whose code is being called, for the case that it does not return. */
  readonly watchdog: WorkerWatchdog | null;
  readonly suspectRuns: SuspectRunQueue;
  /** Steps that are executing now, for the watch for slow ones. */
  readonly executing: Set<RunningAttempt>;
  /** In tests, the store's time, which passes only when the test says so; null: real time passes. */
  readonly virtualClock: (() => number) | null;
  readonly maxDeliveries: number;
  /** How long code that is at rest may take to make the calls that its log has. */
  readonly replayGraceMs: number;
  /** When a run that a `PauseError` with a signal has paused is looked at again; null: never. */
  readonly recheckPausedMs: number | null;
  /** How long a canceled run waits for its steps to notice. */
  readonly cancelGraceMs: number;
  /** What is known of a workflow that is only named. */
  findRegistration(name: string): Promise<WorkflowSummary>;
  /** What is known of a job, if some live worker has it. */
  jobInfo(job: string): Promise<JobInfo>;
  /** Whether this worker may run steps of this route. */
  canExecute(route: string, version: string): boolean;
  /** False in tests that want a resumable step to go through at once. */
  allowsInterruptions(): boolean;
  /** Whether other runs wait for a place. */
  hasWaitingRuns(): boolean;
  /** A step outside of others' bodies has its result; null when nothing wants to know. */
  readonly onStepEnded: ((turn: HostedTurn) => void) | null;
  readonly onError: ErrorReporter | null;
  readInbox(runId: string): Promise<readonly InboxRow[]>;
  /** The turn is over, in this way. */
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
