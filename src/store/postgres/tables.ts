/** The names of the tables, quoted and with their schema, so that statements do not depend on the search path. */
import type { TableName } from "../contract/size.js";

export type Tables = Readonly<Record<TableName, string>> & { readonly schema: string };

/** Every name that is written into SQL must be quoted with this. */
export const quoteName = (name: string): string => `"${name.replaceAll('"', '""')}"`;

export function tablesIn(schema: string): Tables {
  const table = (name: TableName) => `${quoteName(schema)}.pawl_${name}`;
  return {
    schema,
    runs: table("runs"),
    tasks: table("tasks"),
    events: table("events"),
    inbox: table("inbox"),
    cursors: table("cursors"),
    workers: table("workers"),
    workflows: table("workflows"),
    queues: table("queues"),
    figures: table("figures"),
    limits: table("limits"),
    lanes: table("lanes"),
    classes: table("classes"),
    slots: table("slots"),
    gatherings: table("gatherings"),
    gathered: table("gathered"),
    start_deadlines: table("start_deadlines"),
    schedules: table("schedules"),
    occurrences: table("occurrences"),
    schedule_apps: table("schedule_apps"),
    migrations: table("migrations"),
  };
}
