/** Reads `ctx.schedule` from the row of a run. */
import type { RunSchedule } from "../../core/schedule/schedule-data.js";
import type { ScheduleContext } from "../context.js";

/** @param text the JSON of a `RunSchedule` */
export function toScheduleContext(text: string): ScheduleContext {
  const { name, scheduledFor, firedAt, missed, manual = false, backfill = false } = JSON.parse(text) as RunSchedule;
  return { name, scheduledFor: new Date(scheduledFor), firedAt: new Date(firedAt), missed, manual, backfill };
}
