/**
 * What the SQL functions of PostgreSQL and the procedures of MySQL and MariaDB have in common. With `pawl_start` and
 * `pawl_signal`, programs in any language start and signal runs inside their own transactions. Both do what the client
 * does with the option `tx`, so their checks and sentences are the client's, and `test/sql-functions` compares them.
 */

export const startOptionNames = [
  "idempotencyKey",
  "hero",
  "allowMultiple",
  "delay",
  "startAt",
  "priority",
  "tags",
  "by",
  "reason",
] as const;

export const signalOptionNames = ["key", "by", "reason"] as const;

/** The same limit as that of `checkPriority`. */
export const maxPriority = 1_000_000;

/** A longer reason is cut, as `checkReason` does. */
export const maxReasonLength = 4_000;

/** The limit of JavaScript's dates, in milliseconds before and after 1970. */
export const maxInstantMs = 8.64e15;

/**
 * The error codes of the client that the SQL calls raise. PostgreSQL raises each with a SQLSTATE of its own, MySQL and
 * MariaDB with SQLSTATE 45000 and an error number of its own.
 */
export const sqlErrors = {
  INVALID_INPUT: { sqlState: "PW400", errno: 50_400 },
  WORKFLOW_NOT_FOUND: { sqlState: "PW404", errno: 50_404 },
  RUN_NOT_FOUND: { sqlState: "PW405", errno: 50_405 },
  ALREADY_ACTIVE: { sqlState: "PW409", errno: 50_409 },
  INVALID_STATE: { sqlState: "PW410", errno: 50_410 },
  PAYLOAD_TOO_LARGE: { sqlState: "PW413", errno: 50_413 },
  SERIALIZATION_ERROR: { sqlState: "PW422", errno: 50_422 },
  DAMAGED_DATA: { sqlState: "PW500", errno: 50_500 },
  STORE_ERROR: { sqlState: "PW503", errno: 50_503 },
} as const;

/** How often a start is tried again while the runs that hold its keys disappear. */
export const maxStartTries = 10;
