/** Routes about limits. */
import { parseInstant } from "../../core/schedule/parse-instant.js";
import type { LimitDetails, OverrideOptions } from "../../index.js";
import { HttpError } from "../problem.js";
import type { Call, Route } from "../route.js";
import { route } from "../route.js";
import { duration, integer, list, nullable, object, optional, text } from "../schema.js";
import { limitDetailsSchema, limitDetailsView, limitSchema, limitView } from "../views/limit-view.js";
import { auditFields, auditOf, operatorOf } from "./common.js";

const nameOf = ({ params }: Pick<Call, "params">) => params.limit as string;

const rateField = object("How many runs, or units of steps, may begin in a time.", {
  limit: integer("How many may begin in the time.", 1, 1_000_000_000),
  per: duration("The time."),
  burst: optional(integer("How many may begin at once, in addition to the first. Default: 0.", 0, 1_000_000_000)),
});

const overridePath = "/api/v1/limits/{limit}/override";

const notFound = (name: string) =>
  new HttpError(404, "LIMIT_NOT_FOUND", `There is no limit "${name}": no worker has registered it.`);

const readUntil = (until: string | number): Date | number | string =>
  typeof until === "string" && /^\d{4}-/.test(until) ? new Date(parseInstant("The override", "until", until)) : until;

/** What the row of the limit does not record is in the log of the process. */
const logCommand = (call: Parameters<typeof operatorOf>[0] & Pick<Call, "pawl" | "params">, done: string) =>
  call.pawl.internals.log.info(`The override of limit "${nameOf(call)}" was ${done} by ${operatorOf(call)}.`);

export const limitRoutes: readonly Route[] = [
  route(
    "GET",
    "/api/v1/limits",
    "listLimits",
    {
      summary: "List the limits that workers have registered, with what is in use and what waits",
      requires: "read",
      answers: { 200: object("", { limits: list("The limits, by name.", limitSchema) }) },
    },
    async ({ pawl, questions, writer }) => {
      const limits = await questions.ask("limits", () => pawl.limits.list());
      return { json: { limits: limits.map((limit) => limitView(limit, writer)) } };
    },
  ),
  route(
    "GET",
    "/api/v1/limits/{limit}",
    "getLimit",
    {
      summary: "Read a limit and a page of its keys: which runs hold slots, and how many wait",
      requires: "read",
      query: object("", {
        key: optional(text("Only this key.", { maxLength: 10_000 })),
        limit: optional(integer("How many keys. Default 100.", 1, 1_000)),
        cursor: optional(text("The `next` of the previous page.")),
      }),
      answers: { 200: limitDetailsSchema },
      problems: [404],
    },
    async (call) => ({ json: limitDetailsView(await readLimit(call, call.query), call.writer) }),
  ),
  route(
    "PUT",
    overridePath,
    "overrideLimit",
    {
      summary: "Put other values in force in place of those of the code, at once and for all workers",
      requires: "limits",
      body: object("", {
        concurrency: optional(nullable(integer("The slots of each key; null: any number. Absent: as in the code.", 1))),
        rate: optional(nullable(rateField)),
        until: optional(
          duration("When it ends: a date with its zone, or how long from now. Absent: when it is cleared."),
        ),
        ...auditFields,
      }),
      answers: { 200: limitSchema },
      problems: [404],
    },
    async (call) => {
      const { concurrency, rate, until } = call.body;
      const options = {
        ...(concurrency === undefined ? {} : { concurrency }),
        ...(rate === undefined ? {} : { rate: rate === null ? null : withoutAbsent(rate) }),
        ...(until === undefined ? {} : { until: readUntil(until) }),
        ...auditOf(call),
      } as OverrideOptions;
      await readLimit(call, { limit: 1 });
      const limit = await call.pawl.limits.override(nameOf(call), options);
      logCommand(call, "set");
      return { json: limitView(limit, call.writer) };
    },
  ),
  route(
    "DELETE",
    overridePath,
    "clearLimitOverride",
    {
      summary: "End an override: the values of the code are in force again",
      requires: "limits",
      query: object("", auditFields),
      answers: { 200: limitSchema },
      problems: [404],
    },
    async (call) => {
      await readLimit(call, { limit: 1 });
      const limit = await call.pawl.limits.clearOverride(nameOf(call));
      logCommand({ ...call, body: call.query }, "cleared");
      return { json: limitView(limit, call.writer) };
    },
  ),
];

const withoutAbsent = ({ burst, ...rate }: { readonly burst?: number | undefined }) => ({
  ...rate,
  ...(burst === undefined ? {} : { burst }),
});

interface LaneQuery {
  readonly key?: string | undefined;
  readonly limit?: number | undefined;
  readonly cursor?: string | undefined;
}

async function readLimit(
  call: Pick<Call, "pawl" | "params" | "questions">,
  { key, limit, cursor }: LaneQuery,
): Promise<LimitDetails> {
  const name = nameOf(call);
  const page = {
    ...(key === undefined ? {} : { key }),
    ...(limit === undefined ? {} : { limit }),
    ...(cursor === undefined ? {} : { cursor }),
  };
  const question = `limit ${JSON.stringify([name, page])}`;
  const details = await call.questions.ask(question, () => call.pawl.limits.get(name, page));
  if (details === null) throw notFound(name);
  return details;
}
