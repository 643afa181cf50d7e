/** Which lanes must be looked at, because runs wait in them that no worker executes. Reads without locks. */
import { buildStatement, type LimitsDialect } from "./dialect.js";
import type { Read } from "./reads.js";

/** One transaction looks at so many lanes, which it locks. */
const lanesPerLook = 20;

/** The earliest look at any lane, for heartbeats: the first entry of an index. */
export const nextLookSql = (table: string): string => `(SELECT min(l.looks_at) FROM ${table} l WHERE l.looks_at > 0)`;

export interface Looks {
  readonly at: number;
  readonly dueLanes: readonly string[];
  /** When the next look is due; null if there is none. */
  readonly nextAt: number | null;
}

export async function readLooks(d: LimitsDialect, read: Read): Promise<Looks> {
  const [rows = []] = await read([
    buildStatement(
      d.base,
      (bind) => `SELECT x.at, l.id, l.looks_at FROM (SELECT ${d.base.now(bind)} AS at) x LEFT JOIN
        (SELECT i.id, i.looks_at FROM ${d.base.table("lanes")} i WHERE i.looks_at IS NOT NULL ORDER BY i.looks_at LIMIT ${lanesPerLook}) l ON 1 = 1
        ORDER BY l.looks_at`,
    ),
  ]);
  const at = Number(rows[0]?.at);
  const lanes = rows.filter((row) => typeof row.id === "string");
  const due = lanes.filter((row) => Number(row.looks_at) <= at);
  return {
    at,
    dueLanes: due.map((row) => row.id as string),
    nextAt: lanes.length === 0 ? null : Number(lanes[0]?.looks_at),
  };
}

/** Of these lanes, those in which runs wait that no worker executes. */
export async function readParkedLanes(
  d: LimitsDialect,
  read: Read,
  ids: readonly string[],
): Promise<readonly string[]> {
  if (ids.length === 0) return [];
  const [rows = []] = await read([
    buildStatement(
      d.base,
      (bind) =>
        `SELECT l.id FROM ${d.base.table("lanes")} l WHERE ${d.isOneOf("l.id", [...ids].sort(), bind)} AND l.looks_at IS NOT NULL`,
    ),
  ]);
  return rows.map((row) => row.id as string);
}
