/** A value cannot be stored, or what is stored cannot be read. */

import { causeOf, nameErrors, PawlError } from "./pawl-error.js";

/** A cursor is larger than a cursor may be. */
export class CursorTooLargeError extends PawlError {
  readonly code = "CURSOR_TOO_LARGE";
  readonly step: string;
  readonly bytes: number;
  readonly limit: number;

  constructor(details: { step: string; bytes: number; limit: number }) {
    const { step, bytes, limit } = details;
    super(
      `The cursor of step ${JSON.stringify(step)} is ${bytes} bytes; the limit is ${limit}. ` +
        "Keep a position in the cursor (a key, an index), not the items.",
    );
    this.step = step;
    this.bytes = bytes;
    this.limit = limit;
  }
}

/** A value is larger, once encoded, than Pawl stores. */
export class PayloadTooLargeError extends PawlError {
  readonly code = "PAYLOAD_TOO_LARGE";
  readonly what: string;
  /** The encoded size in UTF-8, or as much of it as was counted before giving up. */
  readonly bytes: number;
  readonly limit: number;

  constructor(details: { what: string; bytes: number; limit: number; atLeast?: boolean }) {
    const { what, bytes, limit, atLeast = false } = details;
    super(
      `Cannot store ${what}: it is ${atLeast ? "at least " : ""}${bytes} bytes and the limit is ${limit}. ` +
        "Keep the data elsewhere (a table, a file, a bucket) and pass a reference to it.",
    );
    this.what = what;
    this.bytes = bytes;
    this.limit = limit;
  }
}

/** A value cannot be turned into text, or a stored text not back into a value. */
export class SerializationError extends PawlError {
  readonly code = "SERIALIZATION_ERROR";
  /** Where in the value, such as `$.items[3].fn`. */
  readonly path: string;

  constructor(message: string, options: ErrorOptions & { path: string }) {
    super(message, causeOf(options));
    this.path = options.path;
  }
}

/** Something that is stored cannot be read back. It concerns this run (or row) alone; others can be read. */
export class DamagedDataError extends PawlError {
  readonly code = "DAMAGED_DATA";
  /** Whose data it is; undefined when it belongs to no run. */
  readonly runId: string | undefined;
  /** The column that cannot be read, "input" or "tags", say; "events" for the log. */
  readonly column: string;
  /** Of the log: the number of the event. */
  readonly event: number | undefined;
  readonly #problem: string;

  constructor(
    details: {
      runId?: string | undefined;
      column: string;
      event?: number | undefined;
      problem: string;
      of?: string;
      remedy?: string;
    },
    options: ErrorOptions = {},
  ) {
    const { runId, column, event, problem, remedy } = details;
    const of = details.of ?? (runId === undefined ? "The run" : `Run ${runId}`);
    const place = event === undefined ? `its ${column}` : `event ${event} of its log`;
    const next = remedy === undefined ? "" : ` ${remedy}`;
    super(`${of} cannot be read: ${place} is damaged (${problem.replace(/[.]$/, "")}).${next}`, causeOf(options));
    this.runId = runId;
    this.column = column;
    this.event = event;
    this.#problem = problem;
  }

  /** The same, said of this run, and with what can be done about it. */
  ofRun(runId: string, remedy?: string): DamagedDataError {
    const { column, event, cause } = this;
    const next = remedy === undefined ? {} : { remedy };
    return new DamagedDataError({ runId, column, event, problem: this.#problem, ...next }, { cause });
  }
}

nameErrors({ CursorTooLargeError, PayloadTooLargeError, SerializationError, DamagedDataError });
