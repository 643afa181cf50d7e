/** The gauges of the queues. They describe the whole database, whichever process reads them. */
import type { RunSource } from "./run-cache.js";

/** The part of `Pawl` that metrics use. */
export interface MetricsSource extends RunSource {
  /** The queues of the database, as `pawl.queues` returns them. */
  queues(): Promise<readonly MeasuredQueue[]>;
}

interface MeasuredQueue {
  readonly name: string;
  readonly depth: number;
  readonly oldestAgeMs: number | null;
  readonly executing: number;
  readonly workers: readonly string[];
  readonly paused: object | null;
}

interface QueueGauge {
  readonly name: string;
  readonly help: string;
  readonly unit?: "s";
  read(queue: MeasuredQueue): number;
}

export const queueGauges: readonly QueueGauge[] = [
  {
    name: "depth",
    help: "Runs that are due and that no worker executes; at most about 10,000 of each workflow are counted.",
    read: ({ depth }) => depth,
  },
  {
    name: "oldest_age",
    help: "How long the oldest of them has been due.",
    unit: "s",
    read: ({ oldestAgeMs }) => (oldestAgeMs ?? 0) / 1_000,
  },
  {
    name: "executing",
    help: "Runs that are being executed, as of the last heartbeats of the workers.",
    read: ({ executing }) => executing,
  },
  { name: "workers", help: "Live workers that take runs from the queue.", read: ({ workers }) => workers.length },
  { name: "paused", help: "1 while the queue is paused.", read: ({ paused }) => (paused === null ? 0 : 1) },
];
