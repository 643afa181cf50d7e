/** Reads about limits, without locks. */
import { laneRangeOf } from "../../../core/limits/lane.js";
import type {
  ClassRecord,
  LaneRecord,
  Limits,
  SlotRecord,
  StoredLimit,
  UnsortedTask,
  UnsortedTasks,
} from "../../contract/limits.js";
import type { Route } from "../../contract/store.js";
import type { Bind, SqlRow } from "../dialect.js";
import { decodeRun, numberOrNull, runColumnsWith, taskState } from "../records.js";
import { buildStatement, joined, type LimitsDialect, type SqlText } from "./dialect.js";
import { decodeOverride, decodeSettings } from "./settings.js";

export type Read = (statements: readonly SqlText[]) => Promise<readonly (readonly SqlRow[])[]>;

const rowKind = { ready: 0, parked: 1, next: 2, open: 3 } as const;

/** Lanes that open at an instant are few: they are waited for, and their limit has a rate or an override that ends. */
const maxOpeningLanes = 100;

/**
 * One part per route reads from the index that claims read: ready tasks, parked tasks that are due, the next parked task, and
 * whether a class is open.
 */
export async function readUnsorted(
  d: LimitsDialect,
  read: Read,
  { routes, limit }: { readonly routes: readonly Route[]; readonly limit: number },
): Promise<UnsortedTasks> {
  const { column, order } = d.base.readyRank;
  const { isParked } = d.base;
  const [openingRows = [], ...results] = await read(
    joined([
      buildStatement(
        d.base,
        (bind) =>
          `SELECT l.id, l.opens_at, ${d.base.now(bind)} AS at FROM ${d.base.table("lanes")} l WHERE l.opens_at IS NOT NULL ORDER BY l.opens_at LIMIT ${maxOpeningLanes}`,
      ),
      ...d.forEach(
        [
          ["v_route", "text"],
          ["v_version", "text"],
        ],
        routes.map(({ workflow, version }) => [workflow, version]),
        (columnOf, bind) => {
          // Called once for each use, because every placeholder needs a value of its own, in the order of the text.
          const isOfRoute = () => `t.workflow = ${columnOf("v_route")} AND t.version = ${columnOf("v_version")}`;
          const runId = d.base.idAsText("t.run_id");
          const select = (kind: number) =>
            `SELECT ${kind} AS kind, ${runId} AS run_id, t.workflow AS route, t.priority, t.due_at FROM ${d.tasksByRoute} WHERE`;
          const now = () => d.base.now(bind);
          const parts = [
            () =>
              `${select(rowKind.ready)} t.state = ${taskState.ready} AND ${isOfRoute()} ORDER BY ${column} ${order}, t.due_at LIMIT ${limit}`,
            () =>
              `${select(rowKind.parked)} ${isParked} AND ${isOfRoute()} AND t.due_at <= ${now()} ORDER BY t.due_at LIMIT ${limit}`,
            () =>
              `${select(rowKind.next)} ${isParked} AND ${isOfRoute()} AND t.due_at > ${now()} ORDER BY t.due_at LIMIT 1`,
            () => `SELECT ${rowKind.open} AS kind, NULL AS run_id, c.route, 0 AS priority, 0 AS due_at FROM ${d.base.table("classes")} c
            WHERE c.route = ${columnOf("v_route")} AND c.version = ${columnOf("v_version")} AND c.blocked_on = '' LIMIT 1`,
          ];
          return parts
            .map((part, index) => `SELECT p${index}.*, ${now()} AS at FROM (${part()}) p${index}`)
            .join(" UNION ALL ");
        },
      ),
    ]),
  );
  const rows = results.flat();
  const ofKind = (kind: number) => rows.filter((row) => Number(row.kind) === kind);
  const due = [...ofKind(rowKind.ready), ...ofKind(rowKind.parked)].sort(byPriorityThenTime);
  const isFull = due.length >= limit;
  const isOpen = (row: SqlRow) => Number(row.opens_at) <= Number(row.at);
  const dueInstants = [
    ...ofKind(rowKind.next).map((row) => Number(row.due_at)),
    ...openingRows.filter((row) => !isOpen(row)).map((row) => Number(row.opens_at)),
  ];
  return {
    at: Number(rows[0]?.at ?? openingRows[0]?.at ?? 0),
    tasks: await readRuns(d, read, due),
    hasOpenClasses: ofKind(rowKind.open).length > 0,
    openedLanes: openingRows.filter(isOpen).map((row) => row.id as string),
    nextDueAt: isFull || dueInstants.length === 0 ? null : Math.min(...dueInstants),
  };
}

