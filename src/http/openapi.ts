/** The OpenAPI 3.1 document, made from the route table. */
import { problemSchema } from "./problem.js";
import type { Route } from "./route.js";
import type { JsonSchema, Schema } from "./schema.js";

/** Problems that every route may answer with, besides its own. */
const commonProblems = [400, 401, 403, 405, 500, 503];
/** Problems of routes with a body. */
const bodyProblems = [408, 413, 415];

const problemTexts: Readonly<Record<number, string>> = {
  400: "The request is not valid.",
  401: "The request is not authorized.",
  403: "This access, host or origin does not allow it.",
  404: "It does not exist.",
  405: "The method is not allowed.",
  408: "The body did not arrive in time.",
  409: "The run or schedule is not in a state for this, or has changed meanwhile. `changes` has the last events of a run.",
  413: "The body or a value is too large.",
  415: "The body is not JSON.",
  422: "The idempotency key was used for another start.",
  500: "Something went wrong; the log of the server says what.",
  503: "The database cannot be reached, or too many streams are open.",
};

const apiVersion = "1.0.0";

/** @param basePath the path that the routes are below; "" if there is none */
export function openApiDocument(routes: readonly Route[], basePath: string): JsonSchema {
  const components: Record<string, JsonSchema> = { ...problemSchema.components };
  const toJson = (schema: Schema<unknown>): JsonSchema => {
    Object.assign(components, schema.components);
    return schema.json;
  };
  const paths: Record<string, Record<string, JsonSchema>> = {};
  for (const route of routes) {
    const path = (paths[route.path] ??= {});
    path[route.method.toLowerCase()] = operationOf(route, toJson);
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "Pawl",
      version: apiVersion,
      description:
        "Durable workflows. Values of users are tagged JSON as in the log of a run; `?plain=1` gives lossy plain JSON. Errors are problem details (RFC 9457).",
      license: { name: "MIT", identifier: "MIT" },
    },
    servers: [{ url: basePath === "" ? "/" : basePath }],
    paths,
    components: { schemas: Object.fromEntries(Object.entries(components).sort(([a], [b]) => (a < b ? -1 : 1))) },
  };
}

function operationOf(route: Route, toJson: (schema: Schema<unknown>) => JsonSchema): JsonSchema {
  const responses: Record<string, JsonSchema> = {};
  for (const [status, schema] of Object.entries(route.answers))
    responses[status] =
      schema === null
        ? {
            description: "A stream of server-sent events.",
            content: { "text/event-stream": { schema: { type: "string" } } },
          }
        : { description: descriptionOf(schema), content: { "application/json": { schema: toJson(schema) } } };
  for (const status of problemStatusesOf(route))
    responses[String(status)] = {
      description: problemTexts[status] as string,
      content: { "application/problem+json": { schema: problemSchema.json } },
    };
  return {
    operationId: route.operationId,
    summary: route.summary,
    description: accessText(route),
    parameters: parametersOf(route, toJson),
    ...(route.body === null
      ? {}
      : { requestBody: { required: true, content: { "application/json": { schema: toJson(route.body) } } } }),
    responses,
  };
}

/** The statuses of all problems that a route may answer with, in order. */
const problemStatusesOf = ({ problems, body, requires }: Route): readonly number[] =>
  [
    ...new Set([
      ...(requires === "nothing" ? [400, 403, 405, 500] : commonProblems),
      ...problems,
      ...(body === null ? [] : bodyProblems),
    ]),
  ].sort((a, b) => a - b);

const descriptionOf = ({ json }: Schema<unknown>): string =>
  typeof json.description === "string" && json.description !== "" ? json.description : "The answer.";

function accessText({ requires }: Route): string {
  if (requires === "nothing") return "Needs no access.";
  return requires === "read" ? "Needs any access." : `Needs the permission \`${requires}\`.`;
}

function parametersOf(route: Route, toJson: (schema: Schema<unknown>) => JsonSchema): JsonSchema[] {
  const inPath = [...route.path.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({
    ...{ name, in: "path", required: true },
    schema: { type: "string" },
    description: pathTexts[name as string] ?? "",
  }));
  const inQuery = Object.entries(route.query?.fields ?? {}).map(([name, field]) => {
    const { description, ...schema } = toJson(field);
    return { name, in: "query", required: !field.isOptional, description: description ?? "", schema };
  });
  const inHeader = Object.entries(route.headers).map(([name, description]) => ({
    ...{ name, in: "header", required: false, description },
    schema: { type: "string" },
  }));
  return [...inPath, ...inQuery, ...inHeader];
}

const pathTexts: Readonly<Record<string, string>> = {
  run: "The id of the run.",
  workflow: "The name of the workflow, percent-encoded.",
  queue: "The name of the queue, percent-encoded.",
  schedule: "The name of the schedule, percent-encoded.",
  limit: "The name of the limit, percent-encoded.",
};
