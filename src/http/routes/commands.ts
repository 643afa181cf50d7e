/** Routes that command runs. Each answers when the command is durable: applied, or in the inbox of the run. */
import type { FindBy, ResumeOptions } from "../../index.js";
import type { Permission } from "../access.js";
import { HttpError } from "../problem.js";
import { type Call, type Route, route } from "../route.js";
import { flag, list, object, optional, payload, record, type Schema, text } from "../schema.js";
import { heroSchema } from "../views/run-view.js";
import {
  auditFields,
  auditOf,
  commandFields,
  commandOptionsOf,
  jsonText,
  readValue,
  runOf,
  valueField,
} from "./common.js";

const acceptedSchema = object("The command is durable.", { accepted: flag("Always true.") });
const accepted = { json: { accepted: true } };
const stepField = text("The name of the step.", { maxLength: 200 });

type CommandBody = { readonly by?: string; readonly reason?: string; readonly ifLastEvent?: number };

/** A command to one run, at `/api/v1/runs/{run}/` and its name. */
function command<Body extends Schema<any>>(
  name: string,
  operationId: string,
  requires: Permission,
  summary: string,
  body: Body,
  execute: (call: Call<unknown, CommandBody>) => Promise<void>,
): Route {
  return route(
    "POST",
    `/api/v1/runs/{run}/${name}`,
    operationId,
    { summary, requires, body, answers: { 200: acceptedSchema }, problems: [404, 409] },
    async (call) => {
      await execute(call as Call<unknown, CommandBody>);
      return accepted;
    },
  );
}

const signalFields = {
  name: text("The name of the signal.", { maxLength: 200 }),
  payload: optional(valueField("The payload.")),
  key: optional(text("A signal with the same key is delivered to the run once.", { maxLength: 200 })),
  ...auditFields,
};

type SignalBody = { readonly name: string; readonly payload?: unknown; readonly key?: string };

const signalArgs = (call: Call<unknown, SignalBody & CommandBody>) => {
  const { payload: value, key } = call.body;
  return [
    value === undefined ? undefined : readValue(value),
    { ...(key === undefined ? {} : { key }), ...auditOf(call) },
  ] as const;
};

export const commandRoutes: readonly Route[] = [
  command("signals", "signalRun", "signal", "Send a signal", object("", signalFields), async (call) => {
    const { name } = call.body as SignalBody & CommandBody;
    await runOf(call).signal(name, ...signalArgs(call as Call<unknown, SignalBody & CommandBody>));
  }),
  route(
    "POST",
    "/api/v1/signals",
    "signalFoundRun",
    {
      summary: "Send a signal to the run with an idempotency key, or of a hero",
      requires: "signal",
      body: object("", {
        workflow: text("The name of the workflow.", { maxLength: 200 }),
        idempotencyKey: optional(text("The idempotency key of the run.")),
        hero: optional(heroSchema),
        ...signalFields,
      }),
      answers: { 200: acceptedSchema },
      problems: [404, 409],
    },
    async (call) => {
      const { workflow, idempotencyKey, hero, name } = call.body;
      if ((idempotencyKey === undefined) === (hero === undefined))
        throw new HttpError(400, "BAD_REQUEST", "Give either idempotencyKey or hero.");
      const by = (hero === undefined ? { idempotencyKey } : { hero }) as FindBy;
      await call.pawl.signal(workflow, by, name, ...signalArgs(call as Call<unknown, SignalBody & CommandBody>));
      return accepted;
    },
  ),
  command("pause", "pauseRun", "pause", "Pause a run", object("", commandFields), (call) => {
    const { reason, ...options } = commandOptionsOf(call);
    return runOf(call).pause(reason, options);
  }),
  command(
    "resume",
    "resumeRun",
    "resume",
    "Resume a paused run",
    object("", {
      output: optional(valueField("The result of the step that the run is paused at; it then counts as completed.")),
      accept: optional(list("Names of calls that only the code or only the log contains.", stepField, 1_000)),
      renamed: optional(record("The name of a call in the log, and its name in the code now.", stepField)),
      ...commandFields,
    }),
    (call) => {
      const { output, accept, renamed } = call.body as Pick<ResumeOptions, "output" | "accept" | "renamed">;
      return runOf(call).resume({
        ...("output" in call.body ? { output: readValue(output) } : {}),
        ...(accept === undefined ? {} : { accept }),
        ...(renamed === undefined ? {} : { renamed }),
        ...commandOptionsOf(call),
      });
    },
  ),
  command(
    "resume-at",
    "resumeRunAt",
    "resume",
    "Resume a paused run of a class at a step",
    object("", { step: stepField, ...commandFields }),
    (call) => runOf(call).resumeAt((call.body as { step: string }).step, commandOptionsOf(call)),
  ),
  command(
    "cancel",
    "cancelRun",
    "cancel",
    "Cancel a run and its children",
    object("", {
      force: optional(flag("Ends the run at once and without compensation.")),
      ...commandFields,
    }),
    (call) => {
      const { reason, ...options } = commandOptionsOf(call);
      const { force } = call.body as { force?: boolean };
      return runOf(call).cancel(reason, { ...options, ...(force === true ? { force } : {}) });
    },
  ),
  command("skip", "skipStep", "skip", "Skip the step that a run is stuck at", object("", commandFields), (call) =>
    runOf(call).skip(commandOptionsOf(call)),
  ),
  command(
    "reattempt",
    "reattemptNode",
    "retry",
    "Try a node again that has not completed",
    object("", { node: text("The name or id of the node.", { maxLength: 200 }), ...commandFields }),
    (call) => runOf(call).reattempt((call.body as { node: string }).node, commandOptionsOf(call)),
  ),
  command(
    "start",
    "startBuiltRun",
    "start",
    "Start a run that was built without starting it",
    object("", commandFields),
    (call) => runOf(call).start(commandOptionsOf(call)),
  ),
  command(
    "graph",
    "importGraph",
    "resume",
    "Replace the graph of a paused run",
    object("", { graph: payload("The graph, as `GET …/graph` returned it in `dag`, edited."), ...commandFields }),
    (call) => runOf(call).importDag(jsonText((call.body as { graph?: unknown }).graph), commandOptionsOf(call)),
  ),
  route(
    "POST",
    "/api/v1/runs/{run}/retry",
    "retryRun",
    {
      summary: "Retry a failed run: a new, linked run continues from the failed step",
      requires: "retry",
      body: object("", auditFields),
      answers: {
        200: object("", {
          id: text("The id of the new run."),
          created: flag("False if the run had been retried already; its open retry is returned then."),
        }),
      },
      problems: [404, 409],
    },
    async (call) => {
      const retry = await runOf(call).retry(auditOf(call));
      return { json: { id: retry.id, created: retry.created === true } };
    },
  ),
];
