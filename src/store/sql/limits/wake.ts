/** Unblocks classes when their lane has free slots again. None of this runs in a transaction. */
import { laneOf } from "../../../core/limits/lane.js";
import type { FreedSlots } from "../../contract/limits.js";
import { buildStatement, type LimitsDialect, type SqlText } from "./dialect.js";

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

/** Returns how many classes were unblocked. */
export async function wakeLanes(d: LimitsDialect, run: RunStatements, freed: readonly FreedSlots[]): Promise<number> {
  const lanes = [...freed].sort((a, b) => (a.lane < b.lane ? -1 : 1));
  if (lanes.length === 0) return 0;
  const ids = lanes.map(({ lane }) => lane);
  if (d.lock.share !== "") await run([waitForLanes(d, ids)]);
  const [only] = lanes;
  const { unblockFirst } = d;
  if (unblockFirst !== null && lanes.length === 1 && only?.count === 1) {
    // One row cannot be part of a deadlock, so it is found and updated at once.
    const [rows = []] = await run([buildStatement(d.base, (bind) => unblockFirst(only.lane, bind))]);
    return rows.length;
  }
  const blocked = await run(
    d.forEach(
      [
        ["v_lane", "text"],
        ["v_count", "number"],
      ],
      lanes.map(({ lane, count }) => [lane, Math.min(count, maxWokenPerLane)]),
      (columnOf) =>
        `SELECT c.id FROM ${d.base.table("classes")} c WHERE c.blocked_on = ${columnOf("v_lane")} ORDER BY c.turn LIMIT ${columnOf("v_count")}`,
    ),
  );
  const classIds = blocked.flat().map((row) => row.id as string);
  if (classIds.length === 0) return 0;
  await run([
    buildStatement(d.base, (bind) => {
      const isFound = d.isOneOf("id", classIds.sort(), bind);
      return `UPDATE ${d.base.table("classes")} SET blocked_on = '' WHERE ${isFound} AND ${d.isOneOf("blocked_on", ids, bind)}`;
    }),
  ]);
  return classIds.length;
}

/** More classes than an admission looks at need not be unblocked at a time: an admission names the lanes that still have room. */
const maxWokenPerLane = 256;

/** Finds the lanes with free slots on which classes are blocked. It jumps from lane to lane through the index. */
export async function findWakeableLanes(d: LimitsDialect, run: RunStatements): Promise<readonly FreedSlots[]> {
  const found: FreedSlots[] = [];
  let previous = "";
  for (;;) {
    const after = previous;
    const [rows = []] = await run([
      buildStatement(
        d.base,
        (bind) =>
          `SELECT c.blocked_on AS lane FROM ${d.base.table("classes")} c WHERE c.blocked_on > ${bind(after)} ORDER BY c.blocked_on LIMIT 1`,
      ),
    ]);
    const lane = rows[0]?.lane as string | undefined;
    if (lane === undefined) return found;
    const [stateRows = []] = await run([selectRoom(d, lane)]);
    const [state] = stateRows;
    const concurrency =
      state === undefined ? 0 : state.concurrency === null ? Number.POSITIVE_INFINITY : Number(state.concurrency);
    const count = concurrency - Number(state?.in_use ?? 0);
    if (count > 0) found.push({ lane, count });
    previous = lane;
  }
}

const selectRoom = (d: LimitsDialect, lane: string): SqlText =>
  buildStatement(d.base, (bind) => {
    const inUse = `(SELECT count(*) FROM ${d.base.table("slots")} s WHERE s.lane = ${bind(lane)})`;
    return `SELECT m.concurrency, ${inUse} AS in_use FROM ${d.base.table("limits")} m WHERE m.name = ${bind(laneOf(lane).limit)}`;
  });
