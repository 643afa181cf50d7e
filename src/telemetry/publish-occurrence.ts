/** Publishes what became of the occurrences of schedules, on the channel `pawl:occurrence` and to the log at level debug. */
import type { Occurrence } from "../core/schedule/schedule-data.js";
import type { Logger } from "../define/context.js";
import { safeChannel } from "./safe-channel.js";
import { isDebugEnabled, logWithFields } from "./safe-logger.js";

/** What became of an occurrence of a schedule, published on the channel `pawl:occurrence` when it is durable. */
export interface OccurrenceChange {
  /** The name of the schedule. */
  readonly schedule: string;
  /** The id of the occurrence, which is that of its run if it has one. */
  readonly id: string;
  /** The instant, in epoch milliseconds; of consecutive skipped ones, the last. */
  readonly scheduledFor: number;
  /** "ran", "buffered", "skipped_overlap" … */
  readonly outcome: Occurrence["outcome"];
  /** How many occurrences this became of: consecutive ones that are skipped for the same reason may be told together. */
  readonly count: number;
  /** How late it was decided, in milliseconds. */
  readonly latenessMs: number;
  /** The store's time, in epoch milliseconds. */
  readonly at: number;
}

const channel = safeChannel("pawl:occurrence");

/** @param count how many occurrences this became of now; the row may also stand for earlier ones */
export function publishOccurrence(log: Logger, schedule: string, occurrence: Occurrence, count: number): void {
  const { id, scheduledUntil: scheduledFor, outcome, at, detail } = occurrence;
  if (channel.hasSubscribers) {
    const latenessMs = detail.latenessMs ?? 0;
    const message: OccurrenceChange = { schedule, id, scheduledFor, outcome, count, latenessMs, at };
    channel.publish(message);
  }
  if (!isDebugEnabled(log)) return;
  const instant = new Date(scheduledFor).toISOString();
  logWithFields(log, "debug", { schedule, outcome }, `Schedule "${schedule}", occurrence of ${instant}: ${outcome}`);
}
