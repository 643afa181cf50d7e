/**
 * What a log says about its run. `evolve` folds one event into the state; everything Pawl shows or decides about a run
 * comes from here. It is deterministic and does no I/O; it changes the state it is given and returns it, because a log
 * of 10,000 events must not copy 10,000 maps.
 */
import { hashIn } from "./ancestry.js";
import type { FrozenDag } from "./dag.js";
import type { EventData, StoredEvent } from "./event.js";
import { dataOf } from "./event.js";
import type { Failure } from "./failure.js";
import { indexes } from "./ranges.js";

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
  failures: number;
  /** Failures, countable or not: what the backoff grows with. */
  setbacks: number;
  /** Failures in a row that count: an attempt that ended otherwise, and an operator's `resume`, begin a new row. */
  streak: number;
  /** Continuations in a row that did not move the cursor. */
  standstill: number;
  /** In phase "again": it waits for its own time, not for another attempt. */
  planned: boolean;
  /** Its last attempt asked to start over. */
  rewound: boolean;
  phase: "started" | "again" | "completed" | "failed" | "skipped";
  /** In phase "started": its worker died. Otherwise it rests in the middle, waiting for something durable. */
  abandoned: boolean;
  /** In phase "started": when its time is up, if that matters while it rests. */
  deadlineAt: number | null;
  /** When the next attempt is due, in phase "again". */
  dueAt: number | null;
  /** The job that its latest attempt was handed to, while nobody has told how that ended. */
  job: string | null;
  /** The ancestry of its completed attempt, if it is a node of a graph. */
  hash: string | null;
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
  phase: "open" | "completed" | "timed out" | "withdrawn";
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
  spawned: number;
  released: number;
  settled: number;
  failed: number[];
  /** By index, which children have ended: a message may come twice. */
  readonly ended: Set<number>;
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
export interface Answered {
  readonly key: string;
  readonly at: number;
  readonly op: Op | undefined;
}

export interface RunState {
  /** How many events have been folded. */
  seq: number;
  /** What the calls of user code led to, by their key. */
  readonly ops: Map<string, Op>;
  /** The calls that have an answer, in the order of the log: user code gets them in this order, live and on replay. */
  readonly answered: Answered[];
  /** Signals that came and were not consumed, in order. */
  readonly signals: Signal[];
  /** Of the signals that came with one; none before the first. */
  signalKeys: Set<string> | null;
  startedAt: number | null;
  /** Its steps are declared. */
  steps: "chain" | "graph" | null;
  /** The signature of those that it was last executed with. */
  shape: string | null;
  /** The run that failed and that this one goes on for. */
  forkedFrom: string | null;
  /** The graph that was imported into it; null when it goes by the one it was born with, or by its code. */
  dag: FrozenDag | null;
  /** Timers and waits that bodies of declared steps have begun, by their keys. */
  readonly resting: Set<string>;
  /** The step that an operator sent it to; null when it never was. */
  position: string | null;
  deadlineAt: number | null;
  paused: Pause | null;
  cancel: { readonly reason: string | null } | null;
  /** When the handler asked to be run again. */
  reattemptAt: number | null;
  ending: Ending | null;
  /** Steps that know how to be undone, in the order in which they were completed. */
  readonly undoable: string[];
  /** How often the handler rewound: it forgets its steps, but attempts go on counting and children get new ids. */
  generation: number;
  /** The same of declared steps that started over, each by itself. */
  stepGenerations: Map<string, number> | null;
  rewound: Map<string, number> | null;
  /** At which delivery of the run somebody last got anywhere with it. Deaths count from there. */
  survived: number;
  /** The latest delivery that the log knows of. */
  delivery: number;
  /** Grows with everything that gives user code a reason to run; a worker that parks a run notes how far it had come. */
  news: number;
}

function initialState(): RunState {
  return {
    seq: 0,
    ops: new Map(),
    answered: [],
    signals: [],
    signalKeys: null,
    startedAt: null,
    steps: null,
    shape: null,
    forkedFrom: null,
    dag: null,
    resting: new Set(),
    position: null,
    deadlineAt: null,
    paused: null,
    cancel: null,
    reattemptAt: null,
    ending: null,
    undoable: [],
    generation: 0,
    stepGenerations: null,
    rewound: null,
    survived: 1,
    delivery: 1,
    news: 0,
  };
}

