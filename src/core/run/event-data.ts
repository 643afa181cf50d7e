/** The data of the events of a log: the column `data` of the table `pawl_events`. Part of the schema in `stored-schema.ts`. */
import type { Failure } from "../encoding/error-record.js";
import type { FrozenDag } from "../graph/frozen-dag.js";
import type { Range } from "./ranges.js";

/** The data of each type of event. User values are `unknown`. Times are relative (`…Ms`) to the event's own timestamp. */
export interface EventData {
  /** The code of the run is executed for the first time. */
  "run.started": {
    /** When a worker took the run, because the event is written later, together with the first result of the code. */
    startedAt?: number;
    /** The time limit of the run. */
    timeoutMs?: number;
    /** How the declared steps are ordered; absent for a function. */
    steps?: "chain" | "graph";
    /** The signature of the declared steps. */
    shape?: string;
    /** A schema has accepted the input. */
    checked?: true;
    /** The input as the schema transformed it; absent when the schema did not change it. */
    input?: unknown;
  };
  /** A schema has accepted the input of a run that had already started; `input` as in `run.started`. */
  "input.checked": { input?: unknown };
  /** The run is a retry of a run that failed, and has inherited its completed calls. */
  "run.forked": {
    /** The failed run. */
    from: string;
    /** The first run of the lineage. Idempotency keys begin with its id, and random numbers are seeded with it. */
    root: string;
    /** Steps whose idempotency keys begin with another run's id, because their effect under the first key was undone. */
    keyRunIds?: Record<string, string>;
    /** Calls in the log of the failed run that were not inherited, and are made again. */
    redo: string[];
    /** Calls that are made again, and the calls of earlier runs whose children belong to them. */
    children?: Record<string, ChildrenOrigin[]>;
    /** Ancestry hashes of steps that were undone, which inherited steps refer to. */
    hashes?: Record<string, string[]>;
  };
  /** A worker took the run over from a worker that died. Executions that had started are abandoned. */
  "run.recovered": {
    /** How often the run has been delivered to a worker. */
    deliveries: number;
  };
  /** The event loop of the run's worker was blocked for a lease. The event's node is the step whose code was running. */
  "run.blocked": {
    /** The name of the worker. */
    worker: string;
    /** The id and epoch of the worker. */
    session: string;
    /** Another run, whose code has blocked the event loop. */
    by?: string;
    /** It is not known which run's code has blocked the event loop. */
    suspected?: true;
  };
  /** The run is paused. The event's node is the step that it is paused at. */
  "run.paused": {
    reason: string;
    /** The error that paused the run. */
    error?: Failure;
    /** The name of a signal that resumes the run. */
    resumeOn?: string;
    /** After how long the run is resumed by itself. */
    recheckMs?: number;
    /** The handler has called `ctx.pause()`, and continues behind that call when the run is resumed. */
    continuesWhenResumed?: boolean;
  };
  /** The run is resumed. */
  "run.resumed": {
    by: "operator" | "signal" | "recheck";
    /** The number of the signal that resumed the run, and is consumed by that. */
    signal?: number;
    /** The step that the operator has resumed; other steps that have paused the run stay paused. Absent: all steps. */
    onlyStep?: string;
    /** Names of calls that only the code has, or only the log, and that the operator has accepted. */
    accept?: readonly string[];
    /** The new name in the code, by the name in the log. */
    renamed?: Readonly<Record<string, string>>;
  };
  /** The run is to be canceled. */
  "run.cancel_requested": {
    reason?: string;
    /** The run ends at once, without compensation. */
    force?: true;
  };
  /** The run has exceeded its time limit, and fails after its compensations and its `onFailure` are done. */
  "run.expired": { error: Failure };
  /** The handler is executed again after `waitMs`. */
  "run.reattempted": {
    waitMs: number;
    /** The handler starts over: its calls are forgotten. */
    rewind: boolean;
    /** The reason is a `TransientError`. */
    transient?: true;
  };
  /** The wait of a `run.reattempted` is over. */
  "run.woken": Record<string, never>;
  /** The start time of the run came while it was paused. The run starts when it is resumed. */
  "run.became_due": Record<string, never>;
  /** An operator has moved the run to the step `to`. Its calls are forgotten, and it continues from that step. */
  "run.moved": { to: string };
  /** One of the next three ends a log. They are not stored, but made from the columns of the run's row. */
  "run.completed": { output?: unknown };
  "run.failed": { error: Failure };
  "run.canceled": { reason?: string };

