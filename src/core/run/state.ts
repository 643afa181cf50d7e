/** The state of a run, which `fold` computes from the run's log. */

import type { Failure } from "../encoding/error-record.js";
import type { FrozenDag } from "../graph/frozen-dag.js";
import type { AdoptedChildren, ChildrenOrigin } from "./stored-schema.js";

/** A signal that the run has received. */
export interface Signal {
  /** The number of the signal's `signal.received` event. */
  readonly seq: number;
  readonly name: string;
  /** When the run received the signal. */
  readonly at: number;
  /** The encoded data of the `signal.received` event. It is decoded when the signal is delivered to the code. */
  readonly data: string | null;
}

/** A step: a piece of user code whose result is recorded. */
export interface StepOp {
  readonly kind: "step";
  /** The number of the latest attempt in the log. */
  attempt: number;
  /** Failures that count against the retry policy. */
  countedFailures: number;
  /** All failures, including those that do not count against the retry policy. The backoff grows with this number. */
  totalFailures: number;
  /** The number of attempts in a row that ended with a `TransientError`. Any other failure resets it to 0. */
  consecutiveTransientFailures: number;
  /** The number of counted failures in a row. An attempt without a failure, or an operator's `resume`, resets it to 0. */
  consecutiveFailures: number;
  /**
   * The number of runs of the step's job that have failed or are no longer needed. The next attempt starts another run only
   * if this number has grown; after a worker's death it has not, so the attempt reuses the run.
   */
  discardedJobRuns: number;
  /** The number of continuations in a row that did not move the step's cursor. */
  continuationsWithoutProgress: number;
  /** In phase "awaiting_attempt": the step waits for its start time (`wait` of the step), not for a retry. */
  isScheduled: boolean;
  /** In phase "awaiting_attempt": the failure that paused the run. Until the run is resumed, the step is not attempted. */
  pauseCause: { readonly reason: string; readonly error: Failure | null } | null;
  /** Whether the last attempt requested that the step start over, so that the next attempt ignores the stored cursor. */
  isRewound: boolean;
  phase: "started" | "awaiting_attempt" | "completed" | "failed" | "skipped";
  /**
   * In phase "started": whether the worker died. If not, the step's body is running, or waits for a timer, signal or child.
   */
  isAbandoned: boolean;
  /** In phase "started": when the step's time limit ends, even if its body is waiting; null when the step has no limit. */
  deadlineAt: number | null;
  /** In phase "awaiting_attempt": when the next attempt is due. */
  dueAt: number | null;
  /**
   * The job that was dispatched as a separate run for the latest attempt; null when there is none, or the attempt has
   * ended.
   */
  job: string | null;
  /** The ancestry hash of the completed attempt, if the step is a node of a graph. */
  ancestryHash: string | null;
  /** The encoded data of the event that ended the step. It is decoded when the result is delivered to the code. */
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
  /** "any": one of the signals completes the wait. "all": only all signals together complete it. */
  readonly mode: "any" | "all";
  /** When the wait times out; null when it has no timeout. */
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
  /** How many children, counted from the first, may run. */
  releasedCount: number;
  /** How many children have ended. */
  endedCount: number;
  failedIndexes: number[];
  /**
   * The indexes of the children that have ended. A count would not do, because a message about a child may arrive twice.
   */
  readonly endedIndexes: Set<number>;
  /**
   * How many children ended before they were released (canceled, for example). Their end frees no slot for other children.
   */
  endedBeforeRelease: number;
  /** The children that were adopted from earlier runs of the lineage; null when there are none. */
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

/** What the log has recorded about one call that user code has made (a step, a sleep, a wait, a child …). */
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
  /** When the run is resumed without a signal or an operator. */
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
  /** The call's op when the result was recorded. After the code has started over, the call with this key has another op. */
  readonly op: Op | undefined;
}

/** What a retry has inherited from the failed run that it retries and, if that run was a retry too, from earlier runs. */
export interface Lineage {
  /** The first run of the lineage. Idempotency keys begin with its id. */
  readonly rootRunId: string;
  /** By step: the run whose id the step's idempotency key begins with, if that run is not the root. */
  readonly keyRunIds: ReadonlyMap<string, string>;
  /** By call: the calls of earlier runs whose children belong to this call, the newest first. */
  readonly childrenOrigins: ReadonlyMap<string, readonly ChildrenOrigin[]>;
  /** By step that was compensated: its former ancestry hashes, which the hashes of inherited steps are computed from. */
  readonly undoneHashes: ReadonlyMap<string, readonly string[]>;
}

/** A worker whose event loop the run's code has blocked. */
export interface BlockedWorker {
  readonly workerName: string;
  /** The worker's id and epoch, because a message about a session may arrive twice. */
  readonly session: string;
}

