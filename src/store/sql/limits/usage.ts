/** What people ask about limits: how much of them is used, by whom, and what waits. Every statement reads a bounded part of an index. */
import { laneRangeOf, type RunClass } from "../../../core/limits/lane.js";
import type { ClassRecord, Limits, LimitUsage, SlotRecord } from "../../contract/limits.js";
import { taskState } from "../records.js";
import { isBlockedOn } from "./classes.js";
import { buildStatement, joined, type LimitsDialect } from "./dialect.js";
import { classColumns, decodeClassRecord, decodeSlotRecord, type Read, slotColumns } from "./reads.js";

export async function readUsage(
  d: LimitsDialect,
  read: Read,
  names: readonly string[],
  cap: number,
): Promise<readonly LimitUsage[]> {
  const results = await read(
    joined(
      d.forEach(
        [
          ["v_from", "text"],
          ["v_to", "text"],
        ],
        names.map((name) => laneRangeOf(name)),
        (columnOf) =>
          `SELECT ${columnOf("n")} AS n, count(*) AS total, count(x.waits) - coalesce(sum(x.waits), 0) AS held FROM (SELECT s.waits FROM ${d.base.table("slots")} s
            WHERE s.lane >= ${columnOf("v_from")} AND s.lane < ${columnOf("v_to")} LIMIT ${cap}) x`,
      ),
    ),
  );
  const rows = new Map(results.flat().map((row) => [Number(row.n), row]));
  return names.map((name, index) => {
    const row = rows.get(index + 1);
    const total = Number(row?.total ?? 0);
    const inUse = Number(row?.held ?? 0);
    return { name, inUse, waitingSteps: total - inUse, isCapped: total >= cap };
  });
}

export async function readHolders(
  d: LimitsDialect,
  read: Read,
  lanes: readonly string[],
  limit: number,
): Promise<readonly SlotRecord[]> {
  const results = await read(
    joined(
      d.forEach(
        [["v_lane", "text"]],
        lanes.map((lane) => [lane]),
        (columnOf) =>
          `SELECT ${slotColumns} FROM ${d.base.table("slots")} s WHERE s.lane = ${columnOf("v_lane")} AND s.waits = 0
            ORDER BY s.at, s.run_id, s.node LIMIT ${limit}`,
      ),
    ),
  );
  return results.flat().map(decodeSlotRecord);
}

export async function readBlockedClasses(
  d: LimitsDialect,
  read: Read,
  on: Parameters<Limits["blockedClasses"]>[0],
  limit: number,
): Promise<readonly ClassRecord[]> {
  const select = `SELECT ${classColumns} FROM ${d.base.table("classes")} c WHERE`;
  const statements =
    "limits" in on
      ? d.forEach(
          [
            ["v_from", "text"],
            ["v_to", "text"],
          ],
          on.limits.map((name) => laneRangeOf(name)),
          (columnOf) =>
            `${select} c.blocked_on >= ${columnOf("v_from")} AND c.blocked_on < ${columnOf("v_to")} AND c.blocked_on <> '' ORDER BY c.blocked_on, c.turn LIMIT ${limit}`,
        )
      : "nothing" in on
        ? // In the order of the index of open classes.
          [{ text: `${select} c.blocked_on = '' ORDER BY c.route, c.version, c.turn LIMIT ${limit}`, values: [] }]
        : d.forEach(
            [["v_lane", "text"]],
            on.lanes.map((lane) => [lane]),
            (columnOf) => `${select} ${isBlockedOn(columnOf("v_lane"))} ORDER BY c.turn LIMIT ${limit}`,
          );
  return (await read(joined(statements))).flat().map(decodeClassRecord);
}

export async function readHeads(
  d: LimitsDialect,
  read: Read,
  { id, version }: Pick<RunClass, "id" | "version">,
  limit: number,
): Promise<readonly string[]> {
  const { column, order } = d.base.readyRank;
  const [rows = []] = await read([
    buildStatement(
      d.base,
      (bind) =>
        `SELECT ${d.base.idAsText("t.run_id")} AS run_id FROM ${d.tasksByRoute} WHERE t.state = ${taskState.ready}
          AND t.workflow = ${bind(id)} AND t.version = ${bind(version)} ORDER BY ${column} ${order}, t.due_at LIMIT ${limit}`,
    ),
  ]);
  return rows.map((row) => row.run_id as string);
}