export function fold(events: Iterable<StoredEvent>, state: RunState = initialState()): RunState {
  for (const event of events) evolve(state, event);
  return state;
}

export function evolve(state: RunState, event: StoredEvent): RunState {
  if (event.seq !== state.seq + 1)
    throw new RangeError(`Event ${event.seq} cannot follow event ${state.seq}: the log has a gap.`);
  state.seq = event.seq;
  if (event.type === "batch") throw new RangeError(`Event ${event.seq} cannot be read: its row is damaged.`);
  // A type that this version does not know was written by a newer one: it is passed over, not a reason to crash.
  folders[event.type as keyof EventData]?.(state, event);
  if (!beginnings.has(event.type)) state.survived = state.delivery;
  return state;
}

/** What the next owner of a run writes before it gets anywhere. */
const beginnings = new Set(["run.started", "run.recovered", "shape.changed", "step.started"]);

type Folder = (state: RunState, event: StoredEvent) => void;

const folders: { readonly [type in keyof EventData]: Folder } = {
  "run.started": (state, event) => {
    const { began, timeoutMs, steps, shape } = dataOf(event, "run.started");
    state.startedAt = began ?? event.at;
    state.steps = steps ?? null;
    state.shape = shape ?? null;
    if (timeoutMs !== undefined) state.deadlineAt = event.at + timeoutMs;
  },
  "run.forked": (state, event) => {
    state.forkedFrom = dataOf(event, "run.forked").from;
  },
  "shape.changed": (state, event) => {
    state.shape = dataOf(event, "shape.changed").shape;
  },
  "run.recovered": (state, event) => {
    state.delivery = dataOf(event, "run.recovered").deliveries;
    for (const op of state.ops.values()) {
      // What was handed to others goes on without the run's own worker.
      if (op.kind === "step" && op.phase === "started" && op.job === null) op.abandoned = true;
    }
    state.news += 1;
  },
  "run.paused": (state, event) => {
    const { reason, error, resumeOn, recheckMs, passable } = dataOf(event, "run.paused");
    if (passable === true) state.ops.set(keyOf(event), { kind: "pause" });
    state.paused = {
      reason,
      at: event.at,
      error: error ?? null,
      node: event.node,
      resumeOn: resumeOn ?? null,
      recheckAt: recheckMs === undefined ? null : event.at + recheckMs,
    };
  },
  "run.resumed": (state, event) => {
    const stuck = state.paused?.node == null ? undefined : state.ops.get(state.paused.node);
    if (stuck?.kind === "step" && stuck.phase === "started") {
      // It had begun when its worker died, and was held because of `onCrash: "pause"`: now it may run again.
      stuck.phase = "again";
      stuck.dueAt = event.at;
    }
    const { signal, by } = dataOf(event, "run.resumed");
    if (by === "operator") for (const op of state.ops.values()) if (op.kind === "step") op.streak = 0;
    if (signal !== undefined) takeSignal(state, signal);
    state.paused = null;
    state.news += 1;
  },
  "run.cancel_requested": (state, event) => {
    state.cancel = { reason: dataOf(event, "run.cancel_requested").reason ?? null };
    state.news += 1;
  },
  "run.reattempted": (state, event) => {
    const { waitMs, rewind } = dataOf(event, "run.reattempted");
    state.reattemptAt = event.at + waitMs;
    if (rewind) forget(state);
  },
  "run.moved": (state, event) => {
    forget(state);
    state.position = dataOf(event, "run.moved").to;
    state.news += 1;
  },
  "run.woken": (state) => {
    state.reattemptAt = null;
    state.news += 1;
  },
  "run.completed": end("completed"),
  "run.failed": end("failed"),
  "run.canceled": end("canceled"),

  "step.scheduled": (state, event) => {
    // The attempt that it names is yet to come.
    const op = stepOf(state, { ...event, attempt: null });
    if (hasEnded(op)) return;
    goAgain(op, event.at + dataOf(event, "step.scheduled").waitMs);
    op.planned = true;
  },
  "step.started": (state, event) => {
    const op = stepOf(state, event);
    if (hasEnded(op)) return;
    const { timeoutMs } = dataOf(event, "step.started");
    op.phase = "started";
    op.abandoned = false;
    op.deadlineAt = timeoutMs === undefined ? null : event.at + timeoutMs;
    op.dueAt = null;
  },
  "step.completed": (state, event) => endStep(state, event, "completed"),
  "step.skipped": (state, event) => endStep(state, event, "skipped"),
  "step.canceled": (state, event) => endStep(state, event, "skipped"),
  "step.failed": (state, event) => {
    const { retryMs, transient } = dataOf(event, "step.failed");
    const op = stepOf(state, event);
    if (hasEnded(op)) return;
    op.setbacks += 1;
    if (transient !== true) {
      op.failures += 1;
      op.streak += 1;
    }
    if (retryMs === undefined) return endStep(state, event, "failed");
    goAgain(op, event.at + retryMs);
  },
  "step.reattempted": (state, event) => {
    const { waitMs, rewind, still } = dataOf(event, "step.reattempted");
    const op = stepOf(state, event);
    if (hasEnded(op)) return;
    op.streak = 0;
    op.standstill = still === true ? op.standstill + 1 : 0;
    goAgain(op, event.at + waitMs);
    if (rewind !== true) return;
    op.rewound = true;
    forget(state, scopeOf(keyOf(event)));
  },

  "node.dispatched": (state, event) => {
    const op = stepOf(state, event);
    if (hasEnded(op)) return;
    op.phase = "started";
    op.abandoned = false;
    op.dueAt = null;
    op.job = dataOf(event, "node.dispatched").job;
  },
  "node.reopened": (state, event) => {
    const op = state.ops.get(keyOf(event));
    // Two may have asked for it at the same moment.
    if (op?.kind !== "step" || op.phase === "completed" || op.phase === "started") return;
    // A new one: the answer that the code once got was to the old one.
    const reopened = { ...op, data: null, streak: 0, failures: 0 };
    state.ops.set(keyOf(event), reopened);
    goAgain(reopened, event.at);
    state.news += 1;
  },
  "dag.imported": (state, event) => {
    const { dag } = dataOf(event, "dag.imported");
    state.dag = dag;
    state.news += 1;
    for (const [key, op] of state.ops) {
      if (op.kind !== "step" || key.includes(scopeMark) || Object.hasOwn(dag.nodes, key)) continue;
      // Nobody waits for it any more. Should it come back, its attempts go on counting.
      (state.rewound ??= new Map()).set(key, op.attempt);
      state.ops.delete(key);
    }
  },

  "timer.started": (state, event) => {
    const { ms, until } = dataOf(event, "timer.started");
    if (keyOf(event).includes(scopeMark)) state.resting.add(keyOf(event));
    state.ops.set(keyOf(event), { kind: "timer", phase: "open", dueAt: until ?? event.at + (ms ?? 0) });
  },
  "timer.fired": (state, event) => {
    const op = state.ops.get(keyOf(event));
    if (op?.kind === "timer") op.phase = "fired";
    answer(state, event);
  },
  "signal.received": (state, event) => {
    const { name, key } = dataOf(event, "signal.received");
    state.signals.push({ seq: event.seq, name, at: event.at, data: event.data });
    if (key !== undefined) (state.signalKeys ??= new Set()).add(key);
  },
  "wait.started": (state, event) => {
    const { names, mode, timeoutMs } = dataOf(event, "wait.started");
    if (keyOf(event).includes(scopeMark)) state.resting.add(keyOf(event));
    const dueAt = timeoutMs === undefined ? null : event.at + timeoutMs;
    state.ops.set(keyOf(event), { kind: "wait", phase: "open", names, mode, dueAt, signals: [] });
  },
  "wait.completed": (state, event) => {
    const consumed = dataOf(event, "wait.completed").signals.map((seq) => takeSignal(state, seq));
    const op = state.ops.get(keyOf(event));
    if (op?.kind !== "wait") return;
    op.phase = "completed";
    op.signals = consumed;
    answer(state, event);
  },
  "wait.timed_out": (state, event) => {
    const op = state.ops.get(keyOf(event));
    if (op?.kind === "wait") op.phase = "timed out";
    answer(state, event);
  },
  "wait.withdrawn": (state, event) => {
    const op = state.ops.get(keyOf(event));
    if (op?.kind === "timer" && op.phase === "open") op.phase = "withdrawn";
    if (op?.kind !== "wait") return;
    // It lost before the code had seen its signals: they are for whoever waits next.
    if (op.phase === "completed") state.signals.push(...op.signals);
    state.signals.sort((a, b) => a.seq - b.seq);
    op.phase = "withdrawn";
  },

  "child.started": (state, event) => {
    const { runId, workflow } = dataOf(event, "child.started");
    state.ops.set(keyOf(event), { kind: "child", phase: "open", runId, workflow, data: null });
  },
  "child.completed": (state, event) => endChild(state, event, "completed"),
  "child.failed": (state, event) => endChild(state, event, "failed"),
  "child.canceled": (state, event) => endChild(state, event, "canceled"),
  "map.started": (state, event) => {
    const counted = { settled: 0, failed: [], ended: new Set<number>() };
    const op: MapOp = { kind: "map", phase: "open", ...dataOf(event, "map.started"), ...counted };
    state.ops.set(keyOf(event), op);
    settleMap(state, event, op);
  },
  "map.spawned": (state, event) => {
    const op = state.ops.get(keyOf(event));
    if (op?.kind === "map") Object.assign(op, dataOf(event, "map.spawned"));
  },
  "map.released": (state, event) => {
    const op = state.ops.get(keyOf(event));
    if (op?.kind === "map") op.released = dataOf(event, "map.released").released;
  },
  "map.settled": (state, event) => {
    const op = state.ops.get(keyOf(event));
    if (op?.kind !== "map") return;
    const { completed, failed } = dataOf(event, "map.settled");
    for (const index of indexes(completed)) op.ended.add(index);
    for (const index of indexes(failed)) {
      if (op.ended.has(index)) continue;
      op.ended.add(index);
      // Those that are canceled because it has failed are not why it did.
      if (op.phase === "open") op.failed.push(index);
    }
    op.settled = op.ended.size;
    settleMap(state, event, op);
  },

  "branch.chosen": (state, event) => {
    state.ops.set(keyOf(event), { kind: "branch", choice: dataOf(event, "branch.chosen").choice });
    answer(state, event);
  },
  "patch.applied": (state, event) => {
    state.ops.set(keyOf(event), { kind: "patch" });
  },
};