export interface RunState {
  /** The number of events that were folded, which is also the number of the last event. */
  seq: number;
  /** The calls of user code, by their key. */
  readonly ops: Map<string, Op>;
  /** The calls whose result is in the log, in the order of the log. The results are delivered to the code in this order. */
  readonly answeredCalls: AnsweredCall[];
  /** The received signals that no wait or pause has consumed yet, the oldest first. */
  readonly pendingSignals: Signal[];
  /** The keys of all received signals that were sent with a key; null when there are none. */
  signalKeys: Set<string> | null;
  /** When the run's code was first executed; null when it has not been. */
  startedAt: number | null;
  /** Set once a schema has accepted the input. If the schema transformed the input, `value` is the transformed input. */
  checkedInput: { readonly isTransformed: boolean; readonly value: unknown } | null;
  /** How the declared steps are ordered; null for a function, whose steps are not declared. */
  stepStructure: "chain" | "graph" | null;
  /** Calls with `added: true` that the code made, on a replay, before it had repeated all calls of the log. */
  addedCalls: Set<string> | null;
  /** The names of calls that were added to or removed from the code, where an operator has accepted the difference. */
  acceptedNames: Set<string> | null;
  /** By the name of a renamed step in the code: the name of the step in the log. */
  logNameByCodeName: Map<string, string> | null;
  /** The signature of the declared steps that the run was last executed with. */
  stepSignature: string | null;
  /** The failed run that this run retries. */
  forkedFrom: string | null;
  /** What a retry has inherited; null for a run that is no retry. */
  lineage: Lineage | null;
  /** Calls of the retried run that were not inherited. The code makes them again, although the log has later calls. */
  callsToRedo: Set<string> | null;
  /** The graph that was last imported; null when the graph is the run's input or is defined in code. */
  importedDag: FrozenDag | null;
  /** The keys of timers and waits that were started by the bodies of declared steps. */
  bodyWaits: Set<string> | null;
  /** By declared step: the calls that its body has made in the present attempt. */
  bodyCalls: Map<string, Set<string>> | null;
  /** The step that an operator last moved the run to. */
  movedToStep: string | null;
  /** When the time limit of the run ends; null when the run has no limit. */
  deadlineAt: number | null;
  paused: Pause | null;
  /** By step ("" for the handler): the signal that ended its last pause. Removed when the step ends or pauses again. */
  resumeSignals: Map<string, Signal> | null;
  cancelRequest: { readonly reason: string | null; readonly force: boolean; readonly code: string | null } | null;
  /** The runs that begin when this run has ended; null when there are none. */
  queuedStarts: string[] | null;
  /** The start deadline that a later start has set; undefined when none has replaced what the run was started with. */
  replacedStartBy: number | null | undefined;
  /** Whether the start time passed while the run was paused, so that the run starts as soon as it is resumed. */
  becameDueWhilePaused: boolean;
  /** The error that the run fails with because it has exceeded its time limit. */
  timeoutFailure: Failure | null;
  /** When the handler is executed again, because it requested another attempt; null when it has not. */
  reattemptAt: number | null;
  /** How often in a row a `TransientError` of the handler has postponed the run, without a result in between. */
  consecutiveTransientFailures: number;
  ending: Ending | null;
  /** Steps that have a compensation, in the order in which they were completed. */
  readonly undoableSteps: string[];
  /** How often the handler has started over. Each time its calls are forgotten, and new children get different ids. */
  generation: number;
  /** By declared step: how often its body has started over. */
  stepGenerations: Map<string, number> | null;
  /** By step: the number of its last attempt before the code started over. The next attempt gets the next number. */
  attemptsBeforeRewind: Map<string, number> | null;
  /** The number of the delivery in which a worker last recorded progress. Later deliveries count as deaths of workers. */
  lastProductiveDelivery: number;
  /** The number of the latest delivery of the run to a worker, as far as the log has recorded it. */
  delivery: number;
  /** The number of the event that says so; 0 if there is none. */
  recoveredSeq: number;
  /**
   * The workers whose event loop was blocked, by the place in the code: a step, "" for the handler, null when this run is
   * only one of several suspects. A completed step clears its own entry and those of "" and null; an operator's `resume`
   * clears all of them.
   */
  blockedWorkers: Map<string | null, BlockedWorker> | null;
  /**
   * Grows with every event that is a reason for a worker to call the workflow's code. The parking note stores the version
   * that the code has seen.
   */
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
    queuedStarts: null,
    replacedStartBy: undefined,
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
    recoveredSeq: 0,
    blockedWorkers: null,
    wakeVersion: 0,
  };
}

/** Whether the op is a step whose job was dispatched as a separate run that has not ended. */
export const isDispatched = (op: Op): op is StepOp & { readonly job: string } =>
  op.kind === "step" && op.phase === "started" && op.job !== null;

/** Whether the log has a result for the call, which a replay can return to the code. */
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

/** Whether the log has the step's result. A step has at most one result; `fold` ignores later results. */
export const hasEnded = (op: StepOp) => op.phase === "completed" || op.phase === "failed" || op.phase === "skipped";

/** The status of the run while no worker owns it. */
export function statusOf(state: RunState): "pending" | "waiting" | "paused" | Ending["status"] {
  if (state.ending !== null) return state.ending.status;
  if (state.paused !== null) return "paused";
  return state.startedAt === null ? "pending" : "waiting";
}
