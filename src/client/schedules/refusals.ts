/** Why a command to a schedule is refused. */
import { InvalidStateError, ScheduleNotFoundError } from "../../core/errors/errors.js";
import type { StoredSchedule } from "./stored-schedule.js";

export const changesConstantly = (name: string) =>
  new InvalidStateError(`Schedule "${name}" was changed by other processes again and again; try once more.`);

export function assertFound(name: string, schedule: StoredSchedule | null): StoredSchedule {
  if (schedule === null) throw new ScheduleNotFoundError(name);
  return schedule;
}

export function assertFires({ record }: StoredSchedule, action: string): void {
  const { name, status, app } = record;
  if (status === "retired")
    throw new InvalidStateError(
      `Schedule "${name}" cannot be ${action}: it is retired, because the code of application "${app}" does not contain it.`,
    );
  if (status === "ended")
    throw new InvalidStateError(`Schedule "${name}" cannot be ${action}: it has ended and has no further occurrences.`);
}
