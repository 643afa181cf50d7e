/** Routes that read many runs. Everyone who watches the same list shares one question (`SharedQuestions`). */
import { readWorkflowFigures } from "../../client/operate/workflow-figures.js";
import type { RunsFilter } from "../../index.js";
import { HttpError } from "../problem.js";
import { type Call, route } from "../route.js";
import {
  duration,
  flag,
  instant,
  integer,
  list,
  nullable,
  object,
  oneOf,
  optional,
  record,
  text,
  time,
} from "../schema.js";
import { runSchema, runStatuses, runView } from "../views/run-view.js";
import { listedPayloadBytes, payloadParameters } from "./common.js";

const statusNumbers = object("The number of runs in each status.", {
  pending: integer("Runs that have not started.", 0),
  running: integer("Runs that a worker executes.", 0),
  waiting: integer("Runs that wait for a time, a signal or another run.", 0),
  paused: integer("Runs that wait for an operator.", 0),
  failed: integer("Runs that failed.", 0),
  canceled: integer("Runs that were canceled.", 0),
});

const listQuery = object("", {
  ...payloadParameters,
  workflow: optional(text("Only runs of this workflow.")),
  status: optional(oneOf("Only runs with this status.", runStatuses)),
  active: optional(flag("true: only runs that have not ended. false: only runs that have ended.")),
  heroType: optional(text("Together with heroId: only runs of this hero.")),
  heroId: optional(text("Together with heroType: only runs of this hero.")),
  idempotencyKey: optional(text("Only runs that were started with this key.")),
  tag: optional(text("Only runs that have this tag.")),
  fingerprint: optional(text("Only runs that failed or are paused because of this error.", { maxLength: 100 })),
  version: optional(text("Only runs of this version of their workflow.", { maxLength: 200 })),
  step: optional(
    text("Only runs that failed or are paused at this step, wait for it, or are at it.", { maxLength: 200 }),
  ),
  error: optional(
    text("Only runs that failed or are paused because of an error that contains this text. Needs `payloads`.", {
      maxLength: 1_000,
    }),
  ),
  tookAtLeast: optional(duration("Only runs that have taken at least this long.")),
  tookAtMost: optional(duration("Only runs that have taken at most this long.")),
  parentId: optional(text('Only children of this run. "none": only runs without a parent.', { maxLength: 100 })),
  createdAfter: optional(instant("Only runs that were created then or later.")),
  createdBefore: optional(instant("Only runs that were created before.")),
  explain: optional(flag("Explains the runs that have not ended.")),
  limit: optional(integer("How many runs. Default 50.", 1, 1_000)),
  cursor: optional(text("The `next` of the previous page.")),
});

function filterOf({ query }: Call<ParsedListQuery>): RunsFilter {
  const { plain: _plain, maxPayload: _max, heroType, heroId, parentId, ...rest } = query;
  if ((heroType === undefined) !== (heroId === undefined))
    throw new HttpError(400, "BAD_REQUEST", "heroType and heroId belong together.");
  return {
    ...(rest as RunsFilter),
    ...(heroType === undefined || heroId === undefined ? {} : { hero: { type: heroType, id: heroId } }),
    ...(parentId === undefined ? {} : { parentId: parentId === "none" ? null : parentId }),
  };
}

type ParsedListQuery = ReturnType<(typeof listQuery)["parse"]>;

const errorGroup = object("Runs of one workflow that failed or are paused because of errors that are alike.", {
  fingerprint: text("Identifies the errors; the list of runs takes it as a filter."),
  workflow: text("The name of the workflow."),
  status: oneOf("Whether the runs failed, or are paused.", ["failed", "paused"]),
  step: nullable(text("The step that threw.", { maxLength: 20_000 })),
  name: text("The class of the error in the latest run.", { maxLength: 20_000 }),
  message: nullable(text("The message of the error in the latest run.", { maxLength: 100_000 })),
  count: integer("How many runs there are.", 0),
  lastDayCount: integer("How many of them were created in the last 24 hours.", 0),
  firstRunAt: time("When the oldest of them was created."),
  lastRunAt: time("When the newest of them was created."),
  latestRunId: text("The latest of them."),
});

const minute = object("What happened within one minute.", {
  at: time("The beginning of the minute."),
  began: integer("Runs that a worker has begun.", 0),
  completed: integer("Runs that completed.", 0),
  failed: integer("Runs that failed.", 0),
  canceled: integer("Runs that were canceled.", 0),
  paused: integer("Runs that were paused.", 0),
});

const bucketNumbers = (what: string) => list(`${what} in each bucket, in order.`, integer("A number of runs.", 0));

