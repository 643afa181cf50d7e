/** The state of a run, which `fold` computes from the run's log. */

import type { Failure } from "../encoding/error-record.js";
import type { FrozenDag } from "../graph/frozen-dag.js";
import type { AdoptedChildren, ChildrenOrigin } from "./stored-schema.js";

/** A signal that the run has received. */
export interface Signal {
  /** The number of its `signal.received` event. */
  readonly seq: number;
  readonly name: string;
  /** When it was received. */
  readonly at: number;
  /** The encoded data of its `signal.received` event; decoded when the signal is delivered to the code. */
  readonly data: string | null;
}

/** A step: a piece of user code whose result is recorded. */
export interface StepOp {
  readonly kind: "step";
  /** The number of the latest attempt in the log. */
  attempt: number;
  /** Failures that count against the retry policy. */
  countedFailures: number;
  /** All failures, also those that do not count. The backoff grows with this number. */
  totalFailures: number;
  /** Attempts in a row that ended with a `TransientError`. A failure that counts resets it. */
  consecutiveTransientFailures: number;
  /** Counted failures in a row. An attempt that ends without a failure resets it, and so does an operator's `resume`. */
  consecutiveFailures: number;
  /** Runs of the step's job that have failed or are no longer needed. After a worker's death the next attempt reuses the run. */
  discardedJobRuns: number;
  /** Continuations in a row that did not move the cursor. */
  continuationsWithoutProgress: number;
  /** In phase "awaiting_attempt": the step waits for its start time (`wait` of the step), not for a retry. */
  isScheduled: boolean;
  /** In phase "awaiting_attempt": the failure that paused the run. Until an operator resumes it, the step is not attempted. */
  pauseCause: { readonly reason: string; readonly error: Failure | null } | null;
  /** The last attempt asked to start over from the beginning. */
  isRewound: boolean;
  phase: "started" | "awaiting_attempt" | "completed" | "failed" | "skipped";
  /** In phase "started": the worker died. If false, the step's body waits for something durable, or is running. */
  isAbandoned: boolean;
  /** In phase "started": when the time limit of the step is reached, also while its body waits; null without a limit. */
  deadlineAt: number | null;
  /** In phase "awaiting_attempt": when the next attempt is due. */
  dueAt: number | null;
  /** The job that executes the latest attempt on any worker, until that attempt has ended; otherwise null. */
  job: string | null;
  /** The ancestry hash of the completed attempt, if the step is a node of a graph. */
  ancestryHash: string | null;
  /** The encoded data of the event that ended the step; decoded when the result is delivered to the code. */
  data: string | null;
}

interface TimerOp {
  readonly kind: "timer";
  phase: "open" | "fired" | "withdrawn";
  readonly dueAt: number;
}

/** A wait for signals. */
export interface WaitOp {
  readonly kind: "wait";
  phase: "open" | "completed" | "timed_out" | "withdrawn";
  readonly names: readonly string[];
  /** Whether one of the signals completes the wait, or only all of them. */
  readonly mode: "any" | "all";
  /** When the wait times out; null: never. */
  readonly dueAt: number | null;
  /** The signals that completed the wait. */
  signals: readonly Signal[];
}

interface ChildOp {
  readonly kind: "child";
  phase: "open" | "completed" | "failed" | "canceled";
  /** The id of the child. */
  readonly runId: string;
  readonly workflow: string;
  /** The encoded data of the event that ended the child. */
  data: string | null;
}

/** A map: one child run per item. */
export interface MapOp {
  readonly kind: "map";
  phase: "open" | "settled" | "failed";
  readonly workflow: string;
  /** The number of items. */
  readonly count: number;
  /** How many children may run at the same time. */
  readonly concurrency: number;
  /** How many children may fail without failing the map. */
  readonly tolerate: number;
  /** How many children were created. */
  spawnedCount: number;
  /** How many children, from the first, may run. */
  releasedCount: number;
  /** How many children have ended. */
  endedCount: number;
  failedIndexes: number[];
  /** The children that have ended, by index, because a message about a child may arrive twice. */
  readonly endedIndexes: Set<number>;
  /** How many children ended before they were released (canceled, for example). Their end frees no slot for others. */
  endedBeforeRelease: number;
  /** Children that were adopted from earlier runs of the lineage. */
  readonly adopted: readonly AdoptedChildren[] | null;
}

