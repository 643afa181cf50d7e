/** Routes about workflows, workers and queues. */
import type { QueueInfo, WorkerHealth, WorkflowMetrics } from "../../index.js";
import type { PayloadWriter } from "../payload-writer.js";
import { route } from "../route.js";
import {
  flag,
  instant,
  integer,
  list,
  nullable,
  number,
  object,
  oneOf,
  optional,
  payload,
  text,
  time,
} from "../schema.js";
import { auditFields, auditOf, emptyBody, operatorOf } from "./common.js";

const workerSchema = object("A worker.", {
  id: text("The id of the worker."),
  name: text("The name of the worker."),
  host: text("The host that its process runs on."),
  pid: integer("The id of its process.", 0),
  port: nullable(integer("The port for health checks of its process.", 0)),
  live: flag("Whether its lease has not expired."),
  startedAt: time("When it started."),
  heartbeatAt: time("When it sent its last heartbeat."),
  leaseMs: integer("How long after a heartbeat its lease expires.", 0),
  executing: integer("The number of runs that it was executing as of its last heartbeat.", 0),
  loopLagMs: nullable(
    integer("How long the event loop of its process was blocked at the longest between its last two heartbeats.", 0),
  ),
  workflows: list(
    "The workflows that it executes.",
    object("", { name: text("The name."), version: text('The version; "" if it has none.') }),
  ),
  jobs: list("The jobs that it executes.", text("The name of a job.")),
  graphs: flag("Whether it coordinates graphs that were built at run time."),
});

const workerView = (worker: WorkerHealth) => ({
  ...worker,
  startedAt: worker.startedAt.toISOString(),
  heartbeatAt: worker.heartbeatAt.toISOString(),
});

const pauseSchema = nullable(
  object("The pause of the queue.", {
    at: time("When it was paused."),
    reason: nullable(text("Why it was paused.", { maxLength: 5_000 })),
    by: nullable(text("Who paused it.")),
  }),
);

const queueSchema = object("A queue.", {
  name: text("The name of the queue."),
  workflows: list("The workflows that use it.", text("The name of a workflow.")),
  depth: integer("The number of runs that are due and that no worker executes.", 0),
  depthCapped: flag("Whether more runs are due: about 10,000 are counted of each workflow and version."),
  oldestAgeMs: nullable(number("How long the oldest of them has been due.")),
  executing: integer("The number of runs that are being executed, as of the last heartbeats of the workers.", 0),
  workers: list("The live workers that take runs from it.", text("The name of a worker.")),
  paused: pauseSchema,
});

const workflowSchema = object("A registered workflow.", {
  name: text("The name of the workflow."),
  queue: text("The queue of its runs."),
  version: text('The latest version; "" if it has none.'),
  steps: list(
    "The steps that its class or graph declares.",
    object("", {
      name: text("The name of the step."),
      kind: oneOf("A step, or a branch of a graph.", ["step", "branch"]),
      after: list("The names of its predecessors.", text("A name.")),
    }),
  ),
  inputSchema: nullable(payload("The JSON Schema of its inputs, if its schema library offers one.")),
  createdAt: time("When it was first registered."),
});

const distribution = object("In milliseconds; null if there is nothing to measure.", {
  mean: nullable(number("The mean.")),
  p50: nullable(number("The median.")),
  p95: nullable(number("95 % of the values are at most this.")),
  p99: nullable(number("99 % of the values are at most this.")),
});

const metricsSchema = object("The metrics of a workflow.", {
  workflow: text("The name of the workflow."),
  since: time("The metrics count only runs that were created since."),
  truncated: flag("Whether there were more than 10,000 runs, of which the newest were counted."),
  runs: payload("The number of runs by status, of all runs (`total`) and of those that have not ended (`active`)."),
  successRate: nullable(number("The share of completed runs among completed and failed runs.")),
  durations: distribution,
  waits: distribution,
  queue: object("The load of its runs.", {
    name: text("The name of the queue."),
    paused: pauseSchema,
    depth: integer("Runs that are due.", 0),
    depthCapped: flag("Whether more runs are due than were counted."),
    oldestAgeMs: nullable(number("How long the oldest of them has been due.")),
    executing: integer("Runs that are being executed, as of the last heartbeats of the workers.", 0),
  }),
  workers: list("The workers that have the workflow.", workerSchema),
});

