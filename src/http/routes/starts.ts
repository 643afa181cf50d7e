/** Routes that start runs. */
import type { BuildOptions, GraphBuilder, RunHandle, StartOptions } from "../../index.js";
import { HttpError } from "../problem.js";
import { type Answer, type Call, route } from "../route.js";
import { duration, flag, integer, list, named, nullable, object, oneOf, optional, text } from "../schema.js";
import { auditOf, emptyBody, keyedStartFields, readValue, startFields, valueField } from "./common.js";

const startedSchema = named(
  "Started",
  object("A run that was started.", {
    id: text("The id of the run."),
    created: flag(
      "False if a run with this idempotency key existed, or if the start was merged; that run is returned then.",
    ),
    merged: flag(
      "Whether the start was added to a run that had not begun, by `debounce` or by the `batch` of its workflow.",
    ),
    replaced: optional(flag("With `onConflict: replace`: whether the start replaced what the run was started with.")),
    startsAfter: optional(text("With `onConflict`: the open run for whose end the run waits.")),
    warning: nullable(text("A warning, such as that no live worker has the workflow.")),
  }),
);

const startedView = ({ id, created, merged, replaced, startsAfter, warning }: RunHandle) => ({
  id,
  created: created === true,
  merged,
  ...(replaced === null ? {} : { replaced }),
  ...(startsAfter === null ? {} : { startsAfter }),
  warning,
});

const debounceField = object("Merges this start with others of the same key, as long as their run has not begun.", {
  key: text("Starts of the workflow with the same key are merged.", { maxLength: 4_000 }),
  quiet: duration("The run is due when there was no further start for so long."),
  max: optional(duration("The run is due at the latest so long after its first start. Default: ten times `quiet`.")),
  keep: optional(
    oneOf("The input that the run gets: of the last start (the default), of the first, or a list of all.", [
      "last",
      "first",
      "all",
    ]),
  ),
});

const startBody = object("", {
  input: optional(valueField("The input.")),
  ...keyedStartFields,
  debounce: optional(debounceField),
});

const startManyBody = object("", {
  inputs: list("One input for each run.", valueField("An input."), 10_000),
  ...startFields,
});

const graphNode = object("A node of the graph.", {
  name: text("The name of the node.", { maxLength: 200 }),
  job: text("The job that the node runs.", { maxLength: 200 }),
  args: optional(valueField("The arguments of the job.")),
  dependsOn: optional(
    nullable(
      list("The nodes before it. Default: the node before it in the list. null: it starts at once.", text("A name.")),
    ),
  ),
});

const buildBody = object("", {
  name: text("The name of the graph.", { maxLength: 200 }),
  nodes: list("The nodes.", graphNode, 100_000),
  concurrency: optional(integer("How many nodes run at the same time.", 1)),
  onNodeFailure: optional(
    oneOf("Whether nodes that do not depend on a failed node still start. Default stop.", ["stop", "continue"]),
  ),
  start: optional(flag("False stores the run without starting it.")),
  ...keyedStartFields,
});

/** The header is the usual place for the key; the body may have it as well, but not another one. */
function keyOf(headers: Headers, body: { readonly idempotencyKey?: string }): { idempotencyKey?: string } {
  const header = headers.get("idempotency-key");
  const key = header ?? body.idempotencyKey;
  if (header !== null && body.idempotencyKey !== undefined && body.idempotencyKey !== header)
    throw new HttpError(400, "BAD_REQUEST", "The header Idempotency-Key and the body have different keys.");
  return key === undefined ? {} : { idempotencyKey: key };
}

interface StartBody {
  readonly input?: unknown;
  readonly idempotencyKey?: string;
  readonly by?: string;
  readonly reason?: string;
}

function startOptionsOf(call: Call<unknown, StartBody>): StartOptions {
  const { input: _input, by: _by, reason: _reason, ...options } = call.body;
  return { ...(options as StartOptions), ...keyOf(call.headers, call.body), ...auditOf(call) };
}

