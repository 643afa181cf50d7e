/**
 * One sample of everything that Pawl stores as JSON, with every field: a field that is added to a stored type does not
 * compile until it is added here. Each sample is written by the code that writes it for a run.
 */
import { ShapeRegistry, shapeRegistration } from "../../src/client/operate/shape-registry.js";
import { registrationOf } from "../../src/client/start/registration.js";
import { decode } from "../../src/core/encoding/decode.js";
import { encode } from "../../src/core/encoding/encode.js";
import type { Failure } from "../../src/core/encoding/error-record.js";
import { type FrozenDag, parseDag, signDag } from "../../src/core/graph/frozen-dag.js";
import { dataOf, newEvent, type StoredEvent } from "../../src/core/run/event.js";
import { fold } from "../../src/core/run/fold.js";
import { decodeMessage, encodeMessage } from "../../src/core/run/message.js";
import { parseParkingNote, withOpenLanes, withParkedSteps, writeParkingNote } from "../../src/core/run/parking-note.js";
import { readProgress, writeProgress } from "../../src/core/run/progress.js";
import { initialState } from "../../src/core/run/state.js";
import type {
  Command,
  CommandAudit,
  EventData,
  EventType,
  JobInput,
  ParkingNote,
  Progress,
  RegisteredWorkflow,
  Route,
  Waiting,
} from "../../src/core/run/stored-schema.js";
import type { WorkflowDefinition } from "../../src/define/definition.js";
import { packEvents, unpackRow } from "../../src/store/shared/event-rows.js";

/** The stored text, and the value as which it is read. */
export interface Sample {
  readonly text: string;
  readonly value: unknown;
}

export interface Stored {
  readonly sample: Sample;
  /** Reads the text of any version. */
  readonly read: (text: string) => unknown;
}

/** A value with every field, including the optional ones. */
type Full<T> = { [Name in keyof T]-?: T[Name] };

const error: Failure = {
  ...{ name: "RangeError", message: "too far", stack: "RangeError: too far\n    at here", code: "E_FAR" },
  ...{ cause: { name: "Error", message: "a cause" }, errors: [{ name: "Error", message: "one of them" }] },
  ...{ value: { thrown: 1 }, data: { retryAfter: 5 } },
};
const dag: FrozenDag = signDag(
  {
    n1: { name: "first", job: "Resize", args: { at: new Date(5) }, depends_on: [] },
    n2: { name: "second", depends_on: ["n1"] },
  },
  new Date(0),
  { concurrency: 3, onNodeFailure: "continue" },
);
const place = { run: "r0", node: "send" };
const hash = "0123456789abcdef".repeat(4);

const events: { readonly [T in EventType]: Full<EventData[T]> } = {
  "run.started": { startedAt: 1, timeoutMs: 2, steps: "chain", shape: "s", checked: true, input: { a: 1n } },
  "command.accepted": { command: "pause", by: "ada", reason: "why" },
  "input.checked": { input: new Map([[1, 2]]) },
  "run.forked": {
    ...{ from: "r1", root: "r0", keyRunIds: { pay: "r1" }, redo: ["pay"] },
    ...{ children: { send: [place] }, hashes: { pay: [hash] } },
  },
  "run.recovered": { deliveries: 2 },
  "run.blocked": { worker: "w", session: "w 1", by: "r2", suspected: true },
  "run.paused": { reason: "why", error, resumeOn: "go", recheckMs: 3, continuesWhenResumed: true },
  "run.resumed": { by: "signal", signal: 4, onlyStep: "pay", accept: ["pay"], renamed: { bill: "pay" } },
  "run.cancel_requested": { reason: "why", force: true, code: "EXPIRED" },
  "run.expired": { error },
  "run.reattempted": { waitMs: 5, rewind: true, transient: true },
  "run.woken": {},
  "run.became_due": {},
  "run.moved": { to: "pay" },
  "run.completed": { output: [undefined, new Date(0)] },
  "run.failed": { error },
  "run.start_queued": { run: "r7" },
  "run.start_replaced": { startBy: 29 },
  "run.canceled": { reason: "why", code: "EXPIRED" },
  "step.scheduled": { waitMs: 6 },
  "step.started": { timeoutMs: 7, worker: "w" },
  "step.completed": { undo: true, hash, by: "operator", ms: 8, output: { hash: '"hash":"' }, input: [1] },
  "step.failed": { error, ms: 9, retryMs: 10, transient: true, jobRunEnded: true, cursorMoved: true, worker: "w" },
  "step.reattempted": { waitMs: 11, ms: 12, rewind: true, cursorUnmoved: true },
  "step.skipped": { by: "code", error, ms: 13, worker: "w" },
  "step.canceled": { ms: 14 },
  "node.dispatched": { job: "Resize" },
  "node.reopened": {},
  "dag.imported": { dag },
  "timer.started": { ms: 15, until: 16 },
  "timer.fired": {},
  "signal.received": { name: "go", payload: new Set([1]), key: "k" },
  "wait.started": { names: ["go", "stop"], mode: "any", timeoutMs: 17 },
  "wait.completed": { signals: [18] },
  "wait.timed_out": {},
  "wait.withdrawn": {},
  "child.started": { runId: "r3", workflow: "child" },
  "child.completed": { output: "done" },
  "child.failed": { error },
  "child.canceled": { reason: "why", code: "EXPIRED" },
  "map.started": {
    ...{ workflow: "child", count: 9, concurrency: 3, tolerate: 1, spawned: 5, released: 3 },
    ...{ from: [{ ...place, indexes: [[0, 1]] }], failed: [[1, 1]] },
  },
  "map.spawned": { spawned: 9, released: 4 },
  "map.released": { released: 5 },
  "map.settled": { completed: [[2, 3]], failed: [[4, 4]] },
  "shape.changed": { shape: "t", removedSteps: ["pay"], passedSteps: ["ship"] },
  "branch.chosen": { choice: "left" },
  "patch.applied": {},
  "call.added": {},
};

