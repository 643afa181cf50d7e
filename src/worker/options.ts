/** The options of a worker, and their checks. */
import { InvalidInputError } from "../core/errors/request-errors.js";
import type { Duration } from "../core/naming/duration.js";
import type { JobDefinition } from "../define/dynamic/job.js";
import type { AnyWorkflow } from "../define/resolve.js";
import type { ScheduleDefinition } from "../define/schedule/schedule.js";

/**
 * The options of `pawl.worker()`.
 *
 * @example
 * ```ts
 * const worker = pawl.worker({ workflows: [order], jobs: [resize], concurrency: 20, name: "orders-1" });
 * await worker.start();
 * ```
 */
export interface WorkerOptions {
  /** The workflows that the worker executes: definitions, classes and jobs. It executes no other workflows. Required. */
  readonly workflows: readonly AnyWorkflow[];
  /**
   * The jobs that the worker executes, besides those among `workflows`. A worker with any job, or with `jobs: []`, also
   * executes graphs that were built with `pawl.build()`. Default: none.
   */
  readonly jobs?: readonly JobDefinition[];
  /**
   * The schedules that the application declares: all of them, in every worker that declares any, because a schedule that the
   * newest list does not contain is retired. Default: this worker declares none, and fires only schedules that were put by
   * `pawl.schedules.put()`.
   */
  readonly schedules?: readonly ScheduleDefinition[];
  /**
   * The queues that the worker takes runs from. A workflow without a `queue` option has a queue of its own name. Default:
   * all queues of the worker's workflows.
   *
   * @example
   * ```ts
   * pawl.worker({ workflows: [order, report], queues: ["reports"] }); // runs only what is in the queue "reports"
   * ```
   */
  readonly queues?: readonly string[];
  /** How many runs the worker executes at a time. Runs that sleep or wait do not count. Default: 100. */
  readonly concurrency?: number;
  /** The name of the worker in `pawl.workers()` and in logs. Default: the host name and process id, `"host:1234"`. */
  readonly name?: string;
  /**
   * The port on which your process serves a health check or metrics, shown in `pawl.workers()`. Pawl itself does not listen
   * on it. Default: none.
   */
  readonly port?: number;
  /**
   * How long the worker may go without a heartbeat before other workers take its runs. It sends three heartbeats per lease.
   * Default: 10 seconds.
   */
  readonly lease?: Duration;
  /**
   * How often the worker polls the database for due runs when no notification arrives. With `Infinity` it relies on
   * notifications and timers only. Default: 1 second.
   */
  readonly poll?: Duration;
  /**
   * How long `stop()` waits for running steps, and how long a canceled run waits for its running steps. Default: 10 seconds.
   */
  readonly grace?: Duration;
  /** How many times in a row a worker may die while executing a run before that run is paused. Default: 5. */
  readonly maxDeliveries?: number;
  /**
   * How long the code of a run may take to repeat its recorded calls while nothing else is in progress. After that the run is
   * paused with a `NonDeterminismError`, because its code no longer matches its log. Default: 5 seconds.
   */
  readonly replayGrace?: Duration;
  /**
   * How often the worker deletes runs that are older than the `retention` and the records of dead workers; `Infinity`:
   * never. It checks for stuck runs at least every 5 minutes in any case. Default: 1 hour.
   */
  readonly housekeeping?: Duration;
}

export const knownOptions = new Set<string>([
  "workflows",
  "jobs",
  "schedules",
  "queues",
  "concurrency",
  "name",
  "port",
  "lease",
  "poll",
  "grace",
  "maxDeliveries",
  "replayGrace",
  "housekeeping",
] satisfies (keyof WorkerOptions)[]);

export function checkPort(port: number): number {
  if (Number.isInteger(port) && port > 0 && port <= 65_535) return port;
  throw new InvalidInputError(`A worker's port is a whole number from 1 to 65535, not ${String(port)}.`);
}
