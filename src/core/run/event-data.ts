/**
 * The data of the events of a log, which is the column `data` of the table `pawl_events`. These types are part of the
 * schema in `stored-schema.ts`.
 */
import type { Failure } from "../encoding/error-record.js";
import type { FrozenDag } from "../graph/frozen-dag.js";
import type { Range } from "./ranges.js";

/** The data of each type of event. User values are `unknown`. Fields called `…Ms` are relative to the event's timestamp. */
export interface EventData {
  /** A worker calls the code of the run for the first time. */
  "run.started": {
    /**
     * When a worker took the run. The event's own timestamp is later, because it is written with the code's first result.
     */
    startedAt?: number;
    /** The time limit of the run. */
    timeoutMs?: number;
    /** How the declared steps are ordered; absent for a function-style workflow, which declares no steps. */
    steps?: "chain" | "graph";
    /** The signature of the declared steps. */
    shape?: string;
    /** A schema has accepted the input. */
    checked?: true;
    /** The input as the schema transformed it; absent when the schema did not change it. */
    input?: unknown;
  };
  /**
   * A schema has accepted the input of a run that had already started. `input` has the same meaning as in `run.started`.
   */
  "input.checked": { input?: unknown };
  /** The run is a retry of a run that failed, and has inherited its completed calls. */
  "run.forked": {
    /** The failed run. */
    from: string;
    /** The first run of the lineage. Idempotency keys begin with its id, and random numbers are seeded with it. */
    root: string;
    /**
     * By step: the id of the run that the step's idempotency key begins with, for steps that were compensated. Their effect
     * under the key of the first run was undone.
     */
    keyRunIds?: Record<string, string>;
    /** Calls in the log of the failed run that were not inherited, and are made again. */
    redo: string[];
    /** By call that is made again: the calls of earlier runs whose children are reused for this call. */
    children?: Record<string, ChildrenOrigin[]>;
    /** By step that was undone: its former ancestry hashes, which the hashes of inherited steps are computed from. */
    hashes?: Record<string, string[]>;
  };
  /** A worker took the run over from a worker that died. Executions that had started are abandoned. */
  "run.recovered": {
    /** How often the run has been delivered to a worker. */
    deliveries: number;
  };
  /**
   * The event loop of the run's worker was blocked until its lease expired. The event's node is the step that was running.
   */
  "run.blocked": {
    /** The name of the worker. */
    worker: string;
    /** The id and epoch of the worker. */
    session: string;
    /** The id of another run whose code has blocked the event loop; absent when this run's code did, or may have. */
    by?: string;
    /** True when it is not known which run's code has blocked the event loop. */
    suspected?: true;
  };
  /** The run is paused. The event's node is the step that it is paused at. */
  "run.paused": {
    reason: string;
    /** The error that paused the run. */
    error?: Failure;
    /** The name of a signal that resumes the run. */
    resumeOn?: string;
    /** After how long the run is resumed without a signal or an operator. */
    recheckMs?: number;
    /** The handler has called `ctx.pause()`, and continues after that call when the run is resumed. */
    continuesWhenResumed?: boolean;
  };
  /** The run is resumed. */
  "run.resumed": {
    by: "operator" | "signal" | "recheck";
    /** The number of the signal that resumed the run. The signal is consumed and completes no later wait. */
    signal?: number;
    /**
     * The only step that the operator has resumed: the other steps stay paused. When absent, all paused steps are resumed.
     */
    onlyStep?: string;
    /** Names of calls that exist only in the code or only in the log. The operator has accepted these differences. */
    accept?: readonly string[];
    /** By the name of a step in the log: the step's new name in the code. */
    renamed?: Readonly<Record<string, string>>;
  };
  /** A person or program that gave its name, a reason or both has sent a command. The events that follow are its effect. */
  "command.accepted": {
    /** The type of the command, such as "pause" or "signal". */
    command: string;
    /** The person or program. */
    by?: string;
    /** Why the command was given. A pause and a cancel also have the reason in their own event. */
    reason?: string;
  };
  /** A client, the parent run or the workflow's own code has requested that the run be canceled. */
  "run.cancel_requested": {
    reason?: string;
    /** The run ends at once, without compensation. */
    force?: true;
    /** Why the run is canceled, for programs: "EXPIRED", "LIMIT_SKIPPED" or "LIMIT_SUPERSEDED". */
    code?: string;
  };
  /** A start that has the key of this run, or its hero, waits for the end of this run. */
  "run.start_queued": {
    /** The run that begins when this run has ended. */
    run: string;
  };
  /** What the run was started with was replaced by a later start with its key, before the run began. */
  "run.start_replaced": {
    /** The instant by which the run must begin now; absent when there is none. */
    startBy?: number;
  };
  /**
   * The run has exceeded its time limit, or a limit was full for it. It fails after its compensations and its `onFailure` are
   * done.
   */
  "run.expired": { error: Failure };
  /** The handler is executed again after `waitMs`. */
  "run.reattempted": {
    waitMs: number;
    /** The handler starts over: its calls are forgotten. */
    rewind: boolean;
    /** The handler is executed again because it threw a `TransientError`. */
    transient?: true;
  };
  /** The wait of a `run.reattempted` is over. */
  "run.woken": Record<string, never>;
  /** The start time of the run passed while the run was paused. The run starts when it is resumed. */
  "run.became_due": Record<string, never>;
  /**
   * An operator has moved the run to the step `to`. The calls of the run are forgotten, and it continues from that step.
   */
  "run.moved": { to: string };
  /**
   * `run.completed`, `run.failed` or `run.canceled` ends a log. It is not stored, but created from columns of the run's
   * row.
   */
  "run.completed": { output?: unknown };
  "run.failed": { error: Failure };
  "run.canceled": { reason?: string; code?: string };

