/**
 * The HTTP API as a function from a request to a response. Every request passes `#answer`, in this order: host, origin,
 * authorization, route, permission, query, body. Whatever is not allowed on the way is refused.
 */

import { InvalidInputError } from "../core/errors/errors.js";
import { checkOptions, checkWholeNumber } from "../core/naming/check-options.js";
import { nameOf } from "../define/resolve.js";
import type { AnyWorkflow, Pawl } from "../index.js";
import { randomHex } from "../runtime/random-hex.js";
import { type Authorization, isAllowed } from "./access.js";
import { withChanges } from "./conflict.js";
import { Dashboard, type DashboardOptions } from "./dashboard/dashboard.js";
import {
  checkHost,
  checkOrigin,
  corsHeaders,
  isNavigation,
  type OriginRules,
  originRules,
  preflightHeaders,
} from "./origin-check.js";
import { PayloadWriter, type Redact } from "./payload-writer.js";
import { HttpError, type Problem, problemJson, problemOf, retrySoon } from "./problem.js";
import { remoteAddressOf } from "./remote-address.js";
import { readJsonBody } from "./request-body.js";
import { type Answer, type Call, type HandlerParts, type MatchedRoute, type Route, RouteTable } from "./route.js";
import { allRoutes } from "./routes.js";
import { SchemaError } from "./schema.js";
import { SharedQuestions } from "./shared-questions.js";
import { ChangeFeed } from "./streams/change-feed.js";
import { type EventSource, eventStream } from "./streams/event-stream.js";
import { RunFeeds } from "./streams/run-feed.js";
import { Shutdown } from "./streams/shutdown.js";
import { StreamSlots } from "./streams/stream-slots.js";

/** Options of `httpHandler`. */
export interface HttpOptions {
  /**
   * The path that the handler is mounted at, such as "/pawl". Requests are accepted with and without it, because some
   * frameworks and proxies strip it.
   */
  readonly basePath?: string;
  /**
   * Decides who is let in: it returns the user and the access, null to refuse (401), or a response of its own, such as a
   * redirect to a login. Without it, only clients on this machine are let in, with access to everything.
   */
  readonly authorize?: (
    request: Request,
  ) => Authorization | Response | null | undefined | Promise<Authorization | Response | null | undefined>;
  /** Replaces a value of a user before it leaves the server. */
  readonly redact?: Redact;
  /** Workflows whose input schemas check the inputs of starts here. Other inputs are checked by the worker. */
  readonly workflows?: readonly AnyWorkflow[];
  /** The hosts that are served, such as "ops.example.com". Default: all, if there is an `authorize`. */
  readonly hosts?: readonly string[];
  /** Origins of other web pages that may use the API, such as "https://ops.example.com". Default: none. */
  readonly origins?: readonly string[];
  /** The largest body of a request in bytes. Default 2 MiB. */
  readonly maxBodyBytes?: number;
  /** How many streams and long polls may be open at a time. Default 1,000. */
  readonly maxStreams?: number;
  /** Serves the dashboard at the base path, to whom `authorize` lets in. Default false. */
  readonly dashboard?: boolean | DashboardOptions;
}

const httpOptions = new Set<string>([
  "basePath",
  "authorize",
  "redact",
  "workflows",
  "hosts",
  "origins",
  "maxBodyBytes",
  "maxStreams",
  "dashboard",
] satisfies (keyof HttpOptions)[]);

/** Answers requests of the HTTP API. */
export type HttpHandler = (request: Request) => Promise<Response>;

/**
 * Makes the HTTP API of a Pawl, as a function from a request to a response. It never throws.
 *
 * @example
 * ```ts
 * import { createServer } from "node:http";
 *
 * const handle = httpHandler(pawl, {
 *   basePath: "/pawl",
 *   authorize: (request) => (isFromOurNetwork(request) ? { user: "ada", access: "all" } : null),
 * });
 * createServer(nodeListener(handle)).listen(3000);
 * ```
 */
export function httpHandler(pawl: Pawl, options: HttpOptions = {}): HttpHandler {
  const handler = new Handler(pawl, options);
  return (request) => handler.handle(request);
}

