/** Exports all error classes of Pawl, which are defined in one file per kind. */

export { GraphError, MissingJobError, NonDeterminismError, StepNotDefinedError } from "./code-errors.js";
export { CursorTooLargeError, DamagedDataError, PayloadTooLargeError, SerializationError } from "./data-errors.js";
export {
  ExecutionAbortedError,
  LimitCycleError,
  LimitFullError,
  RunCanceledError,
  RunFailedError,
  TimeoutError,
} from "./outcome-errors.js";
export { PawlError } from "./pawl-error.js";
export {
  AlreadyActiveError,
  type InputIssue,
  InvalidInputError,
  InvalidStateError,
  RunChangedError,
  RunNotFoundError,
  ScheduleNotFoundError,
  WorkflowNotFoundError,
} from "./request-errors.js";
export { PauseError, PermanentError, TransientError } from "./step-errors.js";
export { FencedError, MigrationError, StoreError, TransactionError } from "./store-errors.js";