const workflowFigures = object("What happened to the runs of one workflow.", {
  workflow: text("The name of the workflow."),
  began: integer("Runs that a worker has begun.", 0),
  completed: integer("Runs that completed.", 0),
  failed: integer("Runs that failed.", 0),
  canceled: integer("Runs that were canceled.", 0),
  paused: integer("Runs that were paused.", 0),
  beganByBucket: bucketNumbers("Runs that a worker has begun"),
  completedByBucket: bucketNumbers("Runs that completed"),
  failedByBucket: bucketNumbers("Runs that failed"),
});

export const listRoutes = [
  route(
    "GET",
    "/api/v1/runs",
    "listRuns",
    {
      summary: "List runs, newest first, a page at a time",
      requires: "read",
      hasPayloads: true,
      query: listQuery,
      answers: {
        200: object("", {
          runs: list("The runs. Payloads of more than 16 kB are left out, unless `maxPayload` allows more.", runSchema),
          next: nullable(text("The `cursor` of the next page; null: this is the last page.")),
          isCut: flag("The page ends early, because 10,000 runs were examined; `next` leads on."),
        }),
      },
    },
    async (call) => {
      const filter = filterOf(call);
      if (filter.error !== undefined && !call.writer.showsAll)
        throw new HttpError(
          403,
          "FORBIDDEN",
          "A search in errors would tell what they contain, which this access may not see.",
        );
      const page = await call.questions.ask(`runs ${JSON.stringify(filter)}`, () => call.pawl.runs(filter));
      const writer = call.writerFor(listedPayloadBytes);
      return { json: { ...page, runs: page.runs.map((run) => runView(run, writer)) } };
    },
  ),
  route(
    "GET",
    "/api/v1/counts",
    "countRuns",
    {
      summary: "Count runs by workflow and status, at most 10,000 of each",
      requires: "read",
      answers: {
        200: object("", {
          total: statusNumbers,
          workflows: record("The numbers of each workflow that has such runs.", statusNumbers),
          capped: list("The statuses of which there are more runs than were counted.", text("A status.")),
        }),
      },
    },
    async ({ pawl, questions }) => ({ json: await questions.ask("counts", () => pawl.counts()) }),
  ),
  route(
    "GET",
    "/api/v1/errors",
    "listErrors",
    {
      summary: "List the errors of failed and paused runs, by fingerprint",
      requires: "read",
      answers: {
        200: object("", {
          errors: list("The groups, those with the newest runs first.", errorGroup),
          capped: list("Of these, only the newest 10,000 runs were counted.", text("A status.")),
        }),
      },
    },
    async ({ pawl, questions, writer }) => {
      const { errors, capped } = await questions.ask("errors", () => pawl.errors());
      const groups = errors.map((group) => ({
        ...group,
        message: writer.text(group.message, { workflow: group.workflow, runId: group.latestRunId }),
        firstRunAt: group.firstRunAt.toISOString(),
        lastRunAt: group.lastRunAt.toISOString(),
      }));
      return { json: { errors: groups, capped } };
    },
  ),
  route(
    "GET",
    "/api/v1/figures",
    "getFigures",
    {
      summary: "Read how many runs began and ended per minute",
      requires: "read",
      query: object("", {
        from: optional(instant("The first minute. Default: an hour before the last.")),
        to: optional(instant("The last minute. Default: the present one.")),
        workflow: optional(text("Only runs of this workflow.")),
      }),
      answers: { 200: object("", { minutes: list("All minutes, in order.", minute) }) },
    },
    async ({ pawl, query, questions }) => {
      const minutes = await questions.ask(`figures ${JSON.stringify(query)}`, () => pawl.figures(query));
      return { json: { minutes: minutes.map((one) => ({ ...one, at: one.at.toISOString() })) } };
    },
  ),
  route(
    "GET",
    "/api/v1/figures/workflows",
    "getWorkflowFigures",
    {
      summary: "Read how many runs of each workflow began and ended, in buckets of five minutes",
      requires: "read",
      query: object("", {
        from: optional(instant("The first instant. Default: three hours before the last.")),
        to: optional(instant("The last instant, at most a day after the first. Default: the present.")),
      }),
      answers: {
        200: object("", {
          from: time("The beginning of the first bucket."),
          bucketMs: integer("How long a bucket is.", 1),
          workflows: list("The workflows that had runs, the busiest first; at most 500.", workflowFigures),
          isCut: flag("Whether more workflows had runs."),
        }),
      },
    },
    async ({ pawl, query, questions }) => {
      const { from, ...report } = await questions.ask(`workflow figures ${JSON.stringify(query)}`, () =>
        readWorkflowFigures(pawl.internals.store, query),
      );
      return { json: { from: from.toISOString(), ...report } };
    },
  ),
  route(
    "GET",
    "/api/v1/changes",
    "watchChanges",
    {
      summary: "Be told when something may have changed (server-sent events)",
      requires: "read",
      answers: { 200: null },
    },
    async ({ changes, slots, openStream }) => openStream(changes.subscribe(slots.take())),
  ),
];
