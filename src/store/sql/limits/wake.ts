/** Unblocks classes when their lane has free slots again, and cleans up. None of this runs in a transaction. */
import { wakeableIn } from "../../../core/limits/lane-state.js";
import type { FreedSlots } from "../../contract/limits.js";
import { isBlockedOn } from "./classes.js";
import { buildStatement, type LimitsDialect, type SqlText } from "./dialect.js";
import { decodeList } from "./guarded-lanes.js";
import { decodeLaneStates, selectLaneStates } from "./lanes.js";

/** Sends statements that each commit by themselves, and returns the rows of each. */
export type RunStatements = (
  statements: readonly SqlText[],
) => Promise<readonly (readonly Record<string, unknown>[])[]>;

/**
 * Waits for the admissions that hold one of these lanes: they have counted its slots before these were freed, and may be
 * about to block a class. A later statement sees what they have committed.
 */
const waitForLanes = (d: LimitsDialect, ids: readonly string[]): SqlText =>
  buildStatement(
    d.base,
    (bind) =>
      `SELECT l.id FROM ${d.base.table("lanes")} l WHERE ${d.isOneOf("l.id", ids, bind)} ORDER BY l.id ${d.lock.share}`,
  );

/** Whether steps wait in one of the lanes. */
const selectWaitingSteps = (d: LimitsDialect, ids: readonly string[]): SqlText =>
  buildStatement(
    d.base,
    (bind) =>
      `SELECT s.lane FROM ${d.base.table("slots")} s WHERE ${d.isOneOf("s.lane", ids, bind)} AND s.waits = 1 LIMIT 1`,
  );

export interface Woken {
  /** How many classes were unblocked. */
  readonly classCount: number;
  /** Whether steps wait in one of the lanes. */
  readonly hasWaitingSteps: boolean;
}

export async function wakeLanes(d: LimitsDialect, run: RunStatements, freed: readonly FreedSlots[]): Promise<Woken> {
  const lanes = [...freed].sort((a, b) => (a.lane < b.lane ? -1 : 1));
  if (lanes.length === 0) return { classCount: 0, hasWaitingSteps: false };
  const ids = lanes.map(({ lane }) => lane);
  if (d.lock.share !== "") await run([waitForLanes(d, ids)]);
  const [stepRows = [], ...blocked] = await run([
    selectWaitingSteps(d, ids),
    ...d.forEach(
      [
        ["v_lane", "text"],
        ["v_count", "number"],
      ],
      lanes.map(({ lane, count }) => [lane, Math.min(count, maxWokenPerLane)]),
      (columnOf) =>
        `SELECT c.id FROM ${d.base.table("classes")} c WHERE ${isBlockedOn(columnOf("v_lane"))} ORDER BY c.turn LIMIT ${columnOf("v_count")}`,
    ),
  ]);
  const hasWaitingSteps = stepRows.length > 0;
  const classIds = blocked.flat().map((row) => row.id as string);
  if (classIds.length === 0) return { classCount: 0, hasWaitingSteps };
  await run([
    buildStatement(d.base, (bind) => {
      const isFound = d.isOneOf("id", classIds.sort(), bind);
      return `UPDATE ${d.base.table("classes")} SET blocked_on = '' WHERE ${isFound} AND ${d.isOneOf("blocked_on", ids, bind)}`;
    }),
  ]);
  return { classCount: classIds.length, hasWaitingSteps };
}

/** More classes than an admission looks at need not be unblocked at a time: an admission names the lanes that still have room. */
const maxWokenPerLane = 256;

const lanesPerPage = 100;
const blockedPerRead = 500;

/** Finds the lanes with room for classes that are blocked on them, however many classes are blocked on each. */
export async function findWakeableLanes(d: LimitsDialect, run: RunStatements): Promise<readonly FreedSlots[]> {
  const waitedFor = new Set<string>();
  for (let after: string | null = ""; after !== null; ) {
    const from: string = after;
    const [rows = []] = await run([
      buildStatement(
        d.base,
        (bind) =>
          `SELECT c.blocked_on AS lane FROM ${d.base.table("classes")} c WHERE c.blocked_on > ${bind(from)} AND c.blocked_on <> '' ORDER BY c.blocked_on LIMIT ${blockedPerRead}`,
      ),
    ]);
    for (const row of rows) waitedFor.add(row.lane as string);
    // The next read passes over the other classes that are blocked on the last lane.
    after = rows.length < blockedPerRead ? null : (rows.at(-1)?.lane as string);
  }
  const found: FreedSlots[] = [];
  const ids = [...waitedFor].sort();
  for (let from = 0; from < ids.length; from += lanesPerPage) {
    const page = ids.slice(from, from + lanesPerPage);
    const [rows = []] = await run([selectLaneStates(d, page, [])]);
    const { at, lanes } = decodeLaneStates(rows, page);
    for (const lane of lanes.values()) {
      const count = wakeableIn(lane, at);
      if (count > 0) found.push({ lane: lane.id, count });
    }
  }
  return found;
}

