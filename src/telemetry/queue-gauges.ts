/** The gauges of queues, schedules and limits. They describe the whole database, whichever process reads them. */
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
  /** The limits of the database, as `pawl.limits` reads them. */
  readonly limits?: {
    /** The limits, by name. */
    list(): Promise<readonly MeasuredLimit[]>;
  };
}

interface MeasuredLimit {
  readonly name: string;
  readonly inForce: { readonly concurrency: number | null };
  readonly inUse: number;
  readonly waiting: number;
  readonly override: object | null;
}

interface LimitGauge {
  readonly name: string;
  readonly help: string;
  /** null: the limit has no such figure. */
  read(limit: MeasuredLimit): number | null;
}

/** How many limits have series of their own. Keys have none: there may be millions. */
const maxLimits = 200;

export const readLimits = async ({ limits }: MetricsSource): Promise<readonly MeasuredLimit[]> =>
  limits === undefined ? [] : (await limits.list()).slice(0, maxLimits);

export const limitGauges: readonly LimitGauge[] = [
  {
    name: "in_use",
    help: "Slots that are held, of all keys together; at most 10,000 are counted.",
    read: ({ inUse }) => inUse,
  },
  {
    name: "waiting",
    help: "Runs and steps that wait for a slot or for the rate, of all keys together; some hundred keys are counted.",
    read: ({ waiting }) => waiting,
  },
  {
    name: "concurrency",
    help: "The slots of each key that are in force; absent for a limit that has a rate only.",
    read: ({ inForce }) => inForce.concurrency,
  },
  { name: "overridden", help: "1 while an override is in force.", read: ({ override }) => (override === null ? 0 : 1) },
];

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
