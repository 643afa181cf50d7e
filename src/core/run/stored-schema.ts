/**
 * The schema of the JSON that Pawl keeps in its tables, by column. A run that was started by an earlier version of Pawl is
 * read by the code of today, so a change of a shape raises `storedVersion` and leaves the older shape readable.
 * `test/stored-schema` fails when a shape has changed and the version has not.
 *
 * Three formats are defined elsewhere, because they also leave the tables: how any value becomes text
 * (`encoding/tagged-json.ts`), errors (`encoding/error-record.ts`), and frozen graphs, which name a version of their own
 * (`graph/frozen-dag.ts`).
 */
import type { Failure } from "../encoding/error-record.js";
import type { FrozenDag } from "../graph/frozen-dag.js";
import type { Range } from "./ranges.js";

/** The version of everything below. */
export const storedSchemaVersion = 1;

// ── pawl_events.data ─────────────────────────────────────────────────────────────────────────────────────────────────

/** What each type of event carries. Values of the user are `unknown`; instants are relative (`…Ms`), see `at`. */
export interface EventData {
  /**
   * Code began to run for the first time. `steps`: they are declared, as a chain that a run can be sent along, or a graph,
   * and `shape` is the signature of that. `began`: when it was taken up, by the store's clock; the event itself is written
   * together with what the code did first. `checked`: a schema has accepted its input; `input`: what the schema made of it,
   * if that is not what was given.
   */
  "run.started": {
    startedAt?: number;
    timeoutMs?: number;
    steps?: "chain" | "graph";
    shape?: string;
    checked?: true;
    input?: unknown;
  };
  /** `checked` and `input` of `run.started`, of a run that had started before a schema could answer, or before its workflow had one. */
  "input.checked": { input?: unknown };
  /**
   * It goes on where another run has ended, with all that was done there for good. `root` is the first run of that line:
   * idempotency keys begin with its id and random numbers are drawn from it. `roots`: the steps whose keys begin with
   * another run's id, because what they did under the first key was undone. `redo`: what the other log has and was not
   * kept. `children`: calls that are made again, with the places where earlier runs of the line have children of theirs.
   * `hashes`: the ancestry of steps that were undone and are not kept, but that others which are kept were built upon.
   */
  "run.forked": {
    from: string;
    root: string;
    keyRunIds?: Record<string, string>;
    redo: string[];
    children?: Record<string, ChildrenOrigin[]>;
    hashes?: Record<string, string[]>;
  };
  /** A worker took the run over from one that died: executions that had begun are abandoned. */
  "run.recovered": { deliveries: number };
  /**
   * It was being executed by this worker when the worker's event loop stood still for a lease. The node is the step whose
   * code was running. `session`: the worker's id and epoch. `by`: it was the code of that other run. `suspected`: it is not
   * known whose code it was.
   */
  "run.blocked": { worker: string; session: string; by?: string; suspected?: true };
  /** With a node: the step it is stuck at. `passable`: the handler's own `ctx.pause()`, which it passes once resumed. */
  "run.paused": {
    reason: string;
    error?: Failure;
    resumeOn?: string;
    recheckMs?: number;
    continuesWhenResumed?: boolean;
  };
  /**
   * `signal` is the number of the signal that did it, and is consumed by that. `only`: the one step that the operator has
   * released; others that had paused the run stay as they are. `accept`: names of calls that the code has and the log
   * lacks, or the other way round, and that is as it should be. `renamed`: by the name in the log, the name in the code.
   */
  "run.resumed": {
    by: "operator" | "signal" | "recheck";
    signal?: number;
    onlyStep?: string;
    accept?: readonly string[];
    renamed?: Readonly<Record<string, string>>;
  };
  /** `force`: it ends at once, without compensation. */
  "run.cancel_requested": { reason?: string; force?: true };
  /** Its time limit has passed. What it did has still to be undone, and its `onFailure` to be called. */
  "run.expired": { error: Failure };
  /** The handler asked to run again later; with `rewind` it forgets what it had done. `transient`: a passing error put it off. */
  "run.reattempted": { waitMs: number; rewind: boolean; transient?: true };
  /** The time came at which the handler had asked to run again. */
  "run.woken": Record<string, never>;
  /** The time to begin came while it was paused: it begins when it is resumed. */
  "run.became_due": Record<string, never>;
  /** An operator sent it to this step: it forgets what it had done and goes on from there. */
  "run.moved": { to: string };
  /** The last event of a log is one of these three. It is not stored: it is made from the end of the run in its row. */
  "run.completed": { output?: unknown };
  "run.failed": { error: Failure };
  "run.canceled": { reason?: string };

