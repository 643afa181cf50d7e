/**
 * The schema of the JSON that Pawl stores in its tables, by column. This version of Pawl reads runs that an earlier version
 * has started, so a change of a shape must raise `storedSchemaVersion` and keep the older shape readable.
 * `test/stored-schema` fails when a shape has changed and the version has not.
 *
 * The data of events is in `event-data.ts`. Three formats are used outside of the tables too, and are defined elsewhere:
 * the encoding of values (`encoding/tagged-json.ts`), errors (`encoding/error-record.ts`), and frozen graphs, which have a
 * version of their own (`graph/frozen-dag.ts`).
 */
import type { Failure } from "../encoding/error-record.js";
import type { FrozenDag } from "../graph/frozen-dag.js";
import type { Range } from "./ranges.js";

export type { AdoptedChildren, ChildrenOrigin, EventData, EventType, PackedEvent } from "./event-data.js";

/** The version of the schema in this file and in `event-data.ts`. */
export const storedSchemaVersion = 1;

// ── pawl_inbox: `type` is stored in the column `kind`, the other fields in the column `data` ─────────────────────────

/** Who gave a command, and why. The log of the run records both in the event `command.accepted`. */
export interface CommandAudit {
  readonly by?: string;
  readonly reason?: string;
}

/** What is known about the start of a run besides its input: the column `started_by` of pawl_runs. */
export interface StartOrigin extends CommandAudit {
  /** The run for whose end the run waits before it begins. */
  readonly after?: string;
}

/** A command to a run, from an operator, another run, or a worker. */
export type Command = CommandContent & { readonly audit?: CommandAudit };

type CommandContent =
  /** A signal with an encoded payload. A second signal with the same `key` is dropped. */
  | { readonly type: "signal"; readonly name: string; readonly payload: string; readonly key: string | null }
  /** Pauses the run until an operator resumes it. */
  | { readonly type: "pause"; readonly reason: string | null }
  /** Resumes a paused run. */
  | {
      readonly type: "resume";
      /**
       * The encoded output that the operator provides for the step at which the run is paused; if null, the step runs
       * again.
       */
      readonly output: string | null;
      /** `accept` and `renamed` are copied to the event `run.resumed`, which describes them. */
      readonly accept?: readonly string[];
      readonly renamed?: Readonly<Record<string, string>>;
    }
  /** Resumes a paused run at this step of its chain. */
  | { readonly type: "resumeAt"; readonly step: string }
  /** Skips the step that the run is paused at or waits to attempt. */
  | { readonly type: "skip" }
  /** Cancels the run. With `force` the run ends at once: neither its code nor its compensations are executed. */
  | { readonly type: "cancel"; readonly reason: string | null; readonly force?: true }
  /** Starts a run that was created without a start time. */
  | { readonly type: "start" }
  /**
   * The run `run` has the key of this run, or its hero, and begins when this run has ended. With `cancel`, this run is
   * canceled for it.
   */
  | { readonly type: "queueStart"; readonly run: string; readonly cancel?: true }
  /** The instant by which the run should have begun has passed. The run is canceled unless its code was executed. */
  | { readonly type: "startOverdue"; readonly startBy: number }
  /**
   * A limit was full. A run that has not begun is canceled ("skip") or fails ("fail"); with "supersede" the run is canceled
   * for the run `by`, whether it has begun or not. With "cycle" it fails, because runs wait for each other as `chain` says.
   */
  | {
      readonly type: "limitFull";
      readonly limit: string;
      readonly key: string;
      readonly effect: "skip" | "fail" | "supersede" | "cycle";
      readonly by?: string;
      readonly chain?: readonly string[];
    }
  /**
   * Attempts a node again that has not completed. `descendants` are all nodes that depend on it, directly or indirectly.
   */
  | { readonly type: "reattempt"; readonly node: string; readonly descendants: readonly string[] }
  /** Replaces the graph of the run. */
  | { readonly type: "import"; readonly dag: FrozenDag }
  /** A child has ended. Its output is encoded. */
  | {
      readonly type: "child";
      readonly node: string;
      readonly status: "completed" | "failed" | "canceled";
      readonly output: string | null;
      readonly error: Failure | null;
      readonly reason: string | null;
      /** The code of the cancel; absent when it has none. */
      readonly code?: string;
    }
  /** Children of a map have ended. The ranges contain their indexes in the map. */
  | {
      readonly type: "children";
      readonly node: string;
      readonly completed: readonly Range[];
      readonly failed: readonly Range[];
    }
  /** No live worker has this job any more. The owner of the run pauses the run if it waits for the job. */
  | { readonly type: "jobGone"; readonly job: string }
  /** The event loop of the run's worker was blocked. If `step` and `by` are null, it is not known which code blocked it. */
  | {
      readonly type: "blocked";
      /** The name of the worker. */
      readonly worker: string;
      /** The id and epoch of the worker. */
      readonly session: string;
      /** The step of this run whose code blocked the event loop; "" for the handler of this run. */
      readonly step: string | null;
      /** The id of another run whose code blocked the event loop. */
      readonly by: string | null;
    }
  /** Attempts at nodes of the run's graph have ended. */
  | { readonly type: "nodes"; readonly results: readonly NodeResult[] };

