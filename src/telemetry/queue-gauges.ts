/** The gauges of queues and schedules. They describe the whole database, whichever process reads them. */
import type { RunSource } from "./run-cache.js";

/** The part of `Pawl` that metrics use. */
export interface MetricsSource extends RunSource {
  /** The queues of the database, as `pawl.queues` returns them. */
  queues(): Promise<readonly MeasuredQueue[]>;
  /** The schedules of the database, as `pawl.schedules` reads them. */
  readonly schedules?: {
    /** The schedules that are late, the latest first. */
    late(limit: number): Promise<readonly LateSchedule[]>;
  };
}

interface LateSchedule {
  readonly name: string;
  readonly lateMs: number;
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

/** How many schedules have a series of their own; the others are in the maximum. */
const maxLateSchedules = 20;

export const scheduleLag = {
  name: "schedule_lag",
  help: "How late schedules are that should have fired: the latest of them by name, and without a name the maximum.",
} as const;

/** The latest schedules by name in seconds, and the maximum of all without one, which is 0 when none is late. */
export async function readScheduleLags({
  schedules,
}: MetricsSource): Promise<readonly { readonly schedule: string | null; readonly seconds: number }[]> {
  if (schedules === undefined) return [];
  const late = await schedules.late(maxLateSchedules);
  const seconds = late.map(({ name, lateMs }) => ({ schedule: name, seconds: lateMs / 1_000 }));
  return [{ schedule: null, seconds: Math.max(0, ...seconds.map((lag) => lag.seconds)) }, ...seconds];
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
