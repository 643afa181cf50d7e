/** Values of users: no answer shows them to a request that may not see payloads, and none shows what `redact` replaces. */
import type { Access, HttpHandler, HttpOptions } from "pawl/http";
import { describe, expect, test } from "vitest";
import { permissions } from "../../src/http/access.js";
import { rawSql } from "../support/raw-sql.js";
import { readEvents, type ServerEvent } from "./event-reader.js";
import { type EventfulWorld, eventfulWorld, localRequest, secret, secretPattern } from "./eventful-world.js";
import { routeCases } from "./route-cases.js";

/** A world that also has rows which cannot be read, and whose text is secret. */
async function damagedWorld(): Promise<EventfulWorld> {
  const world = await eventfulWorld({ kind: "sqlite" });
  const sql = await rawSql(world.databaseUrl);
  const { canceled, failedGraph } = world.runs;
  await sql.query(`UPDATE pawl_runs SET input = '{"a":${secret("damaged-input")}' WHERE id = '${canceled}'`);
  await sql.query(
    `UPDATE pawl_events SET data = '{${secret("damaged-event")}' WHERE run_id = '${failedGraph}' AND seq = 2`,
  );
  await sql.close();
  return world;
}

/** Every GET request for every run, with the parameters that change what is shown. */
function getPaths({ runs }: EventfulWorld): string[] {
  const ids = Object.values(runs);
  return routeCases(runs).flatMap(({ route, path }) => {
    if (route.method !== "GET") return [];
    const paths = route.path.includes("{run}") ? ids.map((id) => path.replace(runs.paused, id)) : [path];
    if (!route.hasPayloads) return paths;
    const options = ["plain=1", "maxPayload=0", "maxPayload=300", "plain=1&maxPayload=1000000"];
    return paths.flatMap((one) => {
      const [bare, query] = one.split("?");
      const own = (query ?? "").split("&").filter((part) => part !== "" && !part.startsWith("maxPayload"));
      return [one, ...options.map((option) => `${bare}?${[...own, option].join("&")}`)];
    });
  });
}

/** Each command to each run, most of which are refused, with a reason that names what the run is like. */
function commands({ runs }: EventfulWorld) {
  const cases = routeCases(runs).filter(({ route }) => route.method !== "GET");
  return cases.flatMap(({ route, path, body }) => {
    const own = Object.values(runs).find((id) => path.includes(id));
    const paths = own === undefined ? [path] : Object.values(runs).map((id) => path.replace(own, id));
    return paths.map((one) => ({ route, path: one, body }));
  });
}

/** Everything that a response tells: status, headers, and the body, of a stream as far as the run has come. */
async function everythingIn(response: Response, lastEvent: number): Promise<string> {
  const headers = JSON.stringify([response.status, ...response.headers]);
  if (response.headers.get("content-type")?.startsWith("text/event-stream") !== true)
    return headers + (await response.text());
  const isEnough = (seen: readonly ServerEvent[]) =>
    lastEvent === 0 || seen.some(({ event, id }) => event !== "message" || (id ?? 0) >= lastEvent);
  const events = await readEvents(response.body, isEnough);
  return headers + JSON.stringify(events);
}

async function lastEventOf({ pawl, runs }: EventfulWorld, path: string): Promise<number> {
  const id = Object.values(runs).find((one) => path.includes(one));
  return id === undefined ? 1 : pawl.internals.store.maintenance.questions.lastEventSeq(id);
}

async function walk(world: EventfulWorld, handle: HttpHandler): Promise<Map<string, string>> {
  const answers = new Map<string, string>();
  const ask = async (method: string, path: string, body?: unknown) => {
    const response = await handle(localRequest(method, path, { body }));
    const key = `${answers.size} ${method} ${path}`;
    answers.set(key, await everythingIn(response, await lastEventOf(world, path)));
  };
  for (const path of getPaths(world)) await ask("GET", path);
  for (const { route, path, body } of commands(world)) await ask(route.method, path, body);
  for (const path of getPaths(world)) await ask("GET", path);
  return answers;
}

const showingSecrets = (answers: ReadonlyMap<string, string>) =>
  [...answers].flatMap(([request, text]) => {
    const found = text.match(/S3CR3T[\w-]*/gi);
    return found === null ? [] : [`${request}: ${[...new Set(found)].join(", ")}`];
  });

