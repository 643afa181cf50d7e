/** Routes that read one run. */
import { toRunInfo } from "../../client/inspect/run-info.js";
import { readStepDetail } from "../../client/inspect/step-detail.js";
import { decode } from "../../core/encoding/decode.js";
import { DamagedDataError, RunNotFoundError, TimeoutError } from "../../core/errors/errors.js";
import { retryIdOf } from "../../core/run/lineage.js";
import { PawlError, RunCanceledError, RunFailedError, type RunInfo, type RunStatus } from "../../index.js";
import { type Answer, type Call, route } from "../route.js";
import { integer, list, nullable, object, oneOf, optional, payload, text, time } from "../schema.js";
import { formatEvent } from "../streams/event-stream.js";
import { limitedSchema, limitedView } from "../views/limit-view.js";
import {
  eventSchema,
  eventView,
  executionSchema,
  executionView,
  intervalSchema,
  intervalView,
  nodeSchema,
  nodeView,
  progressSchema,
  progressView,
  snapshotSchema,
  snapshotView,
  stepSchema,
  stepView,
} from "../views/log-views.js";
import { errorSchema, isoOrNull, runSchema, runStatuses, runView } from "../views/run-view.js";
import { payloadParameters, runOf } from "./common.js";

const aboutRun = ({ params }: Pick<Call, "params">) => ({ runId: params.run as string });

const withPayloads = {
  requires: "read",
  hasPayloads: true,
  query: object("", payloadParameters),
  problems: [404],
} as const;

const explanationReasons = [
  "queued",
  "ended",
  "paused",
  "executing",
  "worker_lease_expired",
  "planned",
  "waiting",
  "queue_paused",
  "no_worker",
  "limited",
  "about_to_run",
] as const;

/** A longer poll would be cut by most proxies. */
const longestPollMs = 60_000;

