/** What a log says about its run: see `fold` for how it gets there. */

import type { Failure } from "../encoding/error-record.js";
import type { FrozenDag } from "../graph/frozen-dag.js";
import type { AdoptedChildren, ChildrenOrigin } from "./stored-schema.js";

export interface Signal {
  readonly seq: number;
  readonly name: string;
  readonly at: number;
  /** The `signal.received` event's data, decoded when it is delivered. */
  readonly data: string | null;
}

/** A step: a piece of user code whose result is recorded. */
export interface StepOp {
  readonly kind: "step";
  /** The latest attempt that the log knows of. */
  attempt: number;
  /** Failures that count against the retry policy. */
  countedFailures: number;
  /** Failures, countable or not: what the backoff grows with. */
  totalFailures: number;
  /** Attempts in a row that a passing error (`TransientError`) has put off. A failure that counts sets it back to 0. */
  consecutiveTransientFailures: number;
  /** Failures in a row that count: an attempt that ended otherwise, and an operator's `resume`, begin a new row. */
  consecutiveFailures: number;
  /** Runs of its job that are of no use any more. An attempt whose worker died spends none: the next one waits for the same run. */
  discardedJobRuns: number;
  /** Continuations in a row that did not move the cursor. */
  continuationsWithoutProgress: number;
  /** In phase "awaiting_attempt": it waits for its own time, not for another attempt. */
  isScheduled: boolean;
  /** In phase "awaiting_attempt": its run was paused because of it, and no operator has released it since. Then it does not begin by itself. */
  pauseCause: { readonly reason: string; readonly error: Failure | null } | null;
  /** Its last attempt asked to start over. */
  isRewound: boolean;
  phase: "started" | "awaiting_attempt" | "completed" | "failed" | "skipped";
  /** In phase "started": its worker died. Otherwise it rests in the middle, waiting for something durable. */
  isAbandoned: boolean;
  /** In phase "started": when its time is up, if that matters while it rests. */
  deadlineAt: number | null;
  /** When the next attempt is due, in phase "awaiting_attempt". */
  dueAt: number | null;
  /** The job that its latest attempt was handed to, until its end is known. */
  job: string | null;
  /** The ancestry of its completed attempt, if it is a node of a graph. */
  ancestryHash: string | null;
  /** The data of the event that ended it, decoded when it is delivered. */
  data: string | null;
}

interface TimerOp {
  readonly kind: "timer";
  phase: "open" | "fired" | "withdrawn";
  readonly dueAt: number;
}

export interface WaitOp {
  readonly kind: "wait";
  phase: "open" | "completed" | "timed_out" | "withdrawn";
  readonly names: readonly string[];
  readonly mode: "any" | "all";
  readonly dueAt: number | null;
  signals: readonly Signal[];
}

interface ChildOp {
  readonly kind: "child";
  phase: "open" | "completed" | "failed" | "canceled";
  readonly runId: string;
  readonly workflow: string;
  data: string | null;
}

export interface MapOp {
  readonly kind: "map";
  phase: "open" | "settled" | "failed";
  readonly workflow: string;
  readonly count: number;
  readonly concurrency: number;
  readonly tolerate: number;
  /** Children that exist, those among them that may run, those that have ended. */
  spawnedCount: number;
  releasedCount: number;
  endedCount: number;
  failedIndexes: number[];
  /** By index, which children have ended: a message may come twice. */
  readonly endedIndexes: Set<number>;
  /** How many children have ended although they were not released yet (canceled, say): they make no room for others. */
  endedBeforeRelease: number;
  /** Children that were taken over from other runs. */
  readonly adopted: readonly AdoptedChildren[] | null;
}

interface BranchOp {
  readonly kind: "branch";
  readonly choice: string;
}

/** `ctx.pause()` of the handler itself: once resumed, the code goes on behind it. */
interface PauseOp {
  readonly kind: "pause";
}

interface PatchOp {
  readonly kind: "patch";
}

export type Op = StepOp | TimerOp | WaitOp | ChildOp | MapOp | BranchOp | PauseOp | PatchOp;

export interface Pause {
  readonly reason: string;
  readonly at: number;
  readonly error: Failure | null;
  readonly node: string | null;
  readonly resumeOn: string | null;
  readonly recheckAt: number | null;
}

export interface Ending {
  readonly status: "completed" | "failed" | "canceled";
  readonly at: number;
  readonly data: string | null;
}

/** `op` tells it from an answer to the same call before the code forgot it and asked again. */
export interface AnsweredCall {
  readonly key: string;
  readonly at: number;
  readonly op: Op | undefined;
}