/** The types of `start` are for definitions that the compiler knows; this one came in an option. */
const startDefinition = (pawl: Call["pawl"], definition: unknown, input: unknown, options: StartOptions) =>
  (pawl.start as (...args: unknown[]) => Promise<RunHandle>).call(pawl, definition, input, options);

const keyHeader = {
  "Idempotency-Key": "Starts the workflow once for this key. The field `idempotencyKey` is the same.",
};

/**
 * 201 if the run is new, 200 if it existed.
 *
 * @param runs where the runs are, relative to the path of the route, because a proxy may have changed the path before it
 */
const started = (handle: RunHandle, runs: string): Answer => ({
  status: handle.created === true ? 201 : 200,
  json: startedView(handle),
  headers: { Location: `${runs}/${handle.id}` },
});

export const startRoutes = [
  route(
    "POST",
    "/api/v1/workflows/{workflow}/runs",
    "startRun",
    {
      summary: "Start a run",
      requires: "start",
      body: startBody,
      headers: keyHeader,
      answers: { 200: startedSchema, 201: startedSchema },
      problems: [404, 409, 422],
    },
    async (call) => {
      const { pawl, params, body } = call;
      const runsPath = "../../runs";
      const options = startOptionsOf(call as Call<unknown, StartBody>);
      const input = "input" in body ? readValue(body.input) : undefined;
      const definition = call.findDefinition(params.workflow as string);
      if (definition !== undefined) return started(await startDefinition(pawl, definition, input, options), runsPath);
      return started(await pawl.workflow(params.workflow as string).trigger(input, options), runsPath);
    },
  ),
  route(
    "POST",
    "/api/v1/workflows/{workflow}/runs/batch",
    "startRuns",
    {
      summary: "Start many runs",
      requires: "start",
      body: startManyBody,
      answers: { 201: object("", { runs: list("The runs, in the order of the inputs.", startedSchema) }) },
      problems: [404],
    },
    async (call) => {
      const { pawl, params, body } = call;
      const { inputs: _inputs, by: _by, reason: _reason, ...options } = body;
      if (call.headers.has("idempotency-key"))
        throw new HttpError(400, "BAD_REQUEST", "A batch takes no Idempotency-Key: start its runs one by one.");
      const values = body.inputs.map(readValue);
      const startOptions = { ...(options as StartOptions), ...auditOf(call) };
      const definition = call.findDefinition(params.workflow as string);
      const handles =
        definition === undefined
          ? await pawl.workflow(params.workflow as string).triggerMany(values, startOptions)
          : await pawl.startMany(definition as never, values as never, startOptions);
      return { status: 201, json: { runs: handles.map(startedView) } };
    },
  ),
  route(
    "POST",
    "/api/v1/graphs",
    "buildGraph",
    {
      summary: "Build a graph of jobs and start it",
      requires: "start",
      body: buildBody,
      headers: keyHeader,
      answers: { 200: startedSchema, 201: startedSchema },
      problems: [409, 422],
    },
    async (call) => {
      const {
        name,
        nodes,
        input: _input,
        by: _by,
        reason: _reason,
        ...options
      } = call.body as typeof call.body & StartBody;
      const build = (g: GraphBuilder) => {
        for (const { name: node, job, args, dependsOn } of nodes)
          g.node(node, {
            job,
            ...(args === undefined ? {} : { args: readValue(args) as never }),
            ...(dependsOn === undefined ? {} : { dependsOn: dependsOn === null ? null : [...dependsOn] }),
          });
      };
      const buildOptions = { ...options, ...keyOf(call.headers, call.body), ...auditOf(call) } as BuildOptions;
      return started((await call.pawl.build(name, build, buildOptions)) as RunHandle, "runs");
    },
  ),
  route(
    "POST",
    "/api/v1/workflows/{workflow}",
    "createWorkflow",
    {
      summary: "Register a workflow by name, so that it can be started before any worker has it",
      requires: "start",
      body: object("", { queue: optional(text("The queue of its runs.", { maxLength: 200 })) }),
      answers: { 200: emptyBody },
    },
    async ({ pawl, params, body }) => {
      await pawl.createWorkflow(params.workflow as string, body.queue === undefined ? {} : { queue: body.queue });
      return { json: {} };
    },
  ),
];