const keyOf = (event: StoredEvent): string => event.node ?? "";

function answer(state: RunState, event: StoredEvent): void {
  const key = keyOf(event);
  state.answered.push({ key, at: event.at, op: state.ops.get(key) });
  state.news += 1;
}

/** What a declared step does durably is recorded under its own name, this, and the name that its body uses. */
export const scopeMark = "/";
export const scopeOf = (step: string): string => step + scopeMark;

/** Code that starts over does everything anew: all of it, or one step within its scope. Attempts go on counting. */
function forget(state: RunState, scope?: string): void {
  state.rewound ??= new Map();
  if (scope === undefined) {
    state.generation += 1;
    state.answered.length = 0;
  } else {
    state.stepGenerations ??= new Map();
    const step = scope.slice(0, -scopeMark.length);
    state.stepGenerations.set(step, (state.stepGenerations.get(step) ?? 0) + 1);
  }
  for (const [key, op] of state.ops) {
    if (scope !== undefined && !key.startsWith(scope)) continue;
    // An attempt that was announced and never came has its number all the same.
    const announced = op.kind === "step" && op.phase === "again" && state.paused?.node !== key;
    if (op.kind === "step") state.rewound.set(key, announced ? op.attempt + 1 : op.attempt);
    state.ops.delete(key);
  }
}