const securityHeaders = {
  "Cache-Control": "no-store",
  "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
  "X-Content-Type-Options": "nosniff",
  "Referrer-Policy": "no-referrer",
  "Cross-Origin-Resource-Policy": "same-origin",
};

/** HTTP asks for this header. Pawl does not know how the program identifies its users; this scheme opens no dialog in browsers. */
const unauthorizedHeaders = { "WWW-Authenticate": "Bearer" };

const bodyTimeoutMs = 30_000;
const longestPath = 4_096;

class Handler {
  readonly #parts: HandlerParts;
  readonly #options: HttpOptions;
  readonly #table: RouteTable;
  readonly #origins: OriginRules;
  readonly #shutdown: Shutdown;
  readonly #dashboard: Dashboard | null;

  constructor(pawl: Pawl, options: HttpOptions) {
    checkOptions("httpHandler()", options, httpOptions);
    for (const name of ["authorize", "redact"] as const)
      if (options[name] !== undefined && typeof options[name] !== "function")
        throw new InvalidInputError(`httpHandler({ ${name} }) must be a function.`);
    for (const name of ["maxBodyBytes", "maxStreams"] as const)
      if (options[name] !== undefined) checkWholeNumber(`httpHandler({ ${name} })`, options[name]);
    const { store, runtime, closed } = pawl.internals;
    const questions = new SharedQuestions(runtime);
    const definitions = new Map((options.workflows ?? []).map((workflow) => [nameOf(workflow), workflow]));
    this.#options = options;
    this.#parts = {
      pawl,
      questions,
      changes: new ChangeFeed(store, runtime, questions),
      runFeeds: new RunFeeds(store, runtime),
      slots: new StreamSlots(options.maxStreams ?? 1_000),
      basePath: checkBasePath(options.basePath ?? ""),
      findDefinition: (workflow) => definitions.get(workflow),
    };
    this.#shutdown = new Shutdown(closed);
    this.#table = new RouteTable(allRoutes);
    this.#origins = originRules(options);
    this.#dashboard = openDashboard(options.dashboard, this.#parts.basePath);
  }

  async handle(request: Request): Promise<Response> {
    // Known once the path has been matched.
    let runId: string | undefined;
    const onMatch = ({ params }: MatchedRoute) => {
      runId = params.run;
    };
    try {
      const response = await this.#answer(request, onMatch);
      return request.method === "HEAD" ? await withoutBody(response) : response;
    } catch (error) {
      if (isGone(request, error)) return new Response(null, { status: clientClosedRequest });
      const problem = await withChanges(error, this.#problemOf(error), this.#parts.pawl, runId);
      return this.#problemResponse(request, problem, error);
    }
  }

  #problemOf(error: unknown): Problem {
    // Whatever fails while the server stops has failed because of that.
    const isStopping = this.#parts.pawl.internals.closed.aborted && !(error instanceof HttpError);
    return problemOf(isStopping ? new HttpError(503, "UNAVAILABLE", "The server stops.", retrySoon) : error);
  }

  async #answer(request: Request, onMatch: (matched: MatchedRoute) => void): Promise<Response> {
    const url = new URL(request.url);
    checkHost(url, request.headers, remoteAddressOf(request), this.#origins);
    if (request.method === "OPTIONS") return this.#preflight(request);
    const path = this.#stripBasePath(url.pathname);
    // Links on other sites, and redirects of a login there, lead to pages. A page has no data in it.
    const isLink = this.#dashboard?.owns(request.method, path) === true && isNavigation(request.headers);
    if (!isLink) checkOrigin(url, request.headers, this.#origins);
    if (url.pathname.length > longestPath) throw new HttpError(400, "BAD_REQUEST", "The path is too long.");
    const isPublic = path === "/live" || path === "/ready";
    const authorization = isPublic ? { access: [] as const } : await this.#authorize(request);
    if (authorization instanceof Response) return authorization;
    const page = this.#dashboardAnswer(request, path, authorization);
    if (page !== null) return page;
    const matched = this.#table.match(request.method, path);
    if (!isAllowed(authorization.access, matched.route.requires))
      throw new HttpError(403, "FORBIDDEN", `This needs the permission "${matched.route.requires}".`);
    onMatch(matched);
    if (path !== "/live" && this.#parts.pawl.internals.closed.aborted)
      throw new HttpError(503, "UNAVAILABLE", "The server stops.", retrySoon);
    const call = await this.#call(request, url, matched, authorization);
    try {
      return this.#response(request, await matched.route.answer(call));
    } finally {
      // A command that failed may have changed something before.
      if (matched.route.method !== "GET") this.#afterChange();
    }
  }

  /** @returns null if there is no dashboard, no such file of it, or the path belongs to the API */
  #dashboardAnswer(request: Request, path: string, { access }: Authorization): Response | null {
    if (this.#dashboard?.owns(request.method, path) !== true) return null;
    if (!isAllowed(access, "read")) throw new HttpError(403, "FORBIDDEN", 'This needs the permission "read".');
    return this.#dashboard.answer(path, request.headers);
  }

  #preflight(request: Request): Response {
    const cors = corsHeaders(request.headers, this.#origins);
    if (Object.keys(cors).length === 0)
      throw new HttpError(405, "METHOD_NOT_ALLOWED", "OPTIONS is only for web pages of the allowed `origins`.", {
        Allow: "GET, HEAD, POST, PUT, DELETE",
      });
    return new Response(null, { status: 204, headers: { ...securityHeaders, ...cors, ...preflightHeaders } });
  }

  async #authorize(request: Request): Promise<Authorization | Response> {
    const { authorize } = this.#options;
    if (authorize === undefined) return { access: "all" };
    const decision = await authorize(request);
    if (decision == null)
      throw new HttpError(401, "UNAUTHORIZED", "The request is not authorized.", unauthorizedHeaders);
    return decision;
  }

  async #call(request: Request, url: URL, matched: MatchedRoute, authorization: Authorization): Promise<Call> {
    const { route, params } = matched;
    const { access, user } = authorization;
    const query = parseWith(() => readQuery(route, url.searchParams));
    const body = route.body === null ? undefined : await this.#readBody(request, route);
    const { plain = false, maxPayload } = query as { readonly plain?: boolean; readonly maxPayload?: number };
    const writerWith = (maxBytes: number | null) =>
      new PayloadWriter({
        redact: this.#options.redact ?? null,
        user,
        canSee: isAllowed(access, "payloads"),
        isPlain: plain,
        maxBytes,
      });
    return {
      ...this.#parts,
      ...{ params, query, body, headers: request.headers, signal: request.signal, access, user },
      writer: writerWith(maxPayload ?? null),
      writerFor: (defaultMaxBytes) => writerWith(maxPayload ?? defaultMaxBytes),
      openStream: (source) => ({ stream: this.#openStream(request, source) }),
    };
  }

  #openStream(request: Request, source: EventSource): ReadableStream<Uint8Array> {
    return eventStream(source, {
      runtime: this.#parts.pawl.internals.runtime,
      signal: request.signal,
      shutdown: this.#shutdown,
      onError: (error) => this.#logFailure(request, error),
    });
  }

  async #readBody(request: Request, route: Route): Promise<unknown> {
    const limits = { maxBytes: this.#options.maxBodyBytes ?? 2 * 1024 * 1024, timeoutMs: bodyTimeoutMs };
    const json = await readJsonBody(request, limits, this.#parts.pawl.internals.runtime);
    return parseWith(() => (route.body as NonNullable<Route["body"]>).parse(json, "The body"));
  }

  /** A client that reads after a change through this handler must see it, and clients that watch are told. */
  #afterChange(): void {
    this.#parts.questions.invalidate();
    this.#parts.changes.announce();
  }

  #response(request: Request, answer: Answer): Response {
    const cors = corsHeaders(request.headers, this.#origins);
    if ("stream" in answer) {
      const headers = { "Content-Type": "text/event-stream; charset=utf-8", "X-Accel-Buffering": "no" };
      return new Response(answer.stream, { headers: { ...securityHeaders, ...cors, ...headers } });
    }
    const headers = { ...securityHeaders, ...cors, ...answer.headers, "Content-Type": "application/json" };
    return new Response(JSON.stringify(answer.json), { status: answer.status ?? 200, headers });
  }

  #problemResponse(request: Request, problem: Problem, error: unknown): Response {
    const id = this.#logFailure(request, error);
    const headers = {
      ...securityHeaders,
      ...corsHeaders(request.headers, this.#origins),
      ...problem.headers,
      "Content-Type": "application/problem+json",
    };
    const body = request.method === "HEAD" ? null : JSON.stringify(problemJson(withInstance(problem, id)));
    return new Response(body, { status: problem.status, headers });
  }

  /** Logs an error that is no fault of the client. Returns the id under which the log has it; null: it was not logged. */
  #logFailure(request: Request, error: unknown): string | null {
    const { status } = this.#problemOf(error);
    if (status < 500 || status === 503) return null;
    const { log, runtime } = this.#parts.pawl.internals;
    const id = randomHex(runtime, 6);
    log.error(`HTTP request failed (${request.method} ${pathOf(request)}, ${id}).`, error);
    return id;
  }

  #stripBasePath(path: string): string {
    const { basePath } = this.#parts;
    if (basePath === "") return path;
    if (path === basePath) return "/";
    return path.startsWith(`${basePath}/`) ? path.slice(basePath.length) : path;
  }
}

