/** What is worth watching of the queues: of the whole database, whichever process is asked. */
import type { RunSource } from "./run-cache.js";

/** What figures are asked of Pawl for. */
export interface MetricsSource extends RunSource {
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
  { name: "depth", help: "Runs that are due and that nobody executes.", read: ({ depth }) => depth },
  {
    name: "oldest_age",
    help: "For how long the first of them has been due.",
    unit: "s",
    read: ({ oldestAgeMs }) => (oldestAgeMs ?? 0) / 1_000,
  },
  { name: "executing", help: "Runs that are being executed.", read: ({ executing }) => executing },
  { name: "workers", help: "Live workers that take runs from it.", read: ({ workers }) => workers.length },
  { name: "paused", help: "1 while somebody has paused it.", read: ({ paused }) => (paused === null ? 0 : 1) },
];