/** How one attempt at a node ended. */
export interface NodeResult {
  readonly node: string;
  readonly attempt: number;
  /** The encoded output; null when the attempt failed. */
  readonly output: string | null;
  readonly error: Failure | null;
  /** The delay before the next attempt; null when the node has failed for good. */
  readonly retryMs: number | null;
  /** How long the attempt took. */
  readonly ms: number;
}

// ── pawl_runs.waiting ────────────────────────────────────────────────────────────────────────────────────────────────

/** What a parked run waits for, for display. It contains no due times, because they are known only after the commit. */
export type Waiting =
  | {
      readonly kind: "sleep";
      /** The name of the sleep. */
      readonly name: string;
    }
  /** The run waits for one of these signals, or for all of them. */
  | {
      readonly kind: "signal";
      /** The names of the signals. */
      readonly names: readonly string[];
    }
  /** The run waits for the start time of a step. */
  | {
      readonly kind: "step";
      /** The name of the step. */
      readonly step: string;
      /** The number of the attempt, from 1. */
      readonly attempt: number;
    }
  /** The run waits for the next attempt at a step that has been attempted before. */
  | {
      readonly kind: "retry";
      /** The name of the step. */
      readonly step: string;
      /** The number of the next attempt. */
      readonly attempt: number;
    }
  | {
      readonly kind: "child";
      /** The name of the call. */
      readonly name: string;
      /** The id of the child run. */
      readonly runId: string;
      /** The workflow of the child run. */
      readonly workflow: string;
    }
  /** The run waits for the children of a map. */
  | {
      readonly kind: "map";
      /** The name of the call. */
      readonly name: string;
      /** The workflow of the children. */
      readonly workflow: string;
      /** How many children have completed or failed. */
      readonly settled: number;
      /** How many children there are. */
      readonly count: number;
    }
  /** The run waits for nodes whose jobs are executed by separate runs. */
  | {
      readonly kind: "jobs";
      /** How many nodes have not ended. */
      readonly open: number;
      /** The names of the jobs of these nodes. */
      readonly jobs: readonly string[];
    }
  /** The run waits for the next execution of its handler, which has requested another attempt. */
  | { readonly kind: "reattempt" };

/**
 * The note in the row of a parked run. It says what the run waits for, for display, and which `wakeVersion` the workflow's
 * code has seen, for the next owner. When a run ends, the store replaces the note by the number of events in the run's log.
 */
export interface ParkingNote {
  /** The fingerprint of `error`. It is the first field, see `withFingerprint`. */
  readonly fingerprint?: string;
  /** The error that has paused the run, and the step that threw it; null if code outside of a step did. */
  readonly error?: { readonly name: string; readonly message: string; readonly step: string | null };
  /** The `RunState.wakeVersion` that the code has seen; absent when it is unknown: the next owner then calls the code. */
  readonly seenVersion?: number;
  /** The number of events in the log. Without this number, `verify` could not detect that the end of a log is missing. */
  readonly seq?: number;
  readonly waitingFor: readonly Waiting[];
  /** The reason of the pause, if the run is paused. */
  readonly paused?: string;
  readonly pausedAt?: number;
  /** The step of a chain that has started or is scheduled, and the number of its attempt. */
  readonly step?: { readonly name: string; readonly attempt: number };
  /** The lanes of limits in which the run keeps a slot until it ends, so that a client that ends it gives them back. */
  readonly openLanes?: readonly string[];
  /**
   * Whether the store may have steps of the run that wait for slots of limits while no worker executes it, or to which slots are
   * offered. The end of the run deletes them.
   */
  readonly parkedSteps?: true;
}

