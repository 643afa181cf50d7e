/** A schedule as it is stored, with its definition and state as objects. */
import { DamagedDataError } from "../../core/errors/errors.js";
import { jitterOf } from "../../core/schedule/instants.js";
import type { Occurrence, ScheduleData, ScheduleState } from "../../core/schedule/schedule-data.js";
import type { OccurrenceRecord, ScheduleChange, ScheduleRecord } from "../../store/contract/store.js";

export interface StoredSchedule {
  readonly record: ScheduleRecord;
  readonly data: ScheduleData;
  readonly state: ScheduleState;
}

/** @throws DamagedDataError when the row cannot be read */
export const toStoredSchedule = (record: ScheduleRecord): StoredSchedule => ({
  record,
  data: parseColumn<ScheduleData>(record, "definition"),
  state: parseColumn<ScheduleState>(record, "state"),
});

function parseColumn<T>(record: ScheduleRecord, column: "definition" | "state"): T {
  try {
    const value: unknown = JSON.parse(record[column]);
    if (typeof value === "object" && value !== null) return value as T;
  } catch {
    // The error below says what is wrong.
  }
  throw new DamagedDataError({ of: `Schedule "${record.name}"`, column, problem: "it is not the JSON of an object" });
}

/** When an occurrence of this instant is due: the instant and its jitter. */
export const dueAtOf = (name: string, { jitterMs }: ScheduleData, instant: number): number =>
  instant + jitterOf(name, instant, jitterMs);

/**
 * Whether the schedule waits to be looked at, perhaps because a run of it has ended. A change that plans the next look must
 * not move that look away, or what waits for the end of the run would not begin.
 */
export const isDue = ({ record }: StoredSchedule, now: number): boolean =>
  record.nextAt !== null && record.nextAt <= now;

export const toOccurrenceRecord = (
  { name: schedule, incarnation }: Pick<ScheduleRecord, "name" | "incarnation">,
  occurrence: Occurrence,
): OccurrenceRecord => ({ ...occurrence, schedule, incarnation });

/** A change of a schedule that exists. Fields of the record that are left out keep their values. */
export function changeOf(
  { record }: StoredSchedule,
  changes: Partial<Omit<ScheduleRecord, "state" | "definition">> & {
    readonly state?: ScheduleState;
    readonly data?: ScheduleData;
  },
  writes: Partial<Pick<ScheduleChange, "occurrences" | "starts">> = {},
): ScheduleChange {
  const { state, data, ...fields } = changes;
  const row: ScheduleRecord = {
    ...record,
    ...fields,
    ...(state === undefined ? {} : { state: JSON.stringify(state) }),
    ...(data === undefined ? {} : { definition: JSON.stringify(data), workflow: data.workflow }),
  };
  return { name: record.name, expectedRevision: record.revision, row, occurrences: [], starts: [], ...writes };
}