const pauseView = ({ paused }: Pick<QueueInfo, "paused">, writer: PayloadWriter) =>
  paused === null ? null : { at: paused.at.toISOString(), reason: writer.text(paused.reason, {}), by: paused.by };

const metricsView = (metrics: WorkflowMetrics, writer: PayloadWriter) => ({
  ...metrics,
  since: metrics.since.toISOString(),
  queue: { ...metrics.queue, paused: pauseView(metrics.queue, writer) },
  workers: metrics.workers.map(workerView),
});

export const operateRoutes = [
  route(
    "GET",
    "/api/v1/workflows",
    "listWorkflows",
    {
      summary: "List the registered workflows",
      requires: "read",
      answers: { 200: object("", { workflows: list("", workflowSchema) }) },
    },
    async ({ pawl, questions }) => {
      const workflows = await questions.ask("workflows", () => pawl.workflows());
      const views = workflows.map(({ createdAt, ...rest }) => ({ ...rest, createdAt: createdAt.toISOString() }));
      return { json: { workflows: views } };
    },
  ),
  route(
    "GET",
    "/api/v1/workflows/{workflow}/metrics",
    "getMetrics",
    {
      summary: "Read the metrics of a workflow",
      requires: "read",
      query: object("", { since: optional(instant("Counts only runs that were created since. Default: a day ago.")) }),
      answers: { 200: metricsSchema },
      problems: [404],
    },
    async ({ pawl, params, query, questions, writer }) => {
      const workflow = params.workflow as string;
      const options = query.since === undefined ? {} : { since: query.since };
      const metrics = await questions.ask(`metrics ${JSON.stringify([workflow, options])}`, () =>
        pawl.metrics(workflow, options),
      );
      return { json: metricsView(metrics, writer) };
    },
  ),
  route(
    "GET",
    "/api/v1/workers",
    "listWorkers",
    {
      summary: "List all known workers, live and dead",
      requires: "read",
      answers: { 200: object("", { workers: list("", workerSchema) }) },
    },
    async ({ pawl, questions }) => {
      const workers = await questions.ask("workers", () => pawl.workers());
      return { json: { workers: workers.map(workerView) } };
    },
  ),
  route(
    "GET",
    "/api/v1/queues",
    "listQueues",
    { summary: "List all queues", requires: "read", answers: { 200: object("", { queues: list("", queueSchema) }) } },
    async ({ pawl, questions, writer }) => {
      const queues = await questions.ask("queues", () => pawl.queues());
      return { json: { queues: queues.map((queue) => ({ ...queue, paused: pauseView(queue, writer) })) } };
    },
  ),
  route(
    "POST",
    "/api/v1/queues/{queue}/pause",
    "pauseQueue",
    { summary: "Pause a queue", requires: "queues", body: object("", auditFields), answers: { 200: emptyBody } },
    async (call) => {
      const { by, reason } = auditOf(call);
      await call.pawl.pauseQueue(call.params.queue as string, reason, { by });
      return { json: {} };
    },
  ),
  route(
    "POST",
    "/api/v1/queues/{queue}/resume",
    "resumeQueue",
    {
      summary: "Resume a paused queue",
      requires: "queues",
      body: object("", auditFields),
      answers: { 200: emptyBody },
    },
    async (call) => {
      await call.pawl.resumeQueue(call.params.queue as string);
      call.pawl.internals.log.info(`Queue "${call.params.queue}" was resumed by ${operatorOf(call)}.`);
      return { json: {} };
    },
  ),
];
