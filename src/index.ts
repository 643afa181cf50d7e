/** The public names of Pawl. */

export type { CommandOptions } from "./client/command/command-options.js";
export type { ResumeOptions } from "./client/command/resume-command.js";
export type { DamagedField } from "./client/inspect/damaged-data.js";
export type { ExecutionInfo } from "./client/inspect/executions.js";
export type { Explanation, LimitedBy } from "./client/inspect/explanation.js";
export type { FindBy } from "./client/inspect/find-runs.js";
export type { GatheredInfo } from "./client/inspect/gathered.js";
export type { HistoryEvent } from "./client/inspect/history.js";
export type { RunsFilter, RunsPage } from "./client/inspect/list-runs.js";
export type { NodeInfo } from "./client/inspect/nodes.js";
export type { ProgressInfo } from "./client/inspect/progress.js";
export type { RunInfo } from "./client/inspect/run-info.js";
export type { RunSnapshot, StepSnapshot } from "./client/inspect/snapshot.js";
export type { TimelineInterval } from "./client/inspect/timeline.js";
export type {
  LaneInfo,
  LimitDetails,
  LimitInfo,
  LimitOverrideInfo,
  LimitPageOptions,
  LimitRate,
  LimitValuesInForce,
  OverrideOptions,
  SlotHolder,
} from "./client/limits/limit-info.js";
export type { Limits } from "./client/limits/limits.js";
export type { Check } from "./client/operate/check.js";
export type { RunCounts, StatusNumbers } from "./client/operate/counts.js";
export type { DatabaseInfo, TableInfo } from "./client/operate/database.js";
export type { Difference, DifferenceKind } from "./client/operate/difference.js";
export type { ErrorInfo, ErrorReport } from "./client/operate/errors.js";
export type { Figures, FiguresOptions } from "./client/operate/figures.js";
export type { Distribution, MetricsOptions, WorkflowMetrics } from "./client/operate/metrics.js";
export type { PruneOptions, PruneResult } from "./client/operate/prune.js";
export type { QueueInfo } from "./client/operate/queues.js";
export type { Verification } from "./client/operate/verify.js";
export type { WorkerHealth } from "./client/operate/workers.js";
export type { WorkflowInfo } from "./client/operate/workflows.js";
export type { RunHandle } from "./client/run-handle.js";
export type { OccurrenceInfo, OccurrenceOutcome, ScheduleInfo } from "./client/schedules/schedule-info.js";
export type {
  BackfillResult,
  ScheduleCommandOptions,
  ScheduleListOptions,
} from "./client/schedules/schedule-options.js";
export type { Schedules } from "./client/schedules/schedules.js";
export type { BuildOptions } from "./client/start/build.js";
export type { DebounceOptions } from "./client/start/debounce.js";
export type { NamedWorkflow } from "./client/start/named-workflow.js";
export type { OnConflict, StartOptions } from "./client/start/new-run.js";
export type { CollectingStartOptions } from "./client/start/start-args.js";
export { type ConnectOptions, connect, Pawl } from "./connect.js";
export {
  AlreadyActiveError,
  CursorTooLargeError,
  DamagedDataError,
  ExecutionAbortedError,
  GraphError,
  InvalidInputError,
  InvalidStateError,
  LimitCycleError,
  LimitFullError,
  MigrationError,
  MissingJobError,
  NonDeterminismError,
  PauseError,
  PawlError,
  PayloadTooLargeError,
  PermanentError,
  RunCanceledError,
  RunChangedError,
  RunFailedError,
  RunNotFoundError,
  ScheduleNotFoundError,
  SerializationError,
  StepNotDefinedError,
  StoreError,
  TimeoutError,
  TransactionError,
  TransientError,
  WorkflowNotFoundError,
} from "./core/errors/errors.js";
export type { DagOptions, FrozenDag, FrozenNode } from "./core/graph/frozen-dag.js";
export type { OnFull } from "./core/limits/full-lane.js";
export type { Duration } from "./core/naming/duration.js";
export type { RetryOptions } from "./core/naming/retry-policy.js";
export type { Aliases, Waiting } from "./core/run/stored-schema.js";
export type { BatchOptions, BatchSettings } from "./define/batch.js";
export type { CallOptions } from "./define/call-options.js";
export type * from "./define/children.js";
export type { Condition } from "./define/class/class-types.js";
export type { ExceptionAction, ExceptionPolicy, ExceptionRule } from "./define/class/exceptions.js";
export type { Pages, StepIterator } from "./define/class/iterator.js";
export type { ClassOptions, ResumableStepOptions, StepDeclarationOptions } from "./define/class/options.js";
export { Workflow } from "./define/class/workflow.js";
export type { WorkflowClass, WorkflowInstance } from "./define/class/workflow-instance.js";
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
export { signal, type WorkflowOptions, workflow } from "./define/function/function.js";
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
export type { HeroRef } from "./define/hero.js";
export {
  type LimitDefinition,
  type LimitedRun,
  type LimitKey,
  type LimitOptions,
  limit,
  type RateOptions,
} from "./define/limit.js";
export { type AnyWorkflow, discoverWorkflows } from "./define/resolve.js";
export type { RunnableClass, RunnableDefinition } from "./define/runnable.js";
export {
  type CatchUpOptions,
  discoverSchedules,
  type ScheduleDefinition,
  type ScheduledOccurrence,
  type ScheduleOptions,
  type ScheduleSettings,
  schedule,
} from "./define/schedule/schedule.js";
export type { ScheduleContext } from "./define/schedule/schedule-context.js";
export type { HookContext, StepExecution, StepHooks } from "./define/step-hooks.js";
export type { PoolSizes, RunStatus, Store, StoreOptions } from "./store/contract/store.js";
export type { RunEvent, RunStatusChange } from "./telemetry/publish.js";
export type { OccurrenceChange } from "./telemetry/publish-occurrence.js";
export type { WorkerOptions } from "./worker/options.js";
export type { Worker } from "./worker/worker.js";