function goAgain(op: StepOp, dueAt: number): void {
  op.phase = "again";
  op.dueAt = dueAt;
  op.planned = false;
  op.rewound = false;
  op.job = null;
}

function end(status: Ending["status"]): Folder {
  return (state, event) => {
    // One terminal outcome per run: whatever came second is not an ending.
    state.ending ??= { status, at: event.at, data: event.data };
    state.paused = null;
  };
}

function stepOf(state: RunState, event: StoredEvent): StepOp {
  const key = keyOf(event);
  let op = state.ops.get(key);
  if (op?.kind !== "step") {
    op = {
      kind: "step",
      attempt: state.rewound?.get(key) ?? 0,
      failures: 0,
      setbacks: 0,
      streak: 0,
      standstill: 0,
      planned: false,
      rewound: false,
      abandoned: false,
      deadlineAt: null,
      phase: "started",
      dueAt: null,
      job: null,
      hash: null,
      data: null,
    };
    state.ops.set(key, op);
  }
  op.attempt = event.attempt ?? op.attempt;
  return op;
}

/** Whether it was handed to somebody who has not told how it ended. */
export const isDispatched = (op: Op): op is StepOp & { readonly job: string } =>
  op.kind === "step" && op.phase === "started" && op.job !== null;

/** At most one recorded result per step: the first stands. */
export const hasEnded = (op: StepOp) => op.phase === "completed" || op.phase === "failed" || op.phase === "skipped";

