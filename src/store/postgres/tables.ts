/** The names of the tables, each with its schema and quoted: nothing depends on a search path after the connect. */
import type { TableName } from "../sql/dialect.js";

export type Tables = Readonly<Record<TableName, string>> & { readonly schema: string };

/** The one safe way to put a name into SQL. */
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
    migrations: table("migrations"),
  };
}