const byPriorityThenTime = (a: SqlRow, b: SqlRow) =>
  Number(b.priority) - Number(a.priority) || Number(a.due_at) - Number(b.due_at);

async function readRuns(d: LimitsDialect, read: Read, due: readonly SqlRow[]): Promise<readonly UnsortedTask[]> {
  if (due.length === 0) return [];
  const ids = due.map((row) => row.run_id as string);
  const [runRows = []] = await read([
    buildStatement(
      d.base,
      (bind) =>
        `SELECT ${runColumnsWith(taskState.ready)} FROM ${d.base.table("runs")} r WHERE ${d.base.oneOf("r.id", ids, bind)}`,
    ),
  ]);
  const runs = new Map(runRows.map((row) => [row.id as string, decodeRun(row)]));
  return due.flatMap((row) => {
    const run = runs.get(row.run_id as string);
    return run === undefined ? [] : [{ route: row.route as string, dueAt: Number(row.due_at), run }];
  });
}

export async function readLimits(d: LimitsDialect, read: Read): Promise<readonly StoredLimit[]> {
  const [rows = []] = await read([
    {
      text: `SELECT m.name, m.settings, m.override, m.created_at FROM ${d.base.table("limits")} m ORDER BY m.name`,
      values: [],
    },
  ]);
  return rows.map((row) => ({
    name: row.name as string,
    ...decodeSettings(row.settings as string),
    override: decodeOverride(row.override),
    createdAt: Number(row.created_at),
  }));
}

export async function readLanes(
  d: LimitsDialect,
  read: Read,
  limit: string,
  page: Parameters<Limits["lanes"]>[1],
): Promise<readonly LaneRecord[]> {
  const [from, to] = laneRangeOf(limit);
  const [rows = []] = await read([
    buildStatement(d.base, (bind) => {
      const isAfter = (column: string) =>
        page.after === null ? `${column} >= ${bind(from)}` : `${column} > ${bind(page.after)}`;
      const inRange = (column: string) =>
        page.id === undefined ? `${isAfter(column)} AND ${column} < ${bind(to)}` : `${column} = ${bind(page.id)}`;
      const inUse = `SELECT s.lane AS id, count(s.waits) - coalesce(sum(s.waits), 0) AS in_use, coalesce(sum(s.waits), 0) AS waiting, 0 AS opens_at
        FROM ${d.base.table("slots")} s WHERE ${inRange("s.lane")} GROUP BY s.lane ORDER BY s.lane LIMIT ${page.limit}`;
      const opening = `SELECT l.id, 0 AS in_use, 0 AS waiting, l.opens_at FROM ${d.base.table("lanes")} l
        WHERE ${inRange("l.id")} AND l.opens_at IS NOT NULL ORDER BY l.id LIMIT ${page.limit}`;
      return `SELECT x.id, sum(x.in_use) AS in_use, sum(x.waiting) AS waiting, max(x.opens_at) AS opens_at
        FROM (SELECT * FROM (${opening}) b UNION ALL SELECT * FROM (${inUse}) a) x GROUP BY x.id ORDER BY x.id LIMIT ${page.limit}`;
    }),
  ]);
  return rows.map((row) => ({
    id: row.id as string,
    inUse: Number(row.in_use),
    waitingSteps: Number(row.waiting),
    // A lane that opens at no instant is read as 0.
    opensAt: Number(row.opens_at) || null,
  }));
}

