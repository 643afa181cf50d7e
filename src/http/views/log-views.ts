/** What a run has done, in JSON: events, executions, nodes, progress, and its state after an event. */

import type { StepDetail } from "../../client/inspect/step-detail.js";
import type {
  ExecutionInfo,
  HistoryEvent,
  NodeInfo,
  ProgressInfo,
  RunSnapshot,
  TimelineInterval,
} from "../../index.js";
import type { PayloadWriter } from "../payload-writer.js";
import { integer, list, named, nullable, number, object, oneOf, payload, text, time } from "../schema.js";
import { errorSchema, isoOrNull, runStatuses } from "./run-view.js";
import { waitingSchema } from "./waiting-view.js";

/** The run that a view is about, for `redact`. */
export interface AboutRun {
  readonly runId: string;
  readonly workflow?: string;
}

export const eventSchema = named(
  "Event",
  object("An event of a run's log.", {
    seq: integer("The number of the event, from 1.", 1),
    type: text("What happened, such as `step.completed`."),
    node: nullable(text("The step, timer, wait or child that it is about.", { maxLength: 20_000 })),
    attempt: nullable(integer("The number of the attempt.", 0)),
    outcome: nullable(text("How an execution ended.")),
    at: time("When it was committed, by the clock of the database."),
    data: payload("The details, which depend on the type."),
  }),
);

export function eventView(event: HistoryEvent, writer: PayloadWriter, about: AboutRun): Record<string, unknown> {
  const { seq, type, node, attempt, outcome, at, data } = event;
  const isEmpty = Object.keys(data).length === 0;
  return {
    ...{ seq, type, node, attempt, outcome },
    at: at.toISOString(),
    data: isEmpty
      ? {}
      : writer.value(data, { ...about, kind: type === "signal.received" ? "signal" : "event", name: type }),
  };
}

const executionStates = ["scheduled", "executing", "completed", "failed", "canceled", "skipped"] as const;

export const executionSchema = named(
  "Execution",
  object("One attempt at one step.", {
    id: text("The id of the execution.", { maxLength: 20_000 }),
    step: text("The name of the step.", { maxLength: 20_000 }),
    node: text("The key of the step in the log.", { maxLength: 20_000 }),
    attempt: integer("The number of the attempt, from 1.", 0),
    worker: nullable(text("The name of the worker, where the log has it.")),
    state: oneOf("The state of the execution.", executionStates),
    outcome: nullable(text("How it ended.")),
    scheduledFor: nullable(time("The time that it was scheduled for.")),
    startedAt: nullable(time("When it started.")),
    finishedAt: nullable(time("When it ended.")),
    error: nullable(errorSchema),
    ancestryHash: nullable(text("A hash over its output and the hashes of its predecessors.")),
    continuesFrom: nullable(text("The previous execution of the same step.", { maxLength: 20_000 })),
    successor: nullable(text("The next execution of the same step.", { maxLength: 20_000 })),
  }),
);

export function executionView(execution: ExecutionInfo, writer: PayloadWriter, about: AboutRun) {
  return {
    ...execution,
    scheduledFor: isoOrNull(execution.scheduledFor),
    startedAt: isoOrNull(execution.startedAt),
    finishedAt: isoOrNull(execution.finishedAt),
    error: writer.error(execution.error, { ...about, name: execution.step }),
  };
}

export const intervalSchema = named(
  "Interval",
  object("An execution as an interval, for drawing.", {
    id: text("The id of the execution.", { maxLength: 20_000 }),
    step: text("The name of the step.", { maxLength: 20_000 }),
    attempt: integer("The number of the attempt, from 1.", 0),
    state: oneOf("The state of the execution.", executionStates),
    outcome: nullable(text("How it ended.")),
    scheduledFor: nullable(time("The time that it was scheduled for.")),
    from: nullable(time("When it started.")),
    to: nullable(time("When it ended.")),
  }),
);

export const intervalView = (interval: TimelineInterval) => ({
  ...interval,
  scheduledFor: isoOrNull(interval.scheduledFor),
  from: isoOrNull(interval.from),
  to: isoOrNull(interval.to),
});

export const nodeSchema = named(
  "Node",
  object("A step that the workflow declares, with its state in the run.", {
    id: text("The id of the node.", { maxLength: 20_000 }),
    name: text("The name of the node.", { maxLength: 20_000 }),
    kind: oneOf("A step, a branch of a graph, or a node that runs a job.", ["step", "branch", "job"]),
    job: nullable(text("The job that it runs.")),
    after: list("The names of its predecessors.", text("The name of a node.", { maxLength: 20_000 })),
    state: oneOf("The state of its latest execution.", [...executionStates, "pending", "removed"]),
    attempt: integer("The number of its latest attempt; 0 if there is none.", 0),
    outcome: nullable(text("How its latest execution ended.")),
    startedAt: nullable(time("When its latest execution started.")),
    finishedAt: nullable(time("When its latest execution ended.")),
    error: nullable(errorSchema),
    ancestryHash: nullable(text("A hash over its output and the hashes of its predecessors.")),
  }),
);

