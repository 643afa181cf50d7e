/** What a worker can be told. */
import { InvalidInputError } from "../core/errors/request-errors.js";
import type { Duration } from "../core/naming/duration.js";
import type { JobDefinition } from "../define/dynamic/job.js";
import type { AnyWorkflow } from "../define/resolve.js";
export interface WorkerOptions {
  readonly workflows: readonly AnyWorkflow[];
  /** What the nodes of graphs run here. With any, even none, the worker also takes care of graphs that were built at run time. */
  readonly jobs?: readonly JobDefinition[];
  /** Take only runs that are in one of these queues; default: all queues of its workflows. */
  readonly queues?: readonly string[];
  /** How many runs may be executed at a time; default 100. Runs that wait do not count. */
  readonly concurrency?: number;
  readonly name?: string;
  /** Where its process can be asked how it is (a health check, metrics); others see it in `pawl.workers()`. */
  readonly port?: number;
  /** How long it may be silent before others take its runs; default 10 s. */
  readonly lease?: Duration;
  /** How often it looks for work without being told; default 1 s, `Infinity` never (then wake-ups must do). */
  readonly poll?: Duration;
  /** How long `stop` waits for running steps; default 10 s. */
  readonly grace?: Duration;
  /** How often a run may take its worker down before it is paused; default 5. */
  readonly maxDeliveries?: number;
  /**
   * How long the code of a run may take to come to the steps that its log has, once nothing else moves, before the run is
   * paused because code and log do not fit; default 5 s.
   */
  readonly replayGrace?: Duration;
  /** How often it does its share of the housekeeping (retention, dead workers, stuck runs); default 1 hour, `Infinity` never. */
  readonly housekeeping?: Duration;
}

export const knownOptions = new Set<string>([
  "workflows",
  "jobs",
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
