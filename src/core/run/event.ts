/**
 * The vocabulary of the log. An event says what happened, in the past tense; the log of events is the truth about a run.
 *
 * `data` stays text on its way through the engine: it is decoded only by whoever needs to look inside. User values enter
 * it as fragments that were encoded once and are never encoded again.
 */
import { decode } from "../encoding/decode.js";
import { encode } from "../encoding/encode.js";
import type { Failure } from "../encoding/error-record.js";
import type { FrozenDag } from "../graph/frozen-dag.js";
import type { Range } from "./ranges.js";

/** One event of a run's log. `data` is encoded text; the other columns are plain so that SQL can read them. */
export interface StoredEvent {
  readonly seq: number;
  readonly type: string;
  readonly node: string | null;
  readonly attempt: number | null;
  readonly outcome: string | null;
  readonly data: string | null;
  readonly at: number;
}

/** An event before the store has given it its number and stamped it. */
export type NewEvent = Omit<StoredEvent, "seq" | "at">;

/** How a step execution ended. */
export type Outcome =
  | "success"
  | "reattempted"
  | "continued"
  | "skipped_by_condition"
  | "skipped_by_flow_control"
  | "skipped_by_exception"
  | "canceled_by_condition"
  | "canceled_by_flow_control"
  | "canceled_by_exception"
  | "reattempted_by_exception"
  | "failed_by_exception"
  | "paused_by_exception"
  | "workflow_paused"
  | "timed_out"
  | "abandoned";

/** What each type of event carries. Values of the user are `unknown`; instants are relative (`…Ms`), see `at`. */
export interface EventData {
  /**
   * Code began to run for the first time. `steps`: they are declared, as a chain that a run can be sent along, or a graph,
   * and `shape` is the signature of that. `began`: when it was taken up, by the store's clock; the event itself is written
   * together with what the code did first. `checked`: a schema has accepted its input; `input`: what the schema made of it,
   * if that is not what was given.
   */
  "run.started": {
    began?: number;
    timeoutMs?: number;
    steps?: "chain" | "graph";
    shape?: string;
    checked?: true;
    input?: unknown;
  };
  /** The same two of a run that had started before a schema could answer, or before its workflow had one. */
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
    roots?: Record<string, string>;
    redo: string[];
    children?: Record<string, Place[]>;
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
  "run.paused": { reason: string; error?: Failure; resumeOn?: string; recheckMs?: number; passable?: boolean };
  /**
   * `signal` is the number of the signal that did it, and is consumed by that. `only`: the one step that the operator has
   * released; others that had paused the run stay as they are. `accept`: names of calls that the code has and the log
   * lacks, or the other way round, and that is as it should be. `renamed`: by the name in the log, the name in the code.
   */
  "run.resumed": {
    by: "operator" | "signal" | "recheck";
    signal?: number;
    only?: string;
    accept?: readonly string[];
    renamed?: Readonly<Record<string, string>>;
  };
  /** `force`: it ends at once, without compensation. */
  "run.cancel_requested": { reason?: string; force?: true };
  /** Its time limit has passed. What it did has still to be undone, and its `onFailure` to be called. */
  "run.expired": { error: Failure };
  /** The handler asked to run again later; with `rewind` it forgets what it had done. `transient`: a passing error put it off. */
  "run.reattempted": { waitMs: number; rewind: boolean; transient?: true };
  "run.woken": Record<string, never>;
  /** The time to begin came while it was paused: it begins when it is resumed. */
  "run.became_due": Record<string, never>;
  /** An operator sent it to this step: it forgets what it had done and goes on from there. */
  "run.moved": { to: string };
  "run.completed": { output?: unknown };
  "run.failed": { error: Failure };
  "run.canceled": { reason?: string };