export const nodeView = (node: NodeInfo, writer: PayloadWriter, about: AboutRun) => ({
  ...node,
  startedAt: isoOrNull(node.startedAt),
  finishedAt: isoOrNull(node.finishedAt),
  error: writer.error(node.error, { ...about, name: node.name }),
});

export const stepSchema = named(
  "Step",
  object("Everything that a run has recorded about one of its steps, timers, waits or children.", {
    node: text("The key in the log.", { maxLength: 20_000 }),
    name: text("The name; it differs from the key only in built graphs.", { maxLength: 20_000 }),
    structure: nullable(
      oneOf("How the declared steps of the run are ordered; null for a function.", ["chain", "graph"]),
    ),
    idempotencyKey: nullable(
      text("The idempotency key that the code of the step gets; null if it has not been executed.", {
        maxLength: 20_000,
      }),
    ),
    input: payload("The recorded input of a completed step; null if there is none."),
    output: payload("The output of a completed step; null if there is none."),
    executions: list("The latest 100 attempts, in order.", executionSchema),
    executionCount: integer("How many attempts there are.", 0),
    events: list("The latest 50 events about it, in order.", eventSchema),
    eventCount: integer("How many events there are about it.", 0),
    children: list(
      "The latest 20 runs that it has started as children; not those of a map.",
      object("", {
        id: text("The id of the run."),
        workflow: text("The name of its workflow."),
        status: oneOf("Its status.", runStatuses),
      }),
    ),
  }),
);

export function stepView(step: StepDetail, writer: PayloadWriter, about: AboutRun) {
  const { completed, children, executions, events, ...rest } = step;
  const recorded = (kind: "input" | "output") =>
    completed !== null && kind in completed.data
      ? writer.value(completed.data[kind], { ...about, kind, name: step.name })
      : null;
  return {
    ...rest,
    input: recorded("input"),
    output: recorded("output"),
    executions: executions.map((execution) => executionView(execution, writer, about)),
    events: events.map((event) => eventView(event, writer, about)),
    children: children.map(({ id, workflow, status }) => ({ id, workflow, status })),
  };
}

export const progressSchema = named(
  "Progress",
  object("The progress that the run or a step has reported.", {
    node: text('The name of the step; "" for the run itself.', { maxLength: 20_000 }),
    done: number("How much of `total` is done."),
    total: nullable(number("How much there is to do.")),
    message: nullable(text("The message of the last report.", { maxLength: 100_000 })),
    rate: nullable(number("The items per second.")),
    etaMs: nullable(number("The milliseconds until all items are done.")),
    at: time("When the progress was stored."),
  }),
);

export const progressView = (progress: ProgressInfo, writer: PayloadWriter, about: AboutRun) => ({
  ...progress,
  message: writer.text(progress.message, { ...about, name: progress.node }),
  at: progress.at.toISOString(),
});

export const snapshotSchema = named(
  "Snapshot",
  object("The run as it was after an event.", {
    seq: integer("The number of the last event.", 0),
    at: nullable(time("When the last event happened.")),
    status: oneOf("The status. A run that a worker was executing shows as waiting.", runStatuses),
    steps: list(
      "The steps up to that event.",
      object("", {
        name: text("The name of the step.", { maxLength: 20_000 }),
        state: oneOf("Its state.", ["scheduled", "executing", "completed", "failed", "skipped"]),
        attempt: integer("The number of its latest attempt.", 0),
      }),
    ),
    waitingFor: list("What the run was waiting for.", waitingSchema),
    signals: list("The names of signals that had arrived and were not consumed.", text("The name of a signal.")),
    paused: nullable(
      object("The pause of the run.", {
        reason: nullable(text("Why it was paused.", { maxLength: 50_000 })),
        error: nullable(errorSchema),
      }),
    ),
  }),
);

export const snapshotView = (snapshot: RunSnapshot, writer: PayloadWriter, about: AboutRun) => ({
  ...snapshot,
  at: isoOrNull(snapshot.at),
  paused:
    snapshot.paused === null
      ? null
      : {
          reason: writer.text(snapshot.paused.reason, about),
          error: writer.error(snapshot.paused.error, about),
        },
});
