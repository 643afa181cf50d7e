/** The contents of the tables at moments in between, to be compared with the contents at the end. */
import { createHash } from "node:crypto";
import type { RawSql } from "../support/raw-sql.js";

export interface Snapshot {
  readonly at: number;
  /** The digest of each row of the log, by "run seq". */
  readonly rows: ReadonlyMap<string, string>;
  /** The digest of the row of each run that had ended, by its id. */
  readonly endings: ReadonlyMap<string, string>;
}

export async function takeSnapshot(sql: RawSql): Promise<Snapshot> {
  const events = await sql.query("SELECT run_id, seq, span, type, node, attempt, outcome, data, at FROM pawl_events");
  const runs = await sql.query(
    "SELECT id, status, output, error, started_at, finished_at FROM pawl_runs WHERE finished_at IS NOT NULL",
  );
  return {
    at: Date.now(),
    rows: new Map(events.map((row) => [`${row.run_id} ${row.seq}`, digest(row)])),
    endings: new Map(runs.map((row) => [String(row.id), digest(row)])),
  };
}

const digest = (row: object): string => createHash("sha1").update(JSON.stringify(row)).digest("base64");