const commands: {
  readonly [T in Command["type"]]: Full<Omit<Extract<Command, { readonly type: T }>, "audit">> & Pick<Command, "audit">;
} = {
  signal: { type: "signal", name: "go", payload: '{"a":1}', key: "k" },
  pause: { type: "pause", reason: "why", audit: { by: "ada", reason: "why" } satisfies Full<CommandAudit> },
  resume: { type: "resume", output: "1", accept: ["pay"], renamed: { bill: "pay" } },
  resumeAt: { type: "resumeAt", step: "pay" },
  skip: { type: "skip" },
  cancel: { type: "cancel", reason: "why", force: true },
  start: { type: "start" },
  queueStart: { type: "queueStart", run: "r7", cancel: true },
  startOverdue: { type: "startOverdue", startBy: 19 },
  limitFull: { type: "limitFull", limit: "api", key: "a", effect: "supersede", by: "r7", chain: ["r7 waits"] },
  reattempt: { type: "reattempt", node: "n1", descendants: ["n2"] },
  import: { type: "import", dag },
  child: { type: "child", node: "send", status: "failed", output: null, error, reason: null, code: "EXPIRED" },
  children: { type: "children", node: "send", completed: [[0, 1]], failed: [[2, 2]] },
  jobGone: { type: "jobGone", job: "Resize" },
  blocked: { type: "blocked", worker: "w", session: "w 1", step: "pay", by: null },
  nodes: {
    type: "nodes",
    results: [
      { node: "n1", attempt: 1, output: "1", error: null, retryMs: null, ms: 2 },
      { node: "n2", attempt: 2, output: null, error, retryMs: 1_000, ms: 3 },
    ] satisfies Full<Extract<Command, { readonly type: "nodes" }>["results"][number]>[],
  },
};

const waits: { readonly [K in Waiting["kind"]]: Full<Extract<Waiting, { readonly kind: K }>> } = {
  reattempt: { kind: "reattempt" },
  sleep: { kind: "sleep", name: "nap" },
  signal: { kind: "signal", names: ["go"] },
  step: { kind: "step", step: "remind", attempt: 1 },
  retry: { kind: "retry", step: "pay", attempt: 2 },
  child: { kind: "child", name: "one", runId: "r3", workflow: "child" },
  map: { kind: "map", name: "many", workflow: "child", settled: 0, count: 2 },
  jobs: { kind: "jobs", open: 1, jobs: ["Resize"] },
};

/** The log of a run that waits for all of these. */
const waiting: readonly StoredEvent[] = [
  newEvent("run.started", {}, { steps: "chain" }),
  newEvent("run.reattempted", {}, { waitMs: 1, rewind: false }),
  newEvent("timer.started", { node: "nap" }, { ms: 1 }),
  newEvent("wait.started", { node: "signal:go" }, { names: ["go"], mode: "any" }),
  newEvent("step.scheduled", { node: "remind", attempt: 1 }, { waitMs: 1 }),
  newEvent("step.failed", { node: "pay", attempt: 1 }, { error, retryMs: 1 }),
  newEvent("child.started", { node: "one" }, { runId: "r3", workflow: "child" }),
  newEvent(
    "map.started",
    { node: "many" },
    { workflow: "child", count: 2, concurrency: 2, tolerate: 0, spawned: 2, released: 2 },
  ),
  newEvent("node.dispatched", { node: "n1", attempt: 1 }, { job: "Resize" }),
  newEvent("run.paused", { node: "pay" }, { reason: "why", error: { name: "RangeError", message: "too far" } }),
].map((one, index) => ({ ...one, seq: index + 1, at: 1_000 }));

