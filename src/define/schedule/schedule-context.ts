/** `ctx.schedule`, and how it is read from the row of a run. */
import { readGathering } from "../../core/gathering/run-gathering.js";
import type { RunSchedule } from "../../core/schedule/schedule-data.js";

/** `ctx.schedule`: the occurrence of a schedule that a run stands for. */
export interface ScheduleContext {
  /** The name of the schedule. */
  readonly name: string;
  /** The instant that the run stands for. */
  readonly scheduledFor: Date;
  /** When the run was created: after `scheduledFor`, by jitter, downtime, or because it had to wait for another run. */
  readonly firedAt: Date;
  /** How many earlier occurrences, which did not run, it stands for. */
  readonly missed: number;
  /** Whether `pawl.schedules.trigger()` started it. */
  readonly manual: boolean;
  /** Whether it is part of a backfill. */
  readonly backfill: boolean;
}

/**
 * A new object for each call, so that no code sees what other code has changed in it.
 *
 * @param text the JSON of a `RunSchedule`; undefined, or that of a `RunGathering`: the run belongs to no schedule
 */
export function toScheduleContext(text: string | undefined): ScheduleContext | null {
  if (text === undefined || readGathering(text) !== null) return null;
  const { name, scheduledFor, firedAt, missed, manual = false, backfill = false } = JSON.parse(text) as RunSchedule;
  return { name, scheduledFor: new Date(scheduledFor), firedAt: new Date(firedAt), missed, manual, backfill };
}
