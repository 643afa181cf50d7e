/** Routes: what a request is matched with, checked by, described by and answered with. */
import type { Pawl } from "../index.js";
import type { Access, Requirement } from "./access.js";
import type { PayloadWriter } from "./payload-writer.js";
import { HttpError } from "./problem.js";
import type { ObjectSchema, Parsed, Schema } from "./schema.js";
import type { SharedQuestions } from "./shared-questions.js";
import type { ChangeFeed } from "./streams/change-feed.js";
import type { EventSource } from "./streams/event-stream.js";
import type { RunFeeds } from "./streams/run-feed.js";
import type { StreamSlots } from "./streams/stream-slots.js";

/** What the routes of one handler share. */
export interface HandlerParts {
  readonly pawl: Pawl;
  readonly questions: SharedQuestions;
  readonly changes: ChangeFeed;
  readonly runFeeds: RunFeeds;
  readonly slots: StreamSlots;
  /** The path that the handler is mounted at, such as "/pawl"; "" if it is at the root. */
  readonly basePath: string;
  /** Definitions whose schemas check the inputs of starts in this process. */
  readonly findDefinition: (workflow: string) => unknown;
}

/** One request, checked. */
export interface Call<Query = unknown, Body = unknown> extends HandlerParts {
  /** The variable parts of the path, such as `run`. */
  readonly params: Readonly<Record<string, string>>;
  readonly query: Query;
  readonly body: Body;
  readonly headers: Headers;
  /** Fires when the client has gone. */
  readonly signal: AbortSignal;
  readonly access: Access;
  readonly user: string | undefined;
  /** Writes payloads as this request may see and wants them. */
  readonly writer: PayloadWriter;
  /** A writer that leaves out payloads whose JSON is longer, unless the request says how long they may be. */
  writerFor(defaultMaxBytes: number): PayloadWriter;
  /** Answers with a stream of server-sent events, which ends when the client goes or the server stops. */
  openStream(source: EventSource): Answer;
}

/** What a route answers with. */
export type Answer =
  | { readonly status?: number; readonly json: unknown; readonly headers?: Readonly<Record<string, string>> }
  | { readonly stream: ReadableStream<Uint8Array> };

export type Method = "GET" | "POST" | "PUT" | "DELETE";

/** A route as the table has it, whatever its types. */
export interface Route {
  readonly method: Method;
  /** The path, with variable parts in braces: `/api/v1/runs/{run}`. */
  readonly path: string;
  readonly operationId: string;
  readonly summary: string;
  readonly requires: Requirement;
  readonly query: ObjectSchema<Readonly<Record<string, Schema<unknown>>>> | null;
  readonly body: Schema<unknown> | null;
  /** What the headers mean that it reads, by their names. */
  readonly headers: Readonly<Record<string, string>>;
  /** The schemas of the answers, by status; null: a stream of server-sent events. */
  readonly answers: Readonly<Record<number, Schema<unknown> | null>>;
  /** The statuses of the problems that it answers with, besides those of all routes. */
  readonly problems: readonly number[];
  /** Whether the route returns payloads, so that it takes `plain` and `maxPayload`. */
  readonly hasPayloads: boolean;
  answer(call: Call): Promise<Answer>;
}

type NoQuery = ObjectSchema<Record<never, never>>;

interface RouteSpec<Query, Body> {
  readonly summary: string;
  readonly requires: Requirement;
  readonly query?: Query;
  readonly body?: Body;
  readonly headers?: Readonly<Record<string, string>>;
  readonly answers: Readonly<Record<number, Schema<unknown> | null>>;
  readonly problems?: readonly number[];
  readonly hasPayloads?: boolean;
}

type AnyQuery = ObjectSchema<Readonly<Record<string, Schema<any>>>>;

/** Makes a route; the compiler knows the types of its query and body from their schemas. */
export function route<Query extends AnyQuery = NoQuery, Body extends Schema<any> = Schema<undefined>>(
  method: Method,
  path: string,
  operationId: string,
  spec: RouteSpec<Query, Body>,
  answer: (call: Call<Parsed<Query>, Parsed<Body>>) => Promise<Answer>,
): Route {
  return {
    ...{ method, path, operationId },
    summary: spec.summary,
    requires: spec.requires,
    query: spec.query ?? null,
    body: spec.body ?? null,
    headers: spec.headers ?? {},
    answers: spec.answers,
    problems: spec.problems ?? [],
    hasPayloads: spec.hasPayloads ?? false,
    answer: answer as Route["answer"],
  };
}

export interface MatchedRoute {
  readonly route: Route;
  readonly params: Readonly<Record<string, string>>;
}

/** Finds routes by path, segment by segment. */
export class RouteTable {
  readonly routes: readonly Route[];
  readonly #patterns: readonly { readonly segments: readonly string[]; readonly route: Route }[];

  constructor(routes: readonly Route[]) {
    this.routes = routes;
    this.#patterns = routes.map((route) => ({ segments: segmentsOf(route.path), route }));
  }

  /** @throws HttpError 404 if no route has the path, 405 if none has it with this method */
  match(method: string, path: string): MatchedRoute {
    const segments = segmentsOf(path);
    const matches = this.#patterns.flatMap(({ segments: pattern, route }) => {
      const params = paramsOf(pattern, segments);
      return params === null ? [] : [{ route, params }];
    });
    if (matches.length === 0)
      throw new HttpError(404, "NOT_FOUND", "There is nothing at this path; /api/openapi.json lists all paths.");
    const match = matches.find(({ route }) => route.method === (method === "HEAD" ? "GET" : method));
    if (match !== undefined) return { ...match, params: decodeParams(match.params) };
    const methods = matches.flatMap(({ route }) => (route.method === "GET" ? ["GET", "HEAD"] : [route.method]));
    const allowed = [...new Set(methods)].join(", ");
    throw new HttpError(405, "METHOD_NOT_ALLOWED", `Only ${allowed} can be used at this path.`, { Allow: allowed });
  }
}

const segmentsOf = (path: string): readonly string[] => path.split("/").slice(1);

function paramsOf(pattern: readonly string[], segments: readonly string[]): Record<string, string> | null {
  if (pattern.length !== segments.length) return null;
  const params: Record<string, string> = {};
  for (const [index, part] of pattern.entries()) {
    const segment = segments[index] as string;
    if (part.startsWith("{")) {
      if (segment === "") return null;
      params[part.slice(1, -1)] = segment;
    } else if (part !== segment) return null;
  }
  return params;
}

function decodeParams(params: Readonly<Record<string, string>>): Record<string, string> {
  const decoded = Object.entries(params).map(([name, value]) => [name, decodePart(value)] as const);
  // No database can look for it.
  if (decoded.some(([, value]) => value.includes("\0")))
    throw new HttpError(400, "BAD_REQUEST", "The path contains the character NUL.");
  return Object.fromEntries(decoded);
}

function decodePart(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    throw new HttpError(
      400,
      "BAD_REQUEST",
      "The path is not valid: a percent sign must be followed by two hexadecimal digits, which are UTF-8.",
    );
  }
}
