/** Errors as problem details (RFC 9457), with the code of Pawl's error. */
import {
  AlreadyActiveError,
  InvalidInputError,
  InvalidStateError,
  PawlError,
  PayloadTooLargeError,
  RunChangedError,
  RunNotFoundError,
  ScheduleNotFoundError,
  StoreError,
  WorkflowNotFoundError,
} from "../core/errors/errors.js";
import { integer, list, named, object, optional, payload, text, time } from "./schema.js";

/** An error that the HTTP layer itself answers with. */
export class HttpError extends Error {
  readonly status: number;
  readonly code: string;
  readonly headers: Readonly<Record<string, string>>;

  constructor(status: number, code: string, message: string, headers: Readonly<Record<string, string>> = {}) {
    super(message);
    this.status = status;
    this.code = code;
    this.headers = headers;
  }
}

/** The titles of the codes that are not those of error classes. */
export const problemTitles: Readonly<Record<string, string>> = {
  BAD_REQUEST: "The request is not valid",
  UNAUTHORIZED: "The request is not authorized",
  FORBIDDEN: "This access does not allow it",
  FOREIGN_HOST: "This host is not served",
  FOREIGN_ORIGIN: "Requests of this origin are refused",
  NOT_FOUND: "There is no such resource",
  METHOD_NOT_ALLOWED: "This method is not allowed here",
  REQUEST_TIMEOUT: "The request took too long",
  BODY_TOO_LARGE: "The body is too large",
  UNSUPPORTED_MEDIA_TYPE: "The body must be JSON",
  KEY_REUSED: "The idempotency key was used for another start",
  TOO_MANY_STREAMS: "Too many streams are open",
  UNAVAILABLE: "The database cannot be reached",
  INTERNAL_ERROR: "Something went wrong",
  RUN_NOT_FOUND: "The run does not exist",
  WORKFLOW_NOT_FOUND: "The workflow is not registered",
  SCHEDULE_NOT_FOUND: "The schedule does not exist",
  LIMIT_NOT_FOUND: "The limit does not exist",
  ALREADY_ACTIVE: "The hero has an active run",
  INVALID_STATE: "The run or schedule is not in a state for this",
  RUN_CHANGED: "The run has changed meanwhile",
  INVALID_INPUT: "A value is not valid",
  PAYLOAD_TOO_LARGE: "A value is too large",
  STORE_ERROR: "The database refused the call",
};

const change = object("An event that the caller may not have seen.", {
  seq: integer("The number of the event.", 1),
  type: text("What happened, such as `run.resumed`."),
  at: time("When it was committed."),
  by: optional(text("Who gave the command.")),
});

const pendingCommand = object("A command in the inbox of the run.", {
  command: text("The command, such as `pause`."),
  at: time("When it was accepted."),
  by: optional(text("Who gave it.")),
});

export const problemSchema = named(
  "Problem",
  object("Problem details (RFC 9457).", {
    type: text("Identifies the kind of problem: `urn:pawl:problem:` and the code."),
    title: text("The kind of problem in a few words."),
    status: integer("The HTTP status.", 400, 599),
    detail: text("What is wrong, and what to do.", { maxLength: 100_000 }),
    code: text("The code, such as `INVALID_STATE`. It stays the same between versions."),
    instance: optional(text("Identifies the failure in the log of the server.")),
    issues: optional(list("What a schema reported.", payload("An issue with `message` and `path`."))),
    runId: optional(text("The run that the problem is about.")),
    runStatus: optional(text("The status of that run.")),
    lastEvent: optional(integer("The number of the last event in the log of that run.", 0)),
    changes: optional(list("The last events of that run.", change)),
    pending: optional(
      list("Commands that were accepted and that the worker of the run has not applied yet.", pendingCommand),
    ),
  }),
);

export interface Problem {
  readonly status: number;
  readonly code: string;
  readonly detail: string;
  readonly fields: Readonly<Record<string, unknown>>;
  readonly headers: Readonly<Record<string, string>>;
}

/** The status of each error class. Errors that are not listed are bugs or damage: 500. */
export function problemOf(error: unknown): Problem {
  if (error instanceof HttpError) return problem(error.status, error.code, error.message, {}, error.headers);
  if (!(error instanceof PawlError))
    return problem(500, "INTERNAL_ERROR", "The server could not handle the request; its log says why.");
  const { code, message } = error;
  if (error instanceof RunNotFoundError) return problem(404, code, message, { runId: error.runId });
  if (error instanceof WorkflowNotFoundError || error instanceof ScheduleNotFoundError)
    return problem(404, code, message);
  if (error instanceof AlreadyActiveError) return problem(409, code, message, { runId: error.runId });
  if (error instanceof InvalidStateError)
    return problem(409, code, message, { runId: error.runId, runStatus: error.status });
  if (error instanceof RunChangedError)
    return problem(409, code, message, { runId: error.runId, lastEvent: error.lastEvent });
  if (error instanceof InvalidInputError && error.runId !== undefined)
    return problem(422, "KEY_REUSED", message, { runId: error.runId });
  if (error instanceof InvalidInputError)
    return problem(400, code, message, error.issues.length === 0 ? {} : { issues: error.issues });
  if (error instanceof PayloadTooLargeError) return problem(413, code, message);
  if (error instanceof StoreError && (error.unreachable || error.transient))
    return problem(503, "UNAVAILABLE", "The database cannot be reached, or was too busy; try again.", {}, retrySoon);
  if (clientErrors.has(code)) return problem(400, code, message);
  // The message of a damaged row or a refused statement may quote stored data.
  return problem(500, code, "The server could not handle the request; its log says why.");
}

const clientErrors = new Set(["SERIALIZATION_ERROR", "GRAPH_ERROR", "STEP_NOT_DEFINED", "CURSOR_TOO_LARGE"]);
export const retrySoon = { "Retry-After": "5" };

function problem(
  status: number,
  code: string,
  detail: string,
  fields: Readonly<Record<string, unknown>> = {},
  headers: Readonly<Record<string, string>> = {},
): Problem {
  return { status, code, detail, fields, headers };
}

/** The JSON of a problem. */
export function problemJson({ status, code, detail, fields }: Problem): Record<string, unknown> {
  const definedFields = Object.entries(fields).filter(([, value]) => value !== undefined && value !== "");
  return {
    type: `urn:pawl:problem:${code}`,
    title: problemTitles[code] ?? code,
    status,
    detail,
    code,
    ...Object.fromEntries(definedFields),
  };
}
