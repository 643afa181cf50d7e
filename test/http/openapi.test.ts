/** The OpenAPI document: valid, complete, and true of every answer of a real world. */
import { readFileSync, writeFileSync } from "node:fs";
import { Validator } from "@seriousme/openapi-schema-validator";
import { Ajv2020 } from "ajv/dist/2020.js";
import { describe, expect, test } from "vitest";
import { problemSchema } from "../../src/http/problem.js";
import type { Route } from "../../src/http/route.js";
import { allRoutes } from "../../src/http/routes.js";
import { type DocumentedRequest, documentedRequests } from "./documented-requests.js";
import { type EventfulWorld, eventfulWorld, localRequest } from "./eventful-world.js";
import { serve } from "./served-pawl.js";

const readDocument = async (): Promise<any> => (await (await serve()).get("/api/openapi.json")).json;

const operationsOf = (document: any) =>
  Object.entries<any>(document.paths).flatMap(([path, methods]) =>
    Object.entries<any>(methods).map(([method, operation]) => ({ path, method: method.toUpperCase(), operation })),
  );

describe("the document", () => {
  test("is valid OpenAPI 3.1", async () => {
    const document = await readDocument();
    const validator = new Validator();
    const { valid, errors } = await validator.validate(document);
    expect({ valid, errors, version: validator.version }).toEqual({ valid: true, errors: undefined, version: "3.1" });
  });

  test("refers only to what it has, and uses all that it has", async () => {
    const document = await readDocument();
    const references = [...JSON.stringify(document).matchAll(/"\$ref":"([^"]+)"/g)].map(([, target]) => target);
    const schemas = Object.keys(document.components.schemas).map((name) => `#/components/schemas/${name}`);
    expect([...new Set(references)].sort()).toEqual(schemas.sort());
  });

  test("describes every route of the table, under a name of its own, and nothing else", async () => {
    const operations = operationsOf(await readDocument());
    const described = operations.map(({ path, method, operation }) => `${operation.operationId}: ${method} ${path}`);
    const routes = allRoutes.map(({ operationId, method, path }) => `${operationId}: ${method} ${path}`);
    expect(described.sort()).toEqual(routes.sort());
    const names = operations.map(({ operation }) => operation.operationId);
    expect(new Set(names).size).toBe(names.length);
    for (const { operation } of operations) expect(operation.summary).toMatch(/^[A-Z(]/);
  });

  test("names the parameters of every path, query and header", async () => {
    for (const { path, operation } of operationsOf(await readDocument())) {
      const inPath = operation.parameters.filter((parameter: any) => parameter.in === "path");
      expect(inPath.map(({ name }: any) => `{${name}}`)).toEqual(path.match(/\{\w+\}/g) ?? []);
      for (const { description } of operation.parameters) expect(description).not.toBe("");
      const names = operation.parameters.map((parameter: any) => `${parameter.in} ${parameter.name}`);
      expect(new Set(names).size).toBe(names.length);
    }
    const headersOf = async (id: string) =>
      operationsOf(await readDocument())
        .find(({ operation }) => operation.operationId === id)
        ?.operation.parameters.flatMap((parameter: any) => (parameter.in === "header" ? [parameter.name] : []));
    expect(await headersOf("startRun")).toEqual(["Idempotency-Key"]);
    expect(await headersOf("buildGraph")).toEqual(["Idempotency-Key"]);
    expect(await headersOf("watchRun")).toEqual(["Last-Event-ID"]);
  });

  test("says where the API is, also below a path", async () => {
    const { pawl, get } = await serve({ basePath: "/ops/pawl" });
    const [server] = (await get("/ops/pawl/api/openapi.json")).json.servers;
    expect(server.url).toBe("/ops/pawl");
    expect((await get(`${server.url}/api/v1/runs`)).status).toBe(200);
    expect((await readDocument()).servers).toEqual([{ url: "/" }]);
    expect(pawl.description).not.toBe("");
  });

  test("is the one that was reviewed: with PAWL_UPDATE_OPENAPI=1 and `npm run format` it is written anew", async () => {
    const snapshot = new URL("./openapi.json", import.meta.url);
    const document = await readDocument();
    if (process.env.PAWL_UPDATE_OPENAPI === "1") writeFileSync(snapshot, `${JSON.stringify(document, null, 2)}\n`);
    // As text, because the order of fields is part of what people read.
    expect(JSON.stringify(document, null, 1)).toBe(JSON.stringify(JSON.parse(readFileSync(snapshot, "utf8")), null, 1));
  });
});

/** An answer and the route that gave it. */
interface Observed {
  readonly route: Route;
  readonly request: string;
  readonly status: number;
  readonly type: string;
  readonly json: unknown;
}

/** Each route whose requests change something, or close the world, has a world of its own. */
async function observeAll(): Promise<Observed[]> {
  const seen: Observed[] = [];
  const shared = await eventfulWorld();
  for (const route of allRoutes) {
    const isReadOnly = route.method === "GET" && route.operationId !== "ready";
    const world = isReadOnly ? shared : await eventfulWorld();
    for (const request of await documentedRequests(route, world)) seen.push(await observe(world, request));
    if (route.operationId !== "ready") continue;
    await world.pawl.close();
    seen.push(await observe(world, { route, method: "GET", path: "/ready" }));
  }
  return seen;
}

async function observe(world: EventfulWorld, asked: DocumentedRequest): Promise<Observed> {
  const { route, method, path, body, headers = {}, options } = asked;
  const handle = world.handler({ maxBodyBytes: 1_500_000, ...options });
  const response = await handle(localRequest(method, path, { body, headers }));
  const type = response.headers.get("content-type") ?? "";
  const isStream = type.startsWith("text/event-stream");
  const json = isStream ? await response.body?.cancel() : JSON.parse(await response.text());
  const request = `${method} ${path} ${JSON.stringify(body)?.slice(0, 100)}`;
  return { route, request, status: response.status, type, json };
}

let observed: Promise<Observed[]> | undefined;
const allAnswers = () => (observed ??= observeAll());

describe("every answer of a world with runs in all states", () => {
  test("has a status and a type that the document describes, and a body that both schemas accept", async () => {
    const document = await readDocument();
    const ajv = new Ajv2020({ strict: false, validateFormats: false });
    ajv.addSchema({ $id: "api", components: document.components });
    const isValid = (schema: object, value: unknown) => {
      const local = JSON.parse(JSON.stringify(schema).replaceAll('"#/components', '"api#/components'));
      return ajv.validate(local, value) ? null : ajv.errorsText();
    };
    for (const { route, request, status, type, json } of await allAnswers()) {
      const described = document.paths[route.path][route.method.toLowerCase()].responses[status];
      expect([request, status, described === undefined]).toEqual([request, status, false]);
      const [[describedType, { schema }]] = Object.entries<any>(described.content) as [[string, any]];
      expect([request, type.split(";")[0]]).toEqual([request, describedType]);
      if (describedType === "text/event-stream") continue;
      expect([request, isValid(schema, json)]).toEqual([request, null]);
      const strict = status < 400 ? route.answers[status] : problemSchema;
      expect(() => strict?.parse(json, `The answer to ${request}`)).not.toThrow();
    }
  });

  test("together they have every status that a route describes as its own", async () => {
    const seen = new Set((await allAnswers()).map(({ route, status }) => `${route.operationId} ${status}`));
    const own = allRoutes.flatMap(({ operationId, answers, problems, body }) =>
      [...Object.keys(answers), ...problems, 400, 405, ...(body === null ? [] : [413, 415])].map(
        (status) => `${operationId} ${status}`,
      ),
    );
    expect(own.filter((one) => !seen.has(one))).toEqual([]);
  });
});

test("the Location of a new run leads to it", async () => {
  const world = await eventfulWorld();
  const handle = world.handler({ basePath: "/pawl" });
  const starts = {
    "workflows/order/runs": { input: 1 },
    graphs: { name: "g", nodes: [{ name: "a", job: "ImportRow" }] },
  };
  for (const [path, body] of Object.entries(starts)) {
    const request = localRequest("POST", `/pawl/api/v1/${path}`, { body });
    const response = await handle(request);
    const { id } = (await response.json()) as { id: string };
    const { pathname } = new URL(response.headers.get("location") as string, request.url);
    expect(await (await handle(localRequest("GET", pathname))).json()).toMatchObject({ id });
  }
});