interface BranchOp {
  readonly kind: "branch";
  readonly choice: string;
}

/** A `ctx.pause()` of the handler. After the run is resumed, the replayed call returns at once. */
interface PauseOp {
  readonly kind: "pause";
}

interface PatchOp {
  readonly kind: "patch";
}

/** What the log has recorded about one call of user code. */
export type Op = StepOp | TimerOp | WaitOp | ChildOp | MapOp | BranchOp | PauseOp | PatchOp;

/** Why a run is paused, and what resumes it. */
export interface Pause {
  readonly reason: string;
  /** When the run was paused. */
  readonly at: number;
  /** The error that paused the run, if there was one. */
  readonly error: Failure | null;
  /** The step that the run is paused at; null when the pause is not about a step. */
  readonly node: string | null;
  /** The name of a signal that resumes the run. */
  readonly resumeOn: string | null;
  /** When the run is resumed by itself. */
  readonly recheckAt: number | null;
}

/** How a run ended. */
export interface Ending {
  readonly status: "completed" | "failed" | "canceled";
  readonly at: number;
  /** The encoded data of the terminal event. */
  readonly data: string | null;
}

/** A call whose result is in the log. */
export interface AnsweredCall {
  readonly key: string;
  readonly at: number;
  /** The call's op at that time. It distinguishes the result from one that was recorded before the code started over. */
  readonly op: Op | undefined;
}

/** What a retry has inherited from the runs that it retries: a failed run, the run which that one retried, and so on. */
export interface Lineage {
  /** The first run of the lineage. Idempotency keys begin with its id. */
  readonly rootRunId: string;
  /** By step: the run whose id the idempotency key begins with, where that is not the root. */
  readonly keyRunIds: ReadonlyMap<string, string>;
  /** By call: the calls of earlier runs whose children belong to this call, the newest first. */
  readonly childrenOrigins: ReadonlyMap<string, readonly ChildrenOrigin[]>;
  /** By step that was compensated: its former ancestry hashes, because inherited steps refer to them. */
  readonly undoneHashes: ReadonlyMap<string, readonly string[]>;
}

/** A worker whose event loop the run's code has blocked. */
export interface BlockedWorker {
  readonly workerName: string;
  /** The worker's id and epoch, because a message about a session may arrive twice. */
  readonly session: string;
}

