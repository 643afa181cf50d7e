/** Finds the schedules that are late: for metrics, and for `pawl doctor`. */
import type { Store } from "../../store/contract/store.js";
import { type ScheduleInfo, toScheduleInfo } from "./schedule-info.js";

/** Not all schedules that must be looked at are late: the run of one may just have ended. */
const examinedPerLate = 5;

/** The schedules that are late, the latest first. Schedules that are not in force are not late. */
export async function findLateSchedules(store: Store, limit: number): Promise<ScheduleInfo[]> {
  const setKeys = [...new Set(["", ...(await store.schedules.setKeysInForce())])];
  const due = await store.schedules.due({ setKeys, limit: limit * examinedPerLate });
  if (due === null) return [];
  const counts = await store.schedules.pendingCounts(due.schedules.map(({ name }) => name));
  return due.schedules
    .map((record) => toScheduleInfo(record, counts, due.now))
    .filter(({ lateMs }) => lateMs > 0)
    .sort((a, b) => b.lateMs - a.lateMs)
    .slice(0, limit);
}