  /** The step is next, and waits for its start time. */
  "step.scheduled": { waitMs: number };
  /** An attempt at the step has started. */
  "step.started": {
    /** The time limit of a declared step, also while its body waits. */
    timeoutMs?: number;
    /** The name of the worker. */
    worker?: string;
  };
  /** The step has completed. The order of these fields in the stored text is fixed, see `step-completed.ts`. */
  "step.completed": {
    /** The code has a compensation for the step. */
    undo?: true;
    /** The ancestry hash, see `ancestry-hash.ts`. */
    hash?: string;
    /** An operator has provided the output. */
    by?: "operator";
    /** How long the attempt took. */
    ms?: number;
    output?: unknown;
    /** The step option `input`, which is recorded for readers of the log. */
    input?: unknown;
  };
  /** An attempt at the step has failed. */
  "step.failed": {
    error: Failure;
    ms?: number;
    /** The delay before the next attempt; absent when the step has failed for good. */
    retryMs?: number;
    /** The error is a `TransientError`, which does not count against the retry policy. */
    transient?: boolean;
    /** The run of the step's job failed, was canceled or timed out, so the next attempt starts another run. */
    jobRunEnded?: true;
    /** The attempt has moved its cursor, so failures and backoff are counted from here. */
    cursorMoved?: true;
    /** The name of the worker. */
    worker?: string;
  };
  /** The step is executed again after `waitMs`, and its last attempt is no failure. */
  "step.reattempted": {
    waitMs: number;
    ms?: number;
    /** The step starts over: the calls of its body are forgotten. */
    rewind?: true;
    /** The attempt did not move its cursor. */
    cursorUnmoved?: true;
  };
  /** The step is skipped. */
  "step.skipped": {
    /** An operator has skipped the step, or the code lists it as removed. */
    by?: "operator" | "code";
    error?: Failure;
    ms?: number;
    worker?: string;
  };
  /** The step, or a condition of its workflow, has canceled the run. */
  "step.canceled": { ms?: number };

  /** This attempt at the node is executed by a run of the job, on any worker that has the job. */
  "node.dispatched": { job: string };
  /** An operator wants another attempt at a node that has failed or was skipped. */
  "node.reopened": Record<string, never>;
  /** An operator has replaced the graph of the run. */
  "dag.imported": { dag: FrozenDag };

  /** The code sleeps for `ms`, or until an instant. */
  "timer.started": { ms?: number; until?: number };
  "timer.fired": Record<string, never>;
  /** A signal has arrived. A later signal with the same `key` is dropped. */
  "signal.received": { name: string; payload?: unknown; key?: string };
  /** The code waits for any or for all of these signals, for at most `timeoutMs`. */
  "wait.started": { names: string[]; mode: "any" | "all"; timeoutMs?: number };
  /** The wait has consumed signals: the numbers of their `signal.received` events, in the order of `names` for "all". */
  "wait.completed": { signals: number[] };
  /** The signals did not arrive in time. */
  "wait.timed_out": Record<string, never>;
  /** A timer or wait has lost a race, and the code no longer waits for it. */
  "wait.withdrawn": Record<string, never>;

  /** The code has started a child. */
  "child.started": { runId: string; workflow: string };
  "child.completed": { output?: unknown };
  "child.failed": { error: Failure };
  "child.canceled": { reason?: string };
  /** The code has started a map: a child for each of `count` items. */
  "map.started": {
    workflow: string;
    count: number;
    /** How many children may run at the same time. */
    concurrency: number;
    /** How many children may fail without failing the map. */
    tolerate: number;
    /** How many children were created. */
    spawned: number;
    /** How many children, from the first, may run. */
    released: number;
    /** Children of earlier runs of the lineage that were adopted with their results. */
    from?: AdoptedChildren[];
    /** The indexes of adopted children that have failed. */
    failed?: Range[];
  };
  /** More children were created; `spawned` and `released` as in `map.started`. */
  "map.spawned": { spawned: number; released: number };
  /** More children may run. */
  "map.released": { released: number };
  /** The indexes of the children that have ended since the last such event. */
  "map.settled": { completed: [number, number][]; failed: [number, number][] };

  /** The run is executed by code whose declared steps have changed. */
  "shape.changed": {
    /** The new signature. */
    shape: string;
    /** Steps that the run has recorded and that the code no longer has. */
    removedSteps?: string[];
    /** New steps that the run has already passed: it has recorded a step that now comes after them. */
    passedSteps?: string[];
  };
  /** The case that a branch has chosen. */
  "branch.chosen": { choice: string };
  /** `ctx.patched()` has returned true: the run takes the new path of the code. */
  "patch.applied": Record<string, never>;
  /** The code has made this call (`added: true`) before calls that the log has. Its result is delivered out of order. */
  "call.added": Record<string, never>;
}

/** A call whose children are meant; the ids of the children are computed from it. */
export interface ChildrenOrigin {
  /** The run that has made the call. */
  run: string;
  /** The name by which the children know the call. */
  node: string;
}

/** Children of a map that were adopted, with their results, from an earlier run of the lineage. */
export interface AdoptedChildren extends ChildrenOrigin {
  indexes: Range[];
}

export type EventType = keyof EventData;

/** One of several events of a commit. They are stored as one row of the type "batch", whose data is a list of these. */
export type PackedEvent = [
  type: string,
  node: string | null,
  attempt: number | null,
  outcome: string | null,
  data: string | null,
];