  /** It is the next one, and waits for its time. */
  "step.scheduled": { waitMs: number };
  /** `timeoutMs`: how long a declared step may take from here on, whether it runs or rests. `worker`: its name. */
  "step.started": { timeoutMs?: number; worker?: string };
  /**
   * `undo`: the code knows how to undo it. `hash`: its ancestry, see `ancestry-hash.ts`. `by`: an operator gave its output.
   * The order of these in the text is fixed, see `step-completed.ts`.
   */
  "step.completed": { undo?: true; hash?: string; by?: "operator"; ms?: number; output?: unknown; input?: unknown };
  /**
   * With `retryMs` the step runs again that much later; without, this is its end. `spent`: the run of its job has failed,
   * was canceled or took too long, so the next attempt starts another one. `moved`: the attempt has moved its cursor, so
   * failures and backoff count from here. `worker`: the name of the one that ran it.
   */
  "step.failed": {
    error: Failure;
    ms?: number;
    retryMs?: number;
    transient?: boolean;
    jobRunEnded?: true;
    cursorMoved?: true;
    worker?: string;
  };
  /**
   * Again after `waitMs`, without that being a failure. `rewind`: from its beginning. `still`: it moved its cursor no
   * further than its predecessor had.
   */
  "step.reattempted": { waitMs: number; ms?: number; rewind?: true; cursorUnmoved?: true };
  /** `by: "code"`: its class says that it was removed. */
  "step.skipped": { by?: "operator" | "code"; error?: Failure; ms?: number; worker?: string };
  /** The step, or a condition of its workflow, canceled the run. */
  "step.canceled": { ms?: number };

  /** This attempt at a node was handed to a worker that has the job; its run tells what became of it. */
  "node.dispatched": { job: string };
  /** It had ended without being completed, and an operator wants it to be tried again. */
  "node.reopened": Record<string, never>;
  /** An operator repaired the graph that the run goes by. */
  "dag.imported": { dag: FrozenDag };

  /** A sleep of `ms` from here on, or until an instant. */
  "timer.started": { ms?: number; until?: number };
  /** The time of the sleep has come. */
  "timer.fired": Record<string, never>;
  /** A signal arrived. `key`: a second one with the same key is dropped. */
  "signal.received": { name: string; payload?: unknown; key?: string };
  /** The code waits for any or for all of these signals, for at most `timeoutMs`. */
  "wait.started": { names: string[]; mode: "any" | "all"; timeoutMs?: number };
  /** `signals` are the numbers of the `signal.received` events that were consumed, in the order of `names` for "all". */
  "wait.completed": { signals: number[] };
  /** The signals did not arrive in time. */
  "wait.timed_out": Record<string, never>;
  /** A timer or wait lost a race and is not waited for any more. */
  "wait.withdrawn": Record<string, never>;

  /** The code has started this run and waits for it. */
  "child.started": { runId: string; workflow: string };
  /** How the child ended is one of these three. */
  "child.completed": { output?: unknown };
  "child.failed": { error: Failure };
  "child.canceled": { reason?: string };
  /** A call over `count` items. `tolerate`: how many may fail. `spawned` children exist, the first `released` of them may run. */
  "map.started": {
    workflow: string;
    count: number;
    concurrency: number;
    tolerate: number;
    spawned: number;
    released: number;
    /** Those that are children of other runs, taken over with their results, and which of them have failed. */
    from?: AdoptedChildren[];
    failed?: Range[];
  };
  /** More children exist, or may run. */
  "map.spawned": { spawned: number; released: number };
  "map.released": { released: number };
  /** Index ranges [first, last] of the children that ended since the last such event, and how those that failed did. */
  "map.settled": { completed: [number, number][]; failed: [number, number][] };

