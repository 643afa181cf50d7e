/** What a worker gets from the composition root. */
import type { Logger } from "../define/context.js";
import type { ErrorReporter, WorkflowDefinition } from "../define/definition.js";
import type { ScheduleDefinition } from "../define/schedule/schedule.js";
import type { Runtime } from "../runtime/runtime.js";
import type { Store } from "../store/contract/store.js";
import type { RunTally } from "../telemetry/run-tally.js";
import type { TimedWorkService } from "./session/timed-work.js";
import type { WorkflowSummary } from "./turn/turn-host.js";
import type { StoreAddress } from "./watchdog/watchdog.js";

/** The services that `connect.ts` provides to a worker. */
export interface WorkerServices {
  readonly runtime: Runtime;
  readonly store: Store;
  readonly log: Logger;
  readonly tally: RunTally;
  readonly newId: () => string;
  /** Stores the registrations of the worker's workflows. */
  register(definitions: readonly WorkflowDefinition[]): Promise<void>;
  /** Reads the registration of a workflow by its name; null: it was never registered. */
  findRegistration(name: string): Promise<WorkflowSummary | null>;
  readonly onError: ErrorReporter | null;
  /** How long a run that a `PauseError` has paused waits for its signal before the step runs once more; null: forever. */
  readonly recheckPausedMs: number | null;
  /** How the watchdog's thread opens the database; null if it cannot, which turns the watchdog off. */
  readonly storeAddress: StoreAddress | null;
  /** Deletes runs that are older than the retention; null: no retention is set. */
  readonly prune: ((stop: AbortSignal) => Promise<{ readonly runs: number }>) | null;
  /** Makes the service that fires schedules and cancels runs that have not begun in time. null: the worker declares none, and fires those that were put by the API. */
  createSchedules(definitions: readonly ScheduleDefinition[] | null): TimedWorkService;
}