/** What a run has from the runs that it goes on for. */
export interface Lineage {
  /** The first of them. */
  readonly rootRunId: string;
  /** By step: the run whose id its idempotency key begins with, where that is not the root. */
  readonly keyRunIds: ReadonlyMap<string, string>;
  /** By call: where its children are, the newest first. */
  readonly childrenOrigins: ReadonlyMap<string, readonly ChildrenOrigin[]>;
  /** By step that was undone: the ancestry that it had, which steps that were taken over refer to. */
  readonly undoneHashes: ReadonlyMap<string, readonly string[]>;
}

export interface BlockedWorker {
  /** By its name. */
  readonly workerName: string;
  /** Its id and epoch: a message about it may come twice. */
  readonly session: string;
}

export interface RunState {
  /** How many events have been folded. */
  seq: number;
  /** What the calls of user code led to, by their key. */
  readonly ops: Map<string, Op>;
  /** The calls that have an answer, in the order of the log: user code gets them in this order, live and on replay. */
  readonly answeredCalls: AnsweredCall[];
  /** Signals that came and were not consumed, in order. */
  readonly pendingSignals: Signal[];
  /** Of the signals that came with one; none before the first. */
  signalKeys: Set<string> | null;
  startedAt: number | null;
  /** A schema has accepted its input; `value` is what it made of it, unless that is what was given. */
  checkedInput: { readonly isTransformed: boolean; readonly value: unknown } | null;
  /** Its steps are declared. */
  stepStructure: "chain" | "graph" | null;
  /** Calls that began although the log had others that the code had not made yet. */
  addedCalls: Set<string> | null;
  /** Names of calls that were added to the code, or taken out of it, and that an operator has accepted. */
  acceptedNames: Set<string> | null;
  /** By the name in the code, the name that the log has. */
  logNameByCodeName: Map<string, string> | null;
  /** The signature of those that it was last executed with. */
  stepSignature: string | null;
  /** The run that failed and that this one goes on for. */
  forkedFrom: string | null;
  /** Of a run that goes on for another one, see `run.forked`. */
  lineage: Lineage | null;
  /** Calls that the other run had made and that were not kept: they are made again, whatever else the log has. */
  callsToRedo: Set<string> | null;
  /** The graph that was imported into it; null when it goes by the one it was born with, or by its code. */
  importedDag: FrozenDag | null;
  /** Timers and waits that bodies of declared steps have begun, by their keys. */
  bodyWaits: Set<string> | null;
  /** By declared step, the calls that its body has begun in the attempt that runs or rests. */
  bodyCalls: Map<string, Set<string>> | null;
  /** The step that an operator sent it to; null when it never was. */
  movedToStep: string | null;
  deadlineAt: number | null;
  paused: Pause | null;
  /** By step, "" for the handler: the signal that ended its last pause. It is kept until the step ends, or pauses again. */
  resumeSignals: Map<string, Signal> | null;
  cancelRequest: { readonly reason: string | null; readonly force: boolean } | null;
  /** The time to begin came while the run was paused. */
  becameDueWhilePaused: boolean;
  /** Its time limit has passed, and this is what it fails with. */
  timeoutFailure: Failure | null;
  /** When the handler asked to be run again. */
  reattemptAt: number | null;
  /** How often in a row a passing error of the handler has put the run off, without it getting anywhere in between. */
  consecutiveTransientFailures: number;
  ending: Ending | null;
  /** Steps that know how to be undone, in the order in which they were completed. */
  readonly undoableSteps: string[];
  /** How often the handler rewound: it forgets its steps, but attempts go on counting and children get new ids. */
  generation: number;
  /** The same of declared steps that started over, each by itself. */
  stepGenerations: Map<string, number> | null;
  /** By step, the number of its last attempt before the handler rewound: attempts go on counting from there. */
  attemptsBeforeRewind: Map<string, number> | null;
  /** At which delivery of the run a worker last recorded something. Deaths count from there. */
  lastProductiveDelivery: number;
  /** The latest delivery that the log knows of. */
  delivery: number;
  /**
   * Where its code has blocked the event loop of a worker, and whose: a step, "" for the handler, null when it is only one of
   * several runs that may have. A step that completes after all, and an operator's `resume`, clear it.
   */
  blockedWorkers: Map<string | null, BlockedWorker> | null;
  /** Grows with everything that gives user code a reason to run; a worker that parks a run notes how far it had come. */
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

/** Whether it was handed to a worker that has not reported its end. */
export const isDispatched = (op: Op): op is StepOp & { readonly job: string } =>
  op.kind === "step" && op.phase === "started" && op.job !== null;

/** Whether the code that made this call has an answer in the log. */
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

/** At most one recorded result per step: the first stands. */
export const hasEnded = (op: StepOp) => op.phase === "completed" || op.phase === "failed" || op.phase === "skipped";

/** The status that belongs in the run's row while no worker owns the run. */
export function statusOf(state: RunState): "pending" | "waiting" | "paused" | Ending["status"] {
  if (state.ending !== null) return state.ending.status;
  if (state.paused !== null) return "paused";
  return state.startedAt === null ? "pending" : "waiting";
}