function openDashboard(option: HttpOptions["dashboard"], basePath: string): Dashboard | null {
  if (option === undefined || option === false) return null;
  if (option !== true && (typeof option !== "object" || option === null))
    throw new InvalidInputError("httpHandler({ dashboard }) must be true, or an object with options.");
  return new Dashboard(option === true ? {} : option, basePath);
}

/** A stream that no client will read is closed, and gives back its slot. */
async function withoutBody(response: Response): Promise<Response> {
  await response.body?.cancel();
  return new Response(null, response);
}

/** The status that web servers log for a client that has closed the connection. No client ever sees it. */
const clientClosedRequest = 499;

/** Whether a long poll ended because its client has gone, which is no failure. */
const isGone = ({ signal }: Request, error: unknown): boolean =>
  signal.aborted && (error === signal.reason || (error instanceof Error && error.name === "AbortError"));

/** Tells the client where the log of the server has an error that the client may not see. */
const withInstance = (problem: Problem, id: string | null): Problem =>
  id === null
    ? problem
    : {
        ...problem,
        detail: `${problem.detail} Look for ${id} there.`,
        fields: { ...problem.fields, instance: `urn:pawl:failure:${id}` },
      };

const pathOf = (request: Request): string => {
  try {
    return new URL(request.url).pathname;
  } catch {
    return "?";
  }
};