export async function readSlots(
  d: LimitsDialect,
  read: Read,
  of: Parameters<Limits["slots"]>[0],
  limit: number,
): Promise<readonly SlotRecord[]> {
  const condition = (bind: Bind) => {
    if ("lane" in of) return `s.lane = ${bind(of.lane)}`;
    if ("runIds" in of) {
      return d.base.oneOf(
        "s.run_id",
        of.runIds.filter((id) => d.base.isId(id)),
        bind,
      );
    }
    return of.afterRunId === null ? "1 = 1" : `s.run_id > ${bind(of.afterRunId)}`;
  };
  if ("runIds" in of && of.runIds.length === 0) return [];
  const [rows = []] = await read([
    buildStatement(
      d.base,
      (bind) =>
        `SELECT ${slotColumns} FROM ${d.base.table("slots")} s WHERE ${condition(bind)} ORDER BY s.run_id, s.lane, s.node LIMIT ${limit}`,
    ),
  ]);
  return rows.map(decodeSlotRecord);
}

export const slotColumns = "s.run_id, s.lane, s.node, s.waits, s.owner, s.epoch, s.at";

export const decodeSlotRecord = (row: SqlRow): SlotRecord => ({
  runId: row.run_id as string,
  node: row.node as string,
  lane: row.lane as string,
  isWaiting: row.waits === null || Number(row.waits) === 1,
  owner: row.owner as string | null,
  epoch: numberOrNull(row.epoch),
  at: Number(row.at),
});

export async function readClasses(
  d: LimitsDialect,
  read: Read,
  of: Parameters<Limits["classes"]>[0],
  limit: number,
): Promise<readonly ClassRecord[]> {
  if ("ids" in of && of.ids.length === 0) return [];
  const [rows = []] = await read([
    buildStatement(d.base, (bind) => {
      const condition =
        "ids" in of ? d.isOneOf("c.id", of.ids, bind) : of.afterId === null ? "1 = 1" : `c.id > ${bind(of.afterId)}`;
      return `SELECT ${classColumns} FROM ${d.base.table("classes")} c WHERE ${condition} ORDER BY c.id LIMIT ${limit}`;
    }),
  ]);
  return rows.map(decodeClassRecord);
}

export const classColumns = "c.id, c.route, c.version, c.lanes, c.turn, c.blocked_on";

export const decodeClassRecord = (row: SqlRow): ClassRecord => ({
  id: row.id as string,
  route: row.route as string,
  version: row.version as string,
  lanes: JSON.parse(row.lanes as string),
  turn: Number(row.turn),
  blockedOn: row.blocked_on === "" ? null : (row.blocked_on as string),
});

export async function countWaiting(
  d: LimitsDialect,
  read: Read,
  classIds: readonly string[],
  cap: number,
): Promise<ReadonlyMap<string, number>> {
  const classes = await readClasses(d, read, { ids: classIds }, classIds.length);
  if (classes.length === 0) return new Map();
  const results = await read(
    d.forEach(
      [
        ["v_route", "text"],
        ["v_version", "text"],
      ],
      classes.map(({ id, version }) => [id, version]),
      (columnOf) => {
        const first = `SELECT 1 AS one FROM ${d.tasksByRoute} WHERE t.state = ${taskState.ready} AND t.workflow = ${columnOf("v_route")} AND t.version = ${columnOf("v_version")} LIMIT ${cap}`;
        return `SELECT ${columnOf("n")} AS n, count(*) AS waiting FROM (${first}) x`;
      },
    ),
  );
  return new Map(results.flat().map((row) => [(classes[Number(row.n) - 1] as ClassRecord).id, Number(row.waiting)]));
}