const handlerFor = (world: EventfulWorld, access: Access, options: HttpOptions = {}) =>
  world.handler({ ...options, authorize: () => ({ user: "ada", access }) });

const withoutPayloads = permissions.filter((permission) => permission !== "payloads");

test("the walk finds the secrets of every kind for those who may see them", async () => {
  const world = await damagedWorld();
  const text = [...(await walk(world, handlerFor(world, "all"))).values()].join("\n");
  expect(text).toContain('"damaged":["input"]');
  const found = new Set(text.match(/S3CR3T-[a-z-]*[a-z]/g));
  const kinds = ["input", "output", "error", "cause", "signal", "unread-signal", "signal-reason"];
  const more = ["pause-reason", "queue-reason", "pause-error", "progress", "step-output", "cancel-reason"];
  const rest = [
    "start-reason",
    "job-args",
    "child-input",
    "schedule-input",
    "schedule-pause",
    "trigger-reason",
    "override-reason",
  ];
  expect([...found]).toEqual(expect.arrayContaining([...kinds, ...more, ...rest].map(secret)));
});

describe("without the permission to see payloads, no answer shows one", () => {
  test.each([
    ["to a request that may do all else", withoutPayloads],
    ["to a request that may only read", []],
    ["to a request with { payloads: false }", { payloads: false }],
  ] as [string, Access][])("%s", async (_, access) => {
    const world = await damagedWorld();
    const answers = await walk(world, handlerFor(world, access));
    expect(showingSecrets(answers)).toEqual([]);
  });
});

/** Replaces secrets wherever they are in a value. */
function redact(value: unknown): unknown {
  if (typeof value === "string") return value.replace(/S3CR3T[\w-]*/gi, "***");
  if (Array.isArray(value)) return value.map(redact);
  if (typeof value !== "object" || value === null || value instanceof Date) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, redact(item)]));
}

describe("what redact replaces leaves the server in no answer", () => {
  test.each([
    ["all", "all"],
    ["read", "read"],
    ["payloads and commands", permissions],
    ["no payloads", withoutPayloads],
  ] as [string, Access][])("to a request with the access: %s", async (_, access) => {
    const world = await damagedWorld();
    const answers = await walk(world, handlerFor(world, access, { redact }));
    expect(showingSecrets(answers)).toEqual([]);
    expect(secretPattern.test([...answers.values()].join())).toBe(false);
  });

  test("also without authorize", async () => {
    const world = await damagedWorld();
    expect(showingSecrets(await walk(world, world.handler({ redact })))).toEqual([]);
  });
});

test("redact is told what a value is, and to whom it is shown", async () => {
  const world = await eventfulWorld();
  const told = new Set<string>();
  const handle = handlerFor(world, "all", {
    redact: (value, { kind, workflow, runId, user }) => {
      expect(user).toBe("ada");
      told.add(`${kind} ${workflow ?? "–"} ${runId === undefined ? "–" : "run"}`);
      return value;
    },
  });
  await walk(world, handle);
  const kinds = new Set([...told].map((line) => line.split(" ", 1)[0]));
  expect([...kinds].sort()).toEqual(["error", "event", "graph", "input", "output", "signal", "tags", "text"]);
  expect(told).toContain("input order run");
  expect(told).toContain("error failing run");
});

test("tags and heroes are shown to all who may read, after redaction", async () => {
  const world = await eventfulWorld();
  const { pawl, runs } = world;
  const hero = { type: "User", id: secret("hero") };
  const run = await pawl.workflow("order").trigger(1, { hero, tags: [secret("tag")] });
  const views = async (options: HttpOptions) => {
    const response = await handlerFor(world, [], options)(localRequest("GET", `/api/v1/runs/${run.id}`));
    const { tags, hero: shown } = (await response.json()) as { tags: unknown; hero: unknown };
    return { tags, hero: shown };
  };
  expect(await views({})).toEqual({ tags: [secret("tag")], hero });
  expect(await views({ redact })).toEqual({ tags: ["***"], hero: { type: "User", id: "***" } });
  expect(await views({ redact: () => null })).toEqual({ tags: [], hero: null });
  expect(runs.waiting).not.toBe(run.id);
});