function endStep(state: RunState, event: StoredEvent, phase: "completed" | "failed" | "skipped"): void {
  const op = stepOf(state, event);
  if (hasEnded(op)) return;
  op.phase = phase;
  op.dueAt = null;
  op.job = null;
  op.data = event.data;
  if (phase === "completed" && state.steps !== null) op.hash = hashIn(event.data);
  if (phase === "completed" && event.data?.startsWith(undoMark) === true) state.undoable.push(keyOf(event));
  if (state.steps !== null) withdrawWithin(state, keyOf(event));
  answer(state, event);
}

/** It comes first in the data, so that nobody has to decode the outputs of all steps to know. */
const undoMark = '{"undo":true';

/** Nobody waits any more for what the body of a step that is over had waited for: it must not take the signals of others. */
function withdrawWithin(state: RunState, step: string): void {
  if (state.resting.size === 0 || step.includes(scopeMark)) return;
  const scope = scopeOf(step);
  for (const key of state.resting) {
    if (!key.startsWith(scope)) continue;
    const op = state.ops.get(key);
    if ((op?.kind === "timer" || op?.kind === "wait") && op.phase === "open") op.phase = "withdrawn";
    state.resting.delete(key);
  }
}

function endChild(state: RunState, event: StoredEvent, phase: "completed" | "failed" | "canceled"): void {
  const op = state.ops.get(keyOf(event));
  if (op?.kind !== "child" || op.phase !== "open") return;
  op.phase = phase;
  op.data = event.data;
  answer(state, event);
}

function settleMap(state: RunState, event: StoredEvent, op: MapOp): void {
  if (op.phase !== "open") return;
  if (op.failed.length > op.tolerate) op.phase = "failed";
  else if (op.settled === op.count) op.phase = "settled";
  else return;
  answer(state, event);
}

function takeSignal(state: RunState, seq: number): Signal {
  const index = state.signals.findIndex((signal) => signal.seq === seq);
  const [signal] = index < 0 ? [] : state.signals.splice(index, 1);
  if (signal === undefined) throw new RangeError(`The log consumes signal ${seq}, which it never received.`);
  return signal;
}

/** The name under which children know the call that started them: those of an earlier generation are strangers. */
export function childNode(state: RunState, key: string): string {
  const mark = key.indexOf(scopeMark);
  const own = mark < 0 ? 0 : (state.stepGenerations?.get(key.slice(0, mark)) ?? 0);
  if (own > 0) return `${key}~${state.generation}.${own}`;
  return state.generation === 0 ? key : `${key}~${state.generation}`;
}

/** Which call of this run a child means; "" when that call was forgotten. */
export function callOfChild(state: RunState, node: string): string {
  if (childNode(state, node) === node) return node;
  const key = node.replace(/~\d+(\.\d+)?$/, "");
  return childNode(state, key) === node ? key : "";
}

/** The status that belongs in the run's row while nobody owns the run. */
export function statusOf(state: RunState): "pending" | "waiting" | "paused" | Ending["status"] {
  if (state.ending !== null) return state.ending.status;
  if (state.paused !== null) return "paused";
  return state.startedAt === null ? "pending" : "waiting";
}
