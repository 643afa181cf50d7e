/** The public names of Pawl. */
export type { Hero, StartOptions } from "./client/birth.js";
export type { RunsFilter } from "./client/client.js";
export type { ExecutionInfo } from "./client/executions.js";
export type { RunHandle } from "./client/handle.js";
export type { HistoryEvent } from "./client/history.js";
export type { RunInfo } from "./client/info.js";
export type { Difference, Verification } from "./client/verify.js";
export { type ConnectOptions, connect, Pawl } from "./connect.js";
export type { Duration } from "./core/duration.js";
export {
  AlreadyActiveError,
  CursorTooLargeError,
  GraphError,
  InvalidInputError,
  InvalidStateError,
  MigrationError,
  MissingJobError,
  NonDeterminismError,
  PauseError,
  PawlError,
  PayloadTooLargeError,
  PermanentError,
  RunCanceledError,
  RunFailedError,
  RunNotFoundError,
  SerializationError,
  StepNotDefinedError,
  StoreError,
  TimeoutError,
  TransientError,
  WorkflowNotFoundError,
} from "./core/errors.js";
export type { RetryOptions } from "./core/retry.js";
export type { Waiting } from "./core/state.js";
export type * from "./define/context.js";
export type { FailureInfo, Handler, WorkflowDefinition } from "./define/definition.js";
export { discoverWorkflows, signal, type WorkflowOptions, workflow } from "./define/function.js";
export type { RunStatus, WorkerRecord } from "./store/store.js";
export type { Worker, WorkerOptions } from "./worker/worker.js";