  /** It is the next one, and waits for its time. */
  "step.scheduled": { waitMs: number };
  /** `timeoutMs`: how long a declared step may take from here on, whether it runs or rests. `worker`: its name. */
  "step.started": { timeoutMs?: number; worker?: string };
  /** `undo`: the code knows how to undo it. `hash`: its ancestry, see `core/graph/ancestry-hash.ts`. */
  "step.completed": { undo?: true; hash?: string; output?: unknown; input?: unknown; ms?: number; by?: "operator" };
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
    spent?: true;
    moved?: true;
    worker?: string;
  };
  /**
   * Again after `waitMs`, without that being a failure. `rewind`: from its beginning. `still`: it moved its cursor no
   * further than its predecessor had.
   */
  "step.reattempted": { waitMs: number; ms?: number; rewind?: true; still?: true };
  /** `by: "code"`: its class says that it was removed. */
  "step.skipped": { by?: "operator" | "code"; error?: Failure; ms?: number; worker?: string };
  /** The step, or a condition of its workflow, canceled the run. */
  "step.canceled": { ms?: number };

  /** This attempt at a node was handed to whoever has the job; its run tells what became of it. */
  "node.dispatched": { job: string };
  /** It had ended without being completed, and an operator wants it to be tried again. */
  "node.reopened": Record<string, never>;
  /** An operator repaired the graph that the run goes by. */
  "dag.imported": { dag: FrozenDag };

  "timer.started": { ms?: number; until?: number };
  "timer.fired": Record<string, never>;
  "signal.received": { name: string; payload?: unknown; key?: string };
  "wait.started": { names: string[]; mode: "any" | "all"; timeoutMs?: number };
  /** `signals` are the numbers of the `signal.received` events that were consumed, in the order of `names` for "all". */
  "wait.completed": { signals: number[] };
  "wait.timed_out": Record<string, never>;
  /** A timer or wait lost a race and is not waited for any more. */
  "wait.withdrawn": Record<string, never>;

  "child.started": { runId: string; workflow: string };
  "child.completed": { output?: unknown };
  "child.failed": { error: Failure };
  "child.canceled": { reason?: string };
  /** `spawned` children exist, the first `released` of them may run. */
  "map.started": {
    workflow: string;
    count: number;
    concurrency: number;
    tolerate: number;
    spawned: number;
    released: number;
    /** Those that are children of other runs, taken over with their results, and which of them have failed. */
    from?: Adopted[];
    failed?: Range[];
  };
  "map.spawned": { spawned: number; released: number };
  "map.released": { released: number };
  /** Index ranges [first, last] of the children that ended since the last such event, and how those that failed did. */
  "map.settled": { completed: [number, number][]; failed: [number, number][] };

  /**
   * It is executed by code whose declared steps are not those that it was executed by before. `vanished`: the run has a
   * record of them, the code does not know them. `overtaken`: it has none, and is past something that now comes after them.
   */
  "shape.changed": { shape: string; vanished?: string[]; overtaken?: string[] };
  "branch.chosen": { choice: string };
  "patch.applied": Record<string, never>;
  /** The code makes this call before others that the log has, and is meant to: its answer comes outside of their order. */
  "call.added": Record<string, never>;
}

/** Where the children of one call are: their ids are computed from this. `node` is the name that they know the call by. */
export interface Place {
  run: string;
  node: string;
}

/** Children of a map that have their results from another run of the line. */
export interface Adopted extends Place {
  indexes: Range[];
}

export type EventType = keyof EventData;

interface Position {
  readonly node?: string;
  readonly attempt?: number;
  readonly outcome?: Outcome;
}

/** Makes an event. `raw` are user values that are encoded already; they join `data` under their names. */
export function event<T extends EventType>(
  type: T,
  place: Position,
  data?: EventData[T],
  raw?: Record<string, string>,
): NewEvent {
  return {
    type,
    node: place.node ?? null,
    attempt: place.attempt ?? null,
    outcome: place.outcome ?? null,
    data: data === undefined && raw === undefined ? null : splice(data ?? {}, raw),
  };
}

function splice(data: object, raw: Record<string, string> | undefined): string {
  const text = encode(data, { what: "event", limit: Number.POSITIVE_INFINITY });
  if (raw === undefined) return text;
  let joined = text.slice(0, -1);
  for (const name in raw) joined += `${joined.length > 1 ? "," : ""}"${name}":${raw[name]}`;
  return `${joined}}`;
}

export function dataOf<T extends EventType>(of: { readonly data: string | null }, _type: T): EventData[T] {
  return (of.data === null ? {} : decode(of.data)) as EventData[T];
}