const note: Full<ParkingNote> = {
  ...{ fingerprint: "f332a3b1a094149f", error: { name: "RangeError", message: "too far", step: "pay" } },
  ...{ seenVersion: 3, seq: waiting.length, waitingFor: Object.values(waits) },
  ...{ paused: "why", pausedAt: 1_000, step: { name: "remind", attempt: 1 } },
  openLanes: ["per_customer\tada"],
  parkedSteps: true,
};

const progress: Full<Progress> = { done: 1, total: 2, message: "half", moves: 3, items: 4, ms: 5 };

const jobInput: Full<JobInput> = {
  ...{ args: { file: "a" }, run: "r0", node: { id: "n1", name: "first" } },
  ...{ attempt: 2, failures: 1, key: "r1:n1" },
};

const registered: Full<RegisteredWorkflow> = {
  ...{
    priority: 1,
    startByMs: 23,
    tags: ["red"],
    hero: { type: "User", required: true, allowMultiple: false },
    stepQueues: ["slow"],
  },
  nodes: [
    { name: "pay", kind: "step", job: "Pay", after: [], waitMs: 5 },
    { name: "way", kind: "branch", after: ["pay"] },
  ],
  isChain: true,
  inputSchema: { type: "object" },
  batch: { key: "input.user", size: 50, withinMs: 2_000 },
};

const shaped = {
  name: "order",
  declared: { kind: "chain", signature: "s", nodes: registered.nodes, queues: [], hasStepRouting: false },
  aliases: { pay: ["bill"] },
} as unknown as WorkflowDefinition;

const routes: readonly Full<Route>[] = [{ workflow: "order", version: "2" }];

const row = { queue: "order", version: "", signature: null, createdAt: 0 };

/** A registered shape is read as which step comes after which. */
function parentsIn(graph: string): unknown {
  const shapes = new ShapeRegistry([{ ...row, name: "\tshape:1", graph }]);
  const { byRecordedShape } = shapes.possibleParents("order", { ...initialState(), stepSignature: "s" });
  return byRecordedShape.map((parentsOf) => [parentsOf("pay"), parentsOf("way"), parentsOf("other")]);
}

function unpacked(data: string): unknown {
  const out: StoredEvent[] = [];
  unpackRow({ ...packEvents(batch), data, seq: 1, at: 0 }, 0, out);
  return out;
}

const batch = [
  newEvent("step.completed", { node: "a", attempt: 1, outcome: "success" }, { ms: 1 }, { output: '"x"' }),
  newEvent("timer.fired", { node: "nap" }),
];

/** By name, in the order of the schema. */
export const stored: ReadonlyMap<string, Stored> = new Map([
  ...(Object.keys(events) as EventType[]).map((type): [string, Stored] => [
    `event ${type}`,
    {
      sample: { text: newEvent(type, {}, events[type] as EventData[EventType]).data as string, value: events[type] },
      read: (data) => dataOf({ data }, type),
    },
  ]),
  [
    "events of one commit",
    { sample: { text: packEvents(batch).data as string, value: numbered(batch) }, read: unpacked },
  ],
  ...Object.values(commands).map((command): [string, Stored] => [
    `message ${command.type}`,
    {
      sample: { text: encodeMessage("r0", command).data, value: command },
      read: (data) => decodeMessage({ kind: command.type, data }),
    },
  ]),
  [
    "parking note",
    {
      sample: {
        text: withOpenLanes(withParkedSteps(writeParkingNote(fold(waiting), 3), true), note.openLanes) ?? "",
        value: note,
      },
      read: parseParkingNote,
    },
  ],
  [
    "parking note of an ended run",
    { sample: { text: "7", value: { waitingFor: [], seq: 7 } }, read: parseParkingNote },
  ],
  [
    "frozen graph",
    {
      sample: { text: encode(dag, { label: "graph" }), value: dag },
      read: (text) => parseDag("order", text),
    },
  ],
  ["job input", { sample: { text: encode(jobInput, { label: "input" }), value: jobInput }, read: decode }],
  ["progress", { sample: { text: writeProgress(progress), value: progress }, read: readProgress }],
  [
    "registered workflow",
    {
      sample: { text: JSON.stringify(registered), value: { queue: "order", version: "", ...registered } },
      read: (graph) => registrationOf({ ...row, name: "order", graph }),
    },
  ],
  [
    "registered shape",
    { sample: { text: shapeRegistration(shaped)?.graph as string, value: [[[], ["pay"], null]] }, read: parentsIn },
  ],
  ["routes of a worker", { sample: { text: JSON.stringify(routes), value: routes }, read: (text) => JSON.parse(text) }],
]);

function numbered(list: readonly Omit<StoredEvent, "seq" | "at">[]): StoredEvent[] {
  return list.map((one, index) => ({ ...one, seq: index + 1, at: 0 }));
}