  /**
   * It is executed by code whose declared steps are not those that it was executed by before. `vanished`: the run has a
   * record of them, the code does not know them. `overtaken`: it has none, and is past something that now comes after them.
   */
  "shape.changed": { shape: string; removedSteps?: string[]; passedSteps?: string[] };
  /** The case that a branch of the code has taken. */
  "branch.chosen": { choice: string };
  /** The run has taken the newer way of its code at this `ctx.patched()`. */
  "patch.applied": Record<string, never>;
  /** The code makes this call before others that the log has, and is meant to: its answer comes outside of their order. */
  "call.added": Record<string, never>;
}

/** Where the children of one call are: their ids are computed from this. `node` is the name that they know the call by. */
export interface ChildrenOrigin {
  run: string;
  node: string;
}

/** Children of a map that have their results from another run of the line. */
export interface AdoptedChildren extends ChildrenOrigin {
  indexes: Range[];
}

export type EventType = keyof EventData;

/** Events of one commit, when there are several: their row has the type "batch", and a list of these as its data. */
export type PackedEvent = [
  type: string,
  node: string | null,
  attempt: number | null,
  outcome: string | null,
  data: string | null,
];

// ── pawl_inbox: `type` is the column `kind`, the rest is `data` ──────────────────────────────────────────────────────

/** What a run can be asked, or told: by an operator, another run, a worker. */
export type Command =
  /** `payload` is encoded. `key`: a second one with the same key is dropped. */
  | { readonly type: "signal"; readonly name: string; readonly payload: string; readonly key: string | null }
  /** Parks the run until an operator resumes it. */
  | { readonly type: "pause"; readonly reason: string | null }
  /** `output` (encoded) stands in for the result of the step that the run is stuck at. */
  | {
      readonly type: "resume";
      readonly output: string | null;
      /** See `run.resumed`. */
      readonly accept?: readonly string[];
      readonly renamed?: Readonly<Record<string, string>>;
    }
  /** Goes on from this step of the chain. */
  | { readonly type: "resumeAt"; readonly step: string }
  /** Passes over the step that the run is stuck at. */
  | { readonly type: "skip" }
  /** `force`: ends it at once, whatever its code says and without compensation. */
  | { readonly type: "cancel"; readonly reason: string | null; readonly force?: true }
  /** A run that was stored to be started later. */
  | { readonly type: "start" }
  /** Tries a node again that has not completed. `descendants` come after it, however far. */
  | { readonly type: "reattempt"; readonly node: string; readonly descendants: readonly string[] }
  /** From now on the run goes by this graph. */
  | { readonly type: "import"; readonly dag: FrozenDag }
  /** A child has ended; `output` is encoded. */
  | {
      readonly type: "child";
      readonly node: string;
      readonly status: "completed" | "failed" | "canceled";
      readonly output: string | null;
      readonly error: Failure | null;
      readonly reason: string | null;
    }
  /** Children of a map have ended: ranges [first, last] of their places in it. */
  | {
      readonly type: "children";
      readonly node: string;
      readonly completed: readonly Range[];
      readonly failed: readonly Range[];
    }
  /** No live worker has this job any more. Whether that holds the run up is for its owner to find out. */
  | { readonly type: "jobGone"; readonly job: string }
  /**
   * The event loop of its worker stood still. `step`: in whose code, "" outside of steps. `by`: the other run whose code it
   * was. Neither: it is not known whose.
   */
  | {
      readonly type: "blocked";
      readonly worker: string;
      readonly session: string;
      readonly step: string | null;
      readonly by: string | null;
    }
  /** Attempts at nodes have ended. */
  | { readonly type: "nodes"; readonly results: readonly NodeResult[] };

/** How one attempt at a node ended. */
export interface NodeResult {
  readonly node: string;
  readonly attempt: number;
  /** Encoded; null when it failed. */
  readonly output: string | null;
  readonly error: Failure | null;
  /** When to try again; null: it has failed for good. */
  readonly retryMs: number | null;
  readonly ms: number;
}

// ── pawl_runs.waiting ────────────────────────────────────────────────────────────────────────────────────────────────

