/** The public names of Pawl. */
export type { StartOptions } from "./client/birth.js";
export type { BuildOptions } from "./client/build.js";
export type { RunsFilter } from "./client/client.js";
export type { DamagedField } from "./client/damage.js";
export type { Difference, DifferenceKind } from "./client/difference.js";
export type { ExecutionInfo } from "./client/executions.js";
export type { Explanation } from "./client/explain.js";
export type { FindBy } from "./client/find.js";
export type { RunHandle } from "./client/handle.js";
export type { HistoryEvent } from "./client/history.js";
export type { RunInfo } from "./client/info.js";
export type { Distribution, MetricsOptions, WorkflowMetrics } from "./client/metrics.js";
export type { NodeInfo } from "./client/nodes.js";
export type { ProgressInfo } from "./client/progress.js";
export type { Pruned, PruneOptions } from "./client/prune.js";
export type { QueueInfo } from "./client/queues.js";
export type { ResumeOptions } from "./client/resume.js";
export type { RunSnapshot, StepSnapshot } from "./client/snapshot.js";
export type { TimelineInterval } from "./client/timeline.js";
export type { Verification } from "./client/verify.js";
export type { WorkerHealth } from "./client/workers.js";
export { type ConnectOptions, connect, Pawl } from "./connect.js";
export type { DagOptions, FrozenDag, FrozenNode } from "./core/dag.js";
export type { Duration } from "./core/duration.js";
export {
  AlreadyActiveError,
  CursorTooLargeError,
  DamagedDataError,
  ExecutionAbortedError,
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
  TransactionError,
  TransientError,
  WorkflowNotFoundError,
} from "./core/errors.js";
export type { RetryOptions } from "./core/retry.js";
export type { Aliases } from "./core/step-name.js";
export type { Waiting } from "./core/waiting.js";
export { type AnyWorkflow, discoverWorkflows } from "./define/as-definition.js";
export type { Condition, StepExecution } from "./define/class/class-types.js";
export type { ExceptionAction, ExceptionPolicy, ExceptionRule } from "./define/class/exceptions.js";
export type { Pages, StepIterator } from "./define/class/iterator.js";
export type { ClassOptions, ResumableStepOptions, StepDeclarationOptions } from "./define/class/options.js";
export { Workflow, type WorkflowClass } from "./define/class/workflow.js";
export type * from "./define/context.js";
export type {
  ErrorContext,
  ErrorReporter,
  FailureInfo,
  Handler,
  WorkflowDefinition,
  WorkflowStyle,
} from "./define/definition.js";
export type { DependsOn, FanOutOptions, GraphBuilder, NodeOptions, NodeRef } from "./define/dynamic/builder.js";
export { type JobDefinition, type JobOptions, type JobTools, job } from "./define/dynamic/job.js";
export { signal, type WorkflowOptions, workflow } from "./define/function.js";
export type { GraphJson } from "./define/graph/drawing.js";
export { type GraphDefinition, type GraphOptions, graph } from "./define/graph/graph.js";
export {
  type AnyNode,
  type BranchHandle,
  branch,
  type GraphStepOptions,
  type StepContext,
  type StepHandle,
  step,
} from "./define/graph/node.js";
export type { HookContext, StepHooks } from "./define/step-hooks.js";
export type { HeroRef } from "./define/stepping.js";
export type { PoolSizes, RunStatus, Store, StoreOptions } from "./store/store.js";
export type { ToldEvent, ToldStatus } from "./telemetry/tell.js";
export type { Worker, WorkerOptions } from "./worker/worker.js";
