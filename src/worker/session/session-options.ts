/** What a session gets from its worker. */
import type { Logger } from "../../define/context.js";
import type { ErrorReporter, WorkflowDefinition } from "../../define/definition.js";
import type { Runtime } from "../../runtime/runtime.js";
import type { FreedSlots } from "../../store/contract/limits.js";
import type { Fence, Store } from "../../store/contract/store.js";
import type { RunTally } from "../../telemetry/run-tally.js";
import type { SlotKeeper } from "../limits/slot-keeper.js";
import type { HostedTurn, JobInfo, WorkflowSummary } from "../turn/turn-host.js";
import type { WorkerWatchdog } from "../watchdog/watchdog.js";
import type { SlowSteps } from "./slow-steps.js";

export interface SessionOptions {
  readonly runtime: Runtime;
  readonly store: Store;
  readonly log: Logger;
  readonly tally: RunTally;
  readonly workerName: string;
  readonly fence: Fence;
  readonly slowSteps: SlowSteps;
  readonly watchdog: WorkerWatchdog | null;
  readonly leaseMs: number;
  readonly virtualClock: (() => number) | null;
  readonly maxDeliveries: number;
  readonly replayGraceMs: number;
  readonly graceMs: number;
  readonly recheckPausedMs: number | null;
  /** The slots that the runs of this session hold; null if no workflow of the worker has limits. */
  readonly slots: SlotKeeper | null;
  /** Called with lanes that have free slots, on which runs wait. */
  readonly onSlotsFreed: (freed: readonly FreedSlots[]) => void;
  /** Called when slots may have to be offered within this time to runs that no worker executes. */
  readonly onOfferDue: (inMs: number) => void;
  definition(workflow: string, version: string): WorkflowDefinition;
  canExecute(route: string, version: string): boolean;
  allowsInterruptions(): boolean;
  hasWaitingRuns(): boolean;
  /** Called when a top-level step has completed or was skipped; null except in tests. */
  readonly onStepEnded: ((turn: HostedTurn) => void) | null;
  readonly onError: ErrorReporter | null;
  findRegistration(name: string): Promise<WorkflowSummary | null>;
  jobInfo(job: string): Promise<JobInfo>;
  /** Called when the connection failed during a commit, so that it is unknown which runs the session still owns. */
  onUncertain(): void;
  /** Called when the store reports that the fence is no longer valid. */
  onLost(): void;
  /** Called when the session released a run, so that a slot is free. `parking` is set if the run was parked until `dueAt`. */
  onRunReleased(parking: { readonly dueAt: number; readonly now: number } | null): void;
}