export const inspectRoutes = [
  route(
    "GET",
    "/api/v1/runs/{run}",
    "getRun",
    { ...withPayloads, summary: "Read a run", answers: { 200: runSchema } },
    async (call) => ({ json: runView(await readRun(call), call.writer) }),
  ),
  route(
    "GET",
    "/api/v1/runs/{run}/status",
    "getRunStatus",
    {
      summary: "Read the status of a run",
      requires: "read",
      answers: { 200: object("", { status: oneOf("The status.", runStatuses) }) },
      problems: [404],
    },
    async (call) => ({ json: { status: await runOf(call).status() } }),
  ),
  route(
    "GET",
    "/api/v1/runs/{run}/result",
    "getRunResult",
    {
      summary: "Wait for a run to end (long poll)",
      requires: "read",
      hasPayloads: true,
      query: object("", {
        ...payloadParameters,
        timeoutMs: optional(integer("How long to wait; 0 does not wait. Default 30,000.", 0, longestPollMs)),
      }),
      answers: {
        200: object("The run has ended.", {
          status: oneOf("How it ended.", ["completed", "failed", "canceled"]),
          output: payload("Its output; null unless it is completed."),
          error: nullable(errorSchema),
        }),
        202: object("The run has not ended within the time; ask again.", { status: oneOf("Its status.", runStatuses) }),
      },
      problems: [404],
    },
    async (call) => {
      const release = call.slots.take();
      try {
        const output = await awaitOutput(call, call.query.timeoutMs ?? 30_000);
        const json = call.writer.value(output, { ...aboutRun(call), kind: "output" });
        return { json: { status: "completed", output: json, error: null } };
      } catch (error) {
        if (error instanceof TimeoutError) return { status: 202, json: { status: await runOf(call).status() } };
        if (!(error instanceof RunFailedError || error instanceof RunCanceledError)) throw error;
        const status = error instanceof RunFailedError ? "failed" : "canceled";
        const cause = error instanceof RunFailedError ? (error.cause as Error) : error;
        return { json: { status, output: null, error: call.writer.error(cause, aboutRun(call)) } };
      } finally {
        release();
      }
    },
  ),
  route(
    "GET",
    "/api/v1/runs/{run}/history",
    "getRunHistory",
    {
      ...withPayloads,
      summary: "Read a window of a run's log",
      query: object("", {
        ...payloadParameters,
        after: optional(integer("Starts after the event with this number. Default 0.", 0)),
        limit: optional(integer("How many events. Default 200.", 1, 1_000)),
      }),
      answers: {
        200: object("", {
          events: list("The events, in order.", eventSchema),
          lastEvent: integer("The number of the last event that is stored. The end of a run is one more.", 0),
        }),
      },
    },
    async (call) => {
      const { after = 0, limit = 200 } = call.query;
      // Read before the events: a command with `ifLastEvent` must not rest on an event that the answer does not show.
      const lastEvent = await call.pawl.internals.store.maintenance.questions.lastEventSeq(runOf(call).runId);
      const events = await runOf(call).history({ after, limit });
      return { json: { events: events.map((event) => eventView(event, call.writer, aboutRun(call))), lastEvent } };
    },
  ),
  route(
    "GET",
    "/api/v1/runs/{run}/events",
    "watchRun",
    {
      ...withPayloads,
      summary: "Follow a run's log (server-sent events; Last-Event-ID resumes)",
      query: object("", {
        ...payloadParameters,
        after: optional(integer("Starts after the event with this number, unless Last-Event-ID is sent.", 0)),
      }),
      headers: {
        "Last-Event-ID": "The number of the last event that the client has seen; the stream goes on after it.",
      },
      answers: { 200: null },
    },
    followRun,
  ),
  route(
    "GET",
    "/api/v1/runs/{run}/executions",
    "getRunExecutions",
    {
      ...withPayloads,
      summary: "List every attempt at every step",
      answers: { 200: object("", { executions: list("", executionSchema) }) },
    },
    async (call) => {
      const executions = await runOf(call).executions();
      return { json: { executions: executions.map((one) => executionView(one, call.writer, aboutRun(call))) } };
    },
  ),
  route(
    "GET",
    "/api/v1/runs/{run}/step",
    "getRunStep",
    {
      ...withPayloads,
      summary: "Read what a run has recorded about one step, timer, wait or child",
      query: object("", { ...payloadParameters, node: text("Its key in the log.", { maxLength: 20_000 }) }),
      answers: { 200: stepSchema },
    },
    async (call) => {
      const step = await readStepDetail(call.pawl.internals.store, runOf(call).runId, call.query.node);
      return { json: stepView(step, call.writer, aboutRun(call)) };
    },
  ),
  route(
    "GET",
    "/api/v1/runs/{run}/retry",
    "getRunRetry",
    {
      summary: "Find the run that retries a run",
      requires: "read",
      answers: {
        200: object("", {
          retry: nullable(
            object("The retry; null: there is none.", {
              id: text("The id of the retry."),
              status: oneOf("Its status.", runStatuses),
            }),
          ),
        }),
      },
      problems: [404],
    },
    async (call) => {
      const { runId } = runOf(call);
      const { store } = call.pawl.internals;
      const [run, retry] = [await store.run(runId), await store.run(retryIdOf(runId))];
      if (run === null) throw new RunNotFoundError(runId);
      return { json: { retry: retry === null ? null : { id: retry.id, status: retry.status } } };
    },
  ),
  route(
    "GET",
    "/api/v1/runs/{run}/timeline",
    "getRunTimeline",
    {
      summary: "List the executions as intervals, by their start",
      requires: "read",
      answers: { 200: object("", { intervals: list("", intervalSchema) }) },
      problems: [404],
    },
    async (call) => ({ json: { intervals: (await runOf(call).timeline()).map(intervalView) } }),
  ),
  route(
    "GET",
    "/api/v1/runs/{run}/nodes",
    "getRunNodes",
    {
      ...withPayloads,
      summary: "List the declared steps with their states",
      answers: { 200: object("", { nodes: list("", nodeSchema) }) },
    },
    async (call) => {
      const nodes = await runOf(call).nodes();
      return { json: { nodes: nodes.map((node) => nodeView(node, call.writer, aboutRun(call))) } };
    },
  ),
  route(
    "GET",
    "/api/v1/runs/{run}/graph",
    "getRunGraph",
    {
      ...withPayloads,
      summary: "Read the graph of a run, as Mermaid and as data",
      answers: {
        200: object("", {
          mermaid: text("A Mermaid flowchart; steps that have not started are dashed.", { maxLength: 100_000_000 }),
          dag: payload("The graph as data, for `POST …/graph`; null for a function, or if payloads are not visible."),
        }),
      },
    },
    async (call) => {
      const mermaid = await runOf(call).toMermaid();
      const dag = call.writer.canSee ? await exportedDag(call) : null;
      return {
        json: { mermaid, dag: dag === null ? null : call.writer.value(dag, { ...aboutRun(call), kind: "graph" }) },
      };
    },
  ),
  route(
    "GET",
    "/api/v1/runs/{run}/progress",
    "getRunProgress",
    {
      ...withPayloads,
      summary: "Read the progress that a run has reported",
      answers: { 200: object("", { progress: list("", progressSchema) }) },
    },
    async (call) => {
      const progress = await runOf(call).progress();
      return { json: { progress: progress.map((one) => progressView(one, call.writer, aboutRun(call))) } };
    },
  ),
  route(
    "GET",
    "/api/v1/runs/{run}/explanation",
    "explainRun",
    {
      summary: "Explain why a run is not moving",
      requires: "read",
      answers: {
        200: object("", {
          because: oneOf("The reason, for programs.", explanationReasons),
          text: nullable(text("The reason in one or two sentences.", { maxLength: 50_000 })),
          since: nullable(time("Since when.")),
          until: nullable(time("When the run continues if nothing else happens.")),
          expiresAt: optional(time("When the run is canceled if it has not begun by then.")),
          limited: optional(limitedSchema),
        }),
      },
      problems: [404],
    },
    async (call) => {
      const { because, text: sentence, since, until, expiresAt, limited } = await runOf(call).explain();
      const shown = call.writer.text(sentence, aboutRun(call));
      const expiry = expiresAt === undefined ? {} : { expiresAt: expiresAt.toISOString() };
      const limit = limited === undefined ? {} : { limited: limitedView(limited, call.writer) };
      return { json: { because, text: shown, since: isoOrNull(since), until: isoOrNull(until), ...expiry, ...limit } };
    },
  ),
  route(
    "GET",
    "/api/v1/runs/{run}/state",
    "getRunState",
    {
      ...withPayloads,
      summary: "Read a run as it was after an event",
      query: object("", { ...payloadParameters, event: integer("The number of the event.", 0) }),
      answers: { 200: snapshotSchema },
    },
    async (call) => ({ json: snapshotView(await runOf(call).stateAt(call.query.event), call.writer, aboutRun(call)) }),
  ),
];