  /** The step is the next to be executed, and waits for its start time. */
  "step.scheduled": { waitMs: number };
  /** An attempt at the step has started. */
  "step.started": {
    /** The time limit of a declared step. The time in which its body waits (for a timer, signal or child) is included. */
    timeoutMs?: number;
    /** The name of the worker. */
    worker?: string;
  };
  /** The step has completed. The order of these fields in the stored text is fixed, see `step-completed.ts`. */
  "step.completed": {
    /** The workflow's code defines a compensation for the step. */
    undo?: true;
    /** The ancestry hash, see `ancestry-hash.ts`. */
    hash?: string;
    /** An operator has provided the output. */
    by?: "operator";
    /** How long the attempt took. */
    ms?: number;
    output?: unknown;
    /** The value of the step option `input`, which is recorded only so that it can be read in the log. */
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
    /** The attempt has moved its cursor, so this failure is counted as the first, and the backoff starts again. */
    cursorMoved?: true;
    /** The name of the worker. */
    worker?: string;
  };
  /** The step is executed again after `waitMs`, although its last attempt did not fail. */
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
  /** The step's code, an exception rule or a condition has canceled the run at this step. */
  "step.canceled": { ms?: number };

  /** This attempt at the node is executed by a separate run of the job, on any worker that has the job. */
  "node.dispatched": { job: string };
  /** An operator has requested another attempt at a node that has failed or was skipped. */
  "node.reopened": Record<string, never>;
  /** An operator has replaced the graph of the run. */
  "dag.imported": { dag: FrozenDag };

  /** The code sleeps for `ms` milliseconds, or until the instant `until`. */
  "timer.started": { ms?: number; until?: number };
  "timer.fired": Record<string, never>;
  /** A signal has arrived. A later signal with the same `key` is dropped. */
  "signal.received": { name: string; payload?: unknown; key?: string };
  /** The code waits for any or for all of these signals, for at most `timeoutMs`. */
  "wait.started": { names: string[]; mode: "any" | "all"; timeoutMs?: number };
  /**
   * The wait has consumed `signals`: the numbers of their `signal.received` events, in mode "all" in the order of `names`.
   */
  "wait.completed": { signals: number[] };
  /** The signals did not arrive in time. */
  "wait.timed_out": Record<string, never>;
  /** A timer or wait has lost a race, and the code no longer waits for it. */
  "wait.withdrawn": Record<string, never>;

  /** The code has started a child. */
  "child.started": { runId: string; workflow: string };
  "child.completed": { output?: unknown };
  "child.failed": { error: Failure };
  "child.canceled": { reason?: string; code?: string };
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
    /** How many children, counted from the first, may run. */
    released: number;
    /** Children of earlier runs of the lineage that were adopted with their results. */
    from?: AdoptedChildren[];
    /** The indexes of adopted children that have failed. */
    failed?: Range[];
  };
  /** More children were created. `spawned` and `released` are the new totals of these fields of `map.started`. */
  "map.spawned": { spawned: number; released: number };
  /** More children may run: `released` is the new total. */
  "map.released": { released: number };
  /** The indexes of the children that have completed or failed since the last `map.settled` event of this map. */
  "map.settled": { completed: [number, number][]; failed: [number, number][] };

  /** A worker executes the run with code whose declared steps differ from those that the run was last executed with. */
  "shape.changed": {
    /** The new signature. */
    shape: string;
    /** Steps that the run has recorded and that the code no longer has. */
    removedSteps?: string[];
    /** New steps that the run has already passed: it has recorded a step that now comes after them. */
    passedSteps?: string[];
  };
  /** A branch has chosen the case `choice`. */
  "branch.chosen": { choice: string };
  /** `ctx.patched()` has returned true: the run takes the new path of the code. */
  "patch.applied": Record<string, never>;
  /**
   * The code made this new call (`added: true`) before it repeated all calls of the log. The result is delivered outside
   * the order of the log, because the log has later calls that were recorded earlier.
   */
  "call.added": Record<string, never>;
}

/** The call that started children. The ids of the children are computed from the two fields. */
export interface ChildrenOrigin {
  /** The run that has made the call. */
  run: string;
  /** The name of the call in the rows of its children, see `childNode`. */
  node: string;
}

/** Children of a map that were adopted, with their results, from an earlier run of the lineage. */
export interface AdoptedChildren extends ChildrenOrigin {
  indexes: Range[];
}

export type EventType = keyof EventData;

/**
 * One event of a commit with several events. They are stored as one row of type "batch", whose data is a list of packed
 * events.
 */
export type PackedEvent = [
  type: string,
  node: string | null,
  attempt: number | null,
  outcome: string | null,
  data: string | null,
];