export interface RunState {
  /** The number of events that were folded. */
  seq: number;
  /** The calls of user code, by their key. */
  readonly ops: Map<string, Op>;
  /** The calls whose result is in the log, in the order of the log. The code gets the results in this order. */
  readonly answeredCalls: AnsweredCall[];
  /** Received signals that were not consumed, the oldest first. */
  readonly pendingSignals: Signal[];
  /** The keys of all received signals that had one; null when there are none. */
  signalKeys: Set<string> | null;
  /** When the code was first executed. */
  startedAt: number | null;
  /** The input was accepted by its schema. If the schema transformed it, `value` is the result. */
  checkedInput: { readonly isTransformed: boolean; readonly value: unknown } | null;
  /** How the declared steps are ordered; null for a function, whose steps are not declared. */
  stepStructure: "chain" | "graph" | null;
  /** Calls that were started while the log still had calls that the code had not made (`added: true`). */
  addedCalls: Set<string> | null;
  /** Names of calls that were added to or removed from the code, and that an operator has accepted. */
  acceptedNames: Set<string> | null;
  /** Renamed steps: the name in the log, by the name in the code. */
  logNameByCodeName: Map<string, string> | null;
  /** The signature of the declared steps that the run was last executed with. */
  stepSignature: string | null;
  /** The failed run that this run retries. */
  forkedFrom: string | null;
  /** What a retry has inherited; null for a run that is no retry. */
  lineage: Lineage | null;
  /** Calls of the retried run that were not inherited. They are made again, although the log has later calls. */
  callsToRedo: Set<string> | null;
  /** The graph that was last imported; null when the graph is the run's input, or comes from code. */
  importedDag: FrozenDag | null;
  /** The keys of timers and waits that were started by the bodies of declared steps. */
  bodyWaits: Set<string> | null;
  /** By declared step: the calls that its body has made in the present attempt. */
  bodyCalls: Map<string, Set<string>> | null;
  /** The step that an operator last moved the run to. */
  movedToStep: string | null;
  /** When the time limit of the run is reached. */
  deadlineAt: number | null;
  paused: Pause | null;
  /** By step ("" for the handler): the signal that ended its last pause, kept until the step ends or pauses again. */
  resumeSignals: Map<string, Signal> | null;
  cancelRequest: { readonly reason: string | null; readonly force: boolean } | null;
  /** The start time of the run came while the run was paused, so it starts as soon as it is resumed. */
  becameDueWhilePaused: boolean;
  /** The error that the run fails with because it has exceeded its time limit. */
  timeoutFailure: Failure | null;
  /** When the handler is executed again because it asked for another attempt. */
  reattemptAt: number | null;
  /** How often in a row a `TransientError` of the handler has postponed the run, without a result in between. */
  consecutiveTransientFailures: number;
  ending: Ending | null;
  /** Steps that have a compensation, in the order in which they were completed. */
  readonly undoableSteps: string[];
  /** How often the handler has started over. Its calls are forgotten, attempts keep counting, and children get new ids. */
  generation: number;
  /** By declared step: how often its body has started over. */
  stepGenerations: Map<string, number> | null;
  /** By step: the number of its last attempt before the code started over. Later attempts count from there. */
  attemptsBeforeRewind: Map<string, number> | null;
  /** The delivery of the run in which a worker last recorded progress. Deaths of workers are counted from there. */
  lastProductiveDelivery: number;
  /** The number of the latest delivery in the log. */
  delivery: number;
  /**
   * The workers whose event loop was blocked, by the place in the code: a step, "" for the handler, null when this run is
   * only one of several suspects. A completed step clears its own entry and those of "" and null; an operator's `resume`
   * clears all of them.
   */
  blockedWorkers: Map<string | null, BlockedWorker> | null;
  /** Grows with every event that gives the code a reason to run. The parking note stores the version that the code has seen. */
  wakeVersion: number;
}

export function initialState(): RunState {
  return {
    seq: 0,
    ops: new Map(),
    answeredCalls: [],
    pendingSignals: [],
    signalKeys: null,
    startedAt: null,
    checkedInput: null,
    stepStructure: null,
    addedCalls: null,
    acceptedNames: null,
    logNameByCodeName: null,
    stepSignature: null,
    forkedFrom: null,
    lineage: null,
    callsToRedo: null,
    importedDag: null,
    bodyWaits: null,
    bodyCalls: null,
    movedToStep: null,
    deadlineAt: null,
    paused: null,
    resumeSignals: null,
    cancelRequest: null,
    becameDueWhilePaused: false,
    timeoutFailure: null,
    reattemptAt: null,
    consecutiveTransientFailures: 0,
    ending: null,
    undoableSteps: [],
    generation: 0,
    stepGenerations: null,
    attemptsBeforeRewind: null,
    lastProductiveDelivery: 1,
    delivery: 1,
    blockedWorkers: null,
    wakeVersion: 0,
  };
}

/** Whether the step's job was dispatched as a run of its own that has not ended. */
export const isDispatched = (op: Op): op is StepOp & { readonly job: string } =>
  op.kind === "step" && op.phase === "started" && op.job !== null;

/** Whether the log has a result for the code that made this call. */
export function isAnswered(op: Op): boolean {
  switch (op.kind) {
    case "step":
      return hasEnded(op);
    case "branch":
      return true;
    case "timer":
      return op.phase === "fired";
    case "wait":
      return op.phase === "completed" || op.phase === "timed_out";
    case "child":
    case "map":
      return op.phase !== "open";
    default:
      return false;
  }
}

/** Whether the step has its result. A step has at most one; later ones are ignored. */
export const hasEnded = (op: StepOp) => op.phase === "completed" || op.phase === "failed" || op.phase === "skipped";

/** The status of the run while no worker owns it. */
export function statusOf(state: RunState): "pending" | "waiting" | "paused" | Ending["status"] {
  if (state.ending !== null) return state.ending.status;
  if (state.paused !== null) return "paused";
  return state.startedAt === null ? "pending" : "waiting";
}