/** How many lanes one call looks at, and how many slots it removes. */
const tidiedPerCall = 500;

/**
 * Removes slots of runs that have ended, which exist if a release without the limit ended a run that held one until its end,
 * and lanes in which nothing is held, waits or is paced. A lane that is used meanwhile loses nothing, because its row is only a
 * lock and a pace, and the pace is checked again.
 *
 * @param afterLane where the last call stopped; "" to begin with the first lane
 */
export async function removeLeftOvers(
  d: LimitsDialect,
  run: RunStatements,
  afterLane: string,
): Promise<{ readonly freed: readonly FreedSlots[]; readonly lastLane: string }> {
  const table = (name: "slots" | "lanes" | "tasks" | "classes") => d.base.table(name);
  const isUnpaced = (bind: (value: unknown) => string) =>
    `opens_at IS NULL AND looks_at IS NULL AND paced_until < ${d.base.now(bind)} * 1000`;
  const [leftRows = [], laneRows = []] = await run([
    buildStatement(
      d.base,
      () => `SELECT s.run_id, s.lane FROM ${table("slots")} s WHERE s.owner IS NULL
        AND NOT EXISTS (SELECT 1 FROM ${table("tasks")} t WHERE t.run_id = s.run_id) LIMIT ${tidiedPerCall}`,
    ),
    buildStatement(
      d.base,
      (bind) => `SELECT l.id, l.waiting_classes, CASE WHEN ${isUnpaced(bind)}
          AND NOT EXISTS (SELECT 1 FROM ${table("slots")} s WHERE s.lane = l.id)
          AND NOT EXISTS (SELECT 1 FROM ${table("classes")} c WHERE ${isBlockedOn("l.id")}) THEN 1 ELSE 0 END AS unused
        FROM ${table("lanes")} l WHERE l.id > ${bind(afterLane)} ORDER BY l.id LIMIT ${tidiedPerCall}`,
    ),
  ]);
  const unusedRows = laneRows.filter((row) => Number(row.unused) === 1);
  const unused = unusedRows.filter((row) => row.waiting_classes === null).map((row) => row.id as string);
  await forgetGoneClasses(
    d,
    run,
    unusedRows.filter((row) => row.waiting_classes !== null),
  );
  const runIds = [...new Set(leftRows.map((row) => row.run_id as string))].sort();
  await run([
    ...(runIds.length === 0
      ? []
      : [
          buildStatement(
            d.base,
            (bind) => `DELETE FROM ${table("slots")} WHERE ${d.base.oneOf("run_id", runIds, bind)} AND owner IS NULL`,
          ),
        ]),
    ...(unused.length === 0
      ? []
      : [
          buildStatement(
            d.base,
            (bind) =>
              `DELETE FROM ${table("lanes")} WHERE ${d.isOneOf("id", unused, bind)} AND ${isUnpaced(bind)} AND waiting_classes IS NULL`,
          ),
        ]),
  ]);
  return {
    freed: leftRows.map((row) => ({ lane: row.lane as string, count: 1 })),
    lastLane: laneRows.length < tidiedPerCall ? "" : (laneRows.at(-1)?.id as string),
  };
}

/** A lane that lists classes is left alone until none of them exists. What it lists may have changed since it was read. */
async function forgetGoneClasses(
  d: LimitsDialect,
  run: RunStatements,
  lanes: readonly Record<string, unknown>[],
): Promise<void> {
  const idsOf = (row: Record<string, unknown>) => decodeList(row.waiting_classes).map(({ id }) => id);
  const ids = [...new Set(lanes.flatMap(idsOf))].sort();
  if (ids.length === 0) return;
  const [rows = []] = await run([
    buildStatement(
      d.base,
      (bind) => `SELECT c.id FROM ${d.base.table("classes")} c WHERE ${d.isOneOf("c.id", ids, bind)}`,
    ),
  ]);
  const existing = new Set(rows.map((row) => row.id as string));
  const left = lanes.filter((row) => !idsOf(row).some((id) => existing.has(id)));
  await run(
    left.map((row) =>
      buildStatement(
        d.base,
        (bind) =>
          `UPDATE ${d.base.table("lanes")} SET waiting_classes = NULL WHERE id = ${bind(row.id)} AND waiting_classes = ${bind(row.waiting_classes)}`,
      ),
    ),
  );
}