// ── pawl_runs.input of runs that execute jobs ────────────────────────────────────────────────────────────────────────

/** The input of a run that executes an attempt at a node. */
export interface JobInput<Args = unknown> {
  readonly args: Args;
  /** The run that the node belongs to. */
  readonly run: string;
  readonly node: { readonly id: string; readonly name: string };
  /** The number of the attempt at the node, from 1. */
  readonly attempt: number;
  /** How many earlier attempts have failed. */
  readonly failures: number;
  /** The idempotency key of the node; absent unless the key begins with the id of another run of the lineage. */
  readonly key?: string;
}

// ── pawl_cursors.progress ────────────────────────────────────────────────────────────────────────────────────────────

/** The progress of a run or a step. Only resumable steps have the last three fields. */
export interface Progress {
  readonly done: number;
  /** The number that `done` reaches at the end; null when it is not known. */
  readonly total: number | null;
  readonly message: string | null;
  /** How often the step has moved its cursor, which is also the index of the present item. */
  readonly moves?: number;
  /** How many items the latest execution has processed; the rate is `items` per `ms`. */
  readonly items?: number;
  /** How long the latest execution has taken so far. */
  readonly ms?: number;
}

// ── pawl_workflows.graph ─────────────────────────────────────────────────────────────────────────────────────────────

/** A registered definition, for processes that do not have the workflow's code. */
export interface RegisteredWorkflow {
  /** The default priority of its runs. */
  readonly priority: number;
  /** How soon its runs must begin, in milliseconds; absent when they may begin at any time. */
  readonly startByMs?: number;
  /** The default tags of its runs. */
  readonly tags: readonly string[];
  readonly hero?: HeroPolicy;
  /** The queues of the workflow's steps, including the queues that steps had in an earlier version of the code. */
  readonly stepQueues?: readonly string[];
  /** The declared steps; absent for a function-style workflow. */
  readonly nodes?: readonly DeclaredNode[];
  /** Whether the steps are executed one after another. */
  readonly isChain?: boolean;
  /** The JSON Schema of its inputs, if its schema library offers one. */
  readonly inputSchema?: Readonly<Record<string, unknown>>;
  /** How its starts are gathered in batches; absent if each start has a run of its own. */
  readonly batch?: RegisteredBatch;
}

/** What a process without the code has to know of `batch`. */
export interface RegisteredBatch {
  /** The path of the key; null: all starts share batches; absent: the key is a function. */
  readonly key?: string | null;
  readonly size: number;
  readonly withinMs: number;
}

/** The rules of a workflow for the heroes of its runs. */
export interface HeroPolicy {
  /** The type of its heroes; null when any type is allowed. */
  readonly type: string | null;
  /** Whether a start without a hero is refused. */
  readonly required: boolean;
  /** Whether a hero may have several active runs of the workflow. */
  readonly allowMultiple: boolean;
}

/** A declared step. */
export interface DeclaredNode {
  readonly name: string;
  readonly kind: "step" | "branch";
  /** The job that the step runs instead of code of its own. */
  readonly job?: string;
  /** The names of the steps that must have ended before this step starts. */
  readonly after: readonly string[];
  /** How long the step waits after the step before it has ended. */
  readonly waitMs?: number;
}

/** The steps that a workflow declares, or declared in an earlier version of the code. */
export interface RegisteredShape {
  readonly workflow: string;
  readonly signature: string;
  /** The steps, each with the indexes (in this list) of the steps that must have ended before it starts. */
  readonly steps: readonly (readonly [name: string, ...after: number[]])[];
  readonly aliases?: Aliases;
}

/** For each name in the code, the names that the step had in earlier versions of the code. */
export type Aliases = Readonly<Record<string, readonly string[]>>;

// ── pawl_workers.routes is a list of routes; pawl_runs.tags is a list of texts ───────────────────────────────────────

/** The tasks that a worker claims: those of one version of a workflow. */
export interface Route {
  readonly workflow: string;
  readonly version: string;
}
