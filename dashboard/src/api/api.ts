/** Requests to the HTTP API. Every screen gets its data here, and nowhere else. */

import { noteAnswer, noteFailure } from "./connection.js";
import type { operations } from "./openapi.js";

type Operations = operations;

/** The answer of an operation of the API, by its name in the OpenAPI document: `Answer<"getRun">`. */
export type Answer<Id extends keyof Operations> = Operations[Id]["responses"] extends infer Responses
  ? Responses extends { 200: { content: { "application/json": infer Json } } }
    ? Json
    : Responses extends { 201: { content: { "application/json": infer Created } } }
      ? Created
      : never
  : never;

export type QueryValue = string | number | boolean | null | undefined;
export type Query = Readonly<Record<string, QueryValue>>;

/** An event that happened between what a person saw and the command that was refused because of it. */
export interface Change {
  readonly seq: number;
  readonly type: string;
  readonly at: string;
  readonly by?: string | null;
}

/** A request that the API refused, or that got no answer (status 0). */
export class ApiError extends Error {
  readonly status: number;
  readonly code: string;
  readonly changes: readonly Change[];
  readonly runStatus: string | null;
  /** The last event of the run, if the command was refused because the run has changed. */
  readonly lastEvent: number | null;
  /** The run that the refusal is about, such as the one that has the idempotency key. */
  readonly runId: string | null;
  readonly issues: readonly { readonly message: string; readonly path?: readonly unknown[] }[];

  constructor(status: number, problem: Record<string, unknown>) {
    super(String(problem.detail ?? problem.title ?? `The server answered with ${status}.`));
    this.name = "ApiError";
    this.status = status;
    this.code = String(problem.code ?? "");
    this.changes = Array.isArray(problem.changes) ? (problem.changes as Change[]) : [];
    this.lastEvent = typeof problem.lastEvent === "number" ? problem.lastEvent : null;
    this.runStatus = typeof problem.runStatus === "string" ? problem.runStatus : null;
    this.runId = typeof problem.runId === "string" ? problem.runId : null;
    this.issues = Array.isArray(problem.issues) ? (problem.issues as ApiError["issues"]) : [];
  }
}

/** The address of a path of the API, such as `v1/runs`, under the base path of the page. */
export function apiUrl(path: string, query: Query = {}): string {
  const url = new URL(`api/${path}`, document.baseURI);
  for (const [name, value] of Object.entries(query))
    if (value !== undefined && value !== null && value !== "") url.searchParams.set(name, String(value));
  return url.href;
}

/** The path of something of a run: `runPath(id, "history")`. */
export const runPath = (runId: string, part = ""): string =>
  `v1/runs/${encodeURIComponent(runId)}${part === "" ? "" : `/${part}`}`;

export const getJson = <T>(url: string, signal?: AbortSignal): Promise<T> =>
  send<T>(url, { headers: { Accept: "application/json" }, ...(signal === undefined ? {} : { signal }) });

export const post = <T = unknown>(path: string, body: unknown): Promise<T> =>
  send<T>(apiUrl(path), {
    method: "POST",
    headers: { Accept: "application/json", "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });

export const put = <T = unknown>(path: string, body: unknown): Promise<T> =>
  send<T>(apiUrl(path), {
    method: "PUT",
    headers: { Accept: "application/json", "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });

/** Deletes what is at a path. The API takes the reason in the query. */
export const remove = <T = unknown>(path: string, query: Query): Promise<T> =>
  send<T>(apiUrl(path, query), { method: "DELETE", headers: { Accept: "application/json" } });

/** The path of something of a schedule: `schedulePath(name, "next")`. */
export const schedulePath = (name: string, part = ""): string =>
  `v1/schedules/${encodeURIComponent(name)}${part === "" ? "" : `/${part}`}`;

/** The path of something of a limit: `limitPath(name, "override")`. */
export const limitPath = (name: string, part = ""): string =>
  `v1/limits/${encodeURIComponent(name)}${part === "" ? "" : `/${part}`}`;

async function send<T>(url: string, init: RequestInit): Promise<T> {
  let response: Response;
  try {
    response = await fetch(url, { credentials: "same-origin", ...init });
  } catch (error) {
    if (init.signal?.aborted) throw error;
    const failure = new ApiError(0, { code: "NO_ANSWER", detail: "The server does not answer." });
    noteFailure(failure.status);
    throw failure;
  }
  // A login page in place of the answer means that the session of the browser has ended.
  const isJson = /json/.test(response.headers.get("content-type") ?? "");
  if (response.ok && isJson) {
    noteAnswer();
    return (await response.json()) as T;
  }
  const problem = isJson ? ((await response.json()) as Record<string, unknown>) : {};
  const status = response.ok || response.redirected ? 401 : response.status;
  noteFailure(status);
  throw new ApiError(status, problem);
}
