/** The number of rows in each map. The memory that they take is not known. */
import type { DatabaseSize, TableName } from "../contract/size.js";
import type { MemoryRows } from "./rows.js";

export function sizeOf(
  rows: MemoryRows,
  others: Readonly<Record<"queues" | "figures" | "limits" | "lanes" | "classes" | "slots", number>>,
  cap: number,
): DatabaseSize {
  const counts: readonly (readonly [TableName, number])[] = [
    ["runs", rows.runs.size],
    ["tasks", rows.tasks.size],
    ["events", sum(rows.events.values(), ({ length }) => length)],
    ["inbox", sum(rows.inboxes.values(), ({ length }) => length)],
    ["cursors", sum(rows.cursors.values(), ({ size }) => size)],
    ["workers", rows.workers.size],
    ["workflows", rows.workflows.size],
    ["queues", others.queues],
    ["figures", others.figures],
    ["limits", others.limits],
    ["lanes", others.lanes],
    ["classes", others.classes],
    ["slots", others.slots],
    ["gatherings", rows.gatherings.size],
    ["gathered", rows.gathered.size],
    ["start_deadlines", rows.startDeadlines.size],
    ["schedules", rows.schedules.size],
    ["occurrences", rows.occurrences.size],
    ["schedule_apps", rows.scheduleApps.size],
  ];
  return {
    engine: "memory",
    version: null,
    bytes: null,
    freeBytes: null,
    tables: counts.map(([name, count]) => ({
      name,
      rows: Math.min(count, cap),
      rowsAre: count > cap ? "capped" : "exact",
      bytes: null,
      indexBytes: null,
    })),
    migrations: [],
  };
}

function sum<T>(values: Iterable<T>, sizeOfValue: (value: T) => number): number {
  let total = 0;
  for (const value of values) total += sizeOfValue(value);
  return total;
}