function checkBasePath(basePath: string): string {
  if (basePath === "" || basePath === "/") return "";
  if (/^(?:\/[\w.~-]+)+\/?$/.test(basePath)) return basePath.replace(/\/$/, "");
  throw new InvalidInputError(`basePath must be a path such as "/pawl", not ${JSON.stringify(basePath)}.`);
}

function readQuery(route: Route, parameters: URLSearchParams): unknown {
  const names = [...parameters.keys()];
  // No database can look for it.
  if ([...parameters.values()].some((value) => value.includes("\0")))
    throw new SchemaError("A parameter contains the character NUL.");
  const known = new Set(Object.keys(route.query?.fields ?? {}));
  const unknown = names.find((name) => !known.has(name));
  if (unknown !== undefined) {
    const list = known.size === 0 ? "it takes none" : `it takes ${[...known].join(", ")}`;
    throw new SchemaError(`There is no parameter ${JSON.stringify(unknown.slice(0, 60))} here; ${list}.`);
  }
  const repeated = names.find((name) => parameters.getAll(name).length > 1);
  if (repeated !== undefined) throw new SchemaError(`The parameter "${repeated}" is given twice.`);
  return route.query === null ? {} : route.query.parse(Object.fromEntries(parameters), "The query");
}

function parseWith<T>(parse: () => T): T {
  try {
    return parse();
  } catch (error) {
    if (error instanceof SchemaError) throw new HttpError(400, "BAD_REQUEST", error.message);
    if (error instanceof RangeError) throw new HttpError(400, "BAD_REQUEST", "The body is nested too deeply.");
    throw error;
  }
}
