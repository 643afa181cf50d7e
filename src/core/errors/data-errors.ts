/** Errors for values that cannot be stored, and for stored data that cannot be read. */

import { causeOf, nameErrors, PawlError } from "./pawl-error.js";

/**
 * Thrown in a resumable step when its encoded cursor exceeds the size limit. Keep a position in the cursor (a key, an
 * index) instead of the items.
 */
export class CursorTooLargeError extends PawlError {
  readonly code = "CURSOR_TOO_LARGE";
  /** The name of the step. */
  readonly step: string;
  /** The size of the encoded cursor, in bytes. */
  readonly bytes: number;
  /** The largest size that is allowed, in bytes. */
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

/**
 * A value (an input, an output, a signal's payload …) is too large to be stored. Keep the data elsewhere (a table, a file,
 * a bucket) and pass a reference to it.
 */
export class PayloadTooLargeError extends PawlError {
  readonly code = "PAYLOAD_TOO_LARGE";
  /** Describes the value for display, such as `the output of step "zip"`. */
  readonly what: string;
  /** The size of the encoded value in bytes of UTF-8, or of the part that was encoded until the limit was exceeded. */
  readonly bytes: number;
  /** The largest size that is allowed, in bytes. */
  readonly limit: number;

  constructor(details: {
    what: string;
    bytes: number;
    limit: number;
    /** True when the measuring stopped at `bytes`, before the end of the value. */
    atLeast?: boolean;
  }) {
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

/**
 * A value cannot be encoded for storage (a function, a class instance, a promise …), or a stored text cannot be decoded.
 * The message names the place in the value, and says what to store instead.
 */
export class SerializationError extends PawlError {
  readonly code = "SERIALIZATION_ERROR";
  /** The place in the value, such as `$.items[3].fn`. */
  readonly path: string;

  constructor(message: string, options: ErrorOptions & { path: string }) {
    super(message, causeOf(options));
    this.path = options.path;
  }
}

/**
 * Stored data of one run (or one row) cannot be read. Other runs are not affected. Repair the row that the fields name, or
 * restore it from a backup.
 */
export class DamagedDataError extends PawlError {
  readonly code = "DAMAGED_DATA";
  /** The run whose data is damaged; undefined when the data belongs to no run. */
  readonly runId: string | undefined;
  /** The column that cannot be read, such as "input" or "tags"; "events" for the log. */
  readonly column: string;
  /** The number of the damaged event; undefined when the damage is not in the log. */
  readonly event: number | undefined;
  readonly #problem: string;

  constructor(
    details: {
      runId?: string | undefined;
      column: string;
      event?: number | undefined;
      /** What is wrong with the data. */
      problem: string;
      /** The thing whose data is damaged, if it is not a run. */
      of?: string;
      /** What the user can do. */
      remedy?: string;
    },
    options: ErrorOptions = {},
  ) {
    const { runId, column, event, problem, remedy } = details;
    const of = details.of ?? (runId === undefined ? "The run" : `Run ${runId}`);
    const place = event === undefined ? `its ${column}` : `event ${event} of its log`;
    const remedySentence = remedy === undefined ? "" : ` ${remedy}`;
    super(
      `${of} cannot be read: ${place} is damaged (${problem.replace(/[.]$/, "")}).${remedySentence}`,
      causeOf(options),
    );
    this.runId = runId;
    this.column = column;
    this.event = event;
    this.#problem = problem;
  }

  /** A copy of this error whose message names the run and what the operator can do. */
  ofRun(runId: string, remedy?: string): DamagedDataError {
    const { column, event, cause } = this;
    const remedyOption = remedy === undefined ? {} : { remedy };
    return new DamagedDataError({ runId, column, event, problem: this.#problem, ...remedyOption }, { cause });
  }
}

nameErrors({ CursorTooLargeError, PayloadTooLargeError, SerializationError, DamagedDataError });