/** What a parked run waits for, for people. Times are left to the log and the task: they are not known before the commit. */
export type Waiting =
  | { readonly kind: "sleep"; readonly name: string }
  | { readonly kind: "signal"; readonly names: readonly string[] }
  /** A step whose time has not come yet. */
  | { readonly kind: "step"; readonly step: string; readonly attempt: number }
  | { readonly kind: "retry"; readonly step: string; readonly attempt: number }
  | { readonly kind: "child"; readonly name: string; readonly runId: string; readonly workflow: string }
  | {
      readonly kind: "map";
      readonly name: string;
      readonly workflow: string;
      readonly settled: number;
      readonly count: number;
    }
  /** Nodes that were handed to others: how many, and which jobs they run. */
  | { readonly kind: "jobs"; readonly open: number; readonly jobs: readonly string[] }
  | { readonly kind: "reattempt" };

/**
 * What a parked run waits for, for people, and how far its code had come, for the next owner. When a run ends, the store
 * writes the number of its events in the place of this.
 */
export interface ParkingNote {
  /** How many answers its code had seen; missing when that is not known, or the code was interrupted: then it has to run. */
  readonly seenVersion?: number;
  /** How many events its log had: tells `verify` that the end of the log is missing, which nothing else would. */
  readonly seq?: number;
  readonly waitingFor: readonly Waiting[];
  /** Why it is paused. */
  readonly paused?: string;
  readonly pausedAt?: number;
  /** The declared step that it is at. */
  readonly step?: { readonly name: string; readonly attempt: number };
}

// ── pawl_runs.input, where it is Pawl's own ──────────────────────────────────────────────────────────────────────────

/** How an attempt at a node is described to the run that executes it. */
export interface JobInput<Args = unknown> {
  readonly args: Args;
  readonly run: string;
  readonly node: { readonly id: string; readonly name: string };
  readonly attempt: number;
  /** How many attempts before it have failed. */
  readonly failures: number;
  /** The idempotency key of the node, if another run than this one began with it. */
  readonly key?: string;
}

// ── pawl_cursors.progress ────────────────────────────────────────────────────────────────────────────────────────────

/** How far a run or a step is. The last three are of resumable steps alone. */
export interface Progress {
  readonly done: number;
  readonly total: number | null;
  readonly message: string | null;
  /** How often the cursor was moved: the number of the item in flight. */
  readonly moves?: number;
  /** The items of the latest execution and how long it has taken so far: what the rate is computed from. */
  readonly items?: number;
  readonly ms?: number;
}

// ── pawl_workflows.graph ─────────────────────────────────────────────────────────────────────────────────────────────

/** What a definition said when it was registered, for processes that do not have its code. */
export interface RegisteredWorkflow {
  readonly priority: number;
  readonly tags: readonly string[];
  /** The rest is there only of workflows whose steps are declared. */
  readonly hero?: HeroPolicy;
  /** Queues that its steps have, or once had. */
  readonly stepQueues?: readonly string[];
  readonly nodes?: readonly DeclaredNode[];
  /** Whether runs go along the steps one by one. */
  readonly isChain?: boolean;
}

/** What a workflow says about its heroes. */
export interface HeroPolicy {
  /** null: any. */
  readonly type: string | null;
  /** A start without a hero is refused. */
  readonly required: boolean;
  readonly allowMultiple: boolean;
}

/** A step that a definition names beforehand. */
export interface DeclaredNode {
  readonly name: string;
  readonly kind: "step" | "branch";
  /** The job that it runs instead of code of its own. */
  readonly job?: string;
  readonly after: readonly string[];
  /** How long after the step before it, if it waits at all. */
  readonly waitMs?: number;
}

/** A shape that the steps of a workflow have, or once had: the steps as [name, …places in this list of those that it comes after]. */
export interface RegisteredShape {
  readonly workflow: string;
  readonly signature: string;
  readonly steps: readonly (readonly [name: string, ...after: number[]])[];
  readonly aliases?: Aliases;
}

/** For each name in the code, the names that it had before. */
export type Aliases = Readonly<Record<string, readonly string[]>>;

// ── pawl_workers.routes, a list of these; pawl_runs.tags, a list of texts ────────────────────────────────────────────

/** What a worker claims. */
export interface Route {
  readonly workflow: string;
  readonly version: string;
}