/** Fields that cannot be read are named in `damaged`: people need the rest of the run to find out what is wrong. */
async function readRun(call: Call): Promise<RunInfo> {
  try {
    return await runOf(call).get();
  } catch (error) {
    const run = error instanceof DamagedDataError ? await call.pawl.internals.store.run(runOf(call).runId) : null;
    if (run === null) throw error;
    return toRunInfo(run);
  }
}

/** @throws TimeoutError if the run has not ended within the time */
async function awaitOutput(call: Call, timeout: number): Promise<unknown> {
  const { signal } = call;
  try {
    return await runOf(call).result({ timeout, signal });
  } catch (error) {
    // A short time may be over before the first answer of the database, so that the run may have ended long ago.
    if (error instanceof TimeoutError && hasEnded(await runOf(call).status())) return runOf(call).result({ signal });
    throw error;
  }
}

const hasEnded = (status: RunStatus) => status === "completed" || status === "failed" || status === "canceled";

/** The graph with the arguments of its jobs, decoded; null: the run is a function. */
async function exportedDag(call: Call): Promise<unknown> {
  try {
    return decode(await runOf(call).exportDag());
  } catch (error) {
    if (error instanceof PawlError && error.code === "INVALID_STATE") return null;
    throw error;
  }
}

const eventsPerPage = 200;

/**
 * The events of the run, each once and in order: a client that lost its connection says which event it saw last. The
 * stream ends after the event that ended the run.
 */
async function followRun(call: Call<{ readonly after?: number }>): Promise<Answer> {
  const run = runOf(call);
  const { runId } = run;
  await run.status(); // A run that does not exist is answered with 404.
  const lastSeen = call.headers.get("last-event-id");
  let position = lastSeen !== null && /^\d{1,15}$/.test(lastSeen) ? Number(lastSeen) : (call.query.after ?? 0);
  const release = call.slots.take();
  const watch = call.runFeeds.watch(runId, release);
  let hasEnded = false;
  const next = async (): Promise<string | null> => {
    for (;;) {
      if (hasEnded) return null;
      const progress = await watch.after(position);
      if (progress === null) return null;
      const { lastEvent, hasEnded: isOver } = progress;
      const events = await call.questions.ask(`log ${runId} ${position} ${lastEvent} ${isOver}`, () =>
        run.history({ after: position, limit: eventsPerPage }),
      );
      if (events.length === 0 && isOver) {
        hasEnded = true;
        return formatEvent({ event: "end", data: { status: await run.status() } });
      }
      if (events.length === 0) continue;
      position = (events.at(-1) as { readonly seq: number }).seq;
      return events
        .map((event) => formatEvent({ id: event.seq, data: eventView(event, call.writer, { runId }) }))
        .join("");
    }
  };
  return call.openStream({ next, close: () => watch.close() });
}
