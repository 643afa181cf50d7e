/**
 * Steps of runs that were parked because they did nothing but wait for slots. Their rows have no owner. One that is offered a
 * slot counts as in use until its run makes the call again; one that has let an offer lapse is out of the line until then, but
 * keeps its age. The transaction that offers a slot makes the run's task due, so a worker claims it.
 *
 * Tasks are locked after lanes, and those that others have locked are skipped, so nothing waits for a task.
 */
import { stepOfSlot } from "../../../core/limits/lane.js";
import { offeredMs } from "../../../core/limits/lane-state.js";
import type { StepSlot, StepSlotChanges, StepSlotRequest } from "../../contract/limits.js";
import type { SqlRow } from "../dialect.js";
import { taskState } from "../records.js";
import { buildStatement, type LimitsDialect, type ReadSteps, type SqlText } from "./dialect.js";
import { isParkedStep } from "./lanes.js";

/** Of each look, this many rows that are offered or have let an offer lapse are judged. */
const judgedPerLook = 500;

/** What a run is that a slot might be offered to. */
export interface ParkedRun {
  /** `gone`: it has ended. `paused`: it must not hold an offer. `locked`: another transaction is writing it. */
  readonly state: "parked" | "ready" | "owned" | "locked" | "gone" | "paused";
  /** The route of its task; "" if that is not known. */
  readonly route: string;
}

/** The time, and the steps of these runs that were parked: one statement, so that a step without contention costs no more. */
export const selectClockAndParked = (d: LimitsDialect, asked: readonly StepSlotRequest[]): SqlText =>
  buildStatement(d.base, (bind) => {
    if (asked.length === 0) return `SELECT ${d.base.now(bind)} AS at`;
    const at = d.base.now(bind);
    const isAsking = d.base.oneOf("s.run_id", [...new Set(asked.map(({ runId }) => runId))].sort(), bind);
    return `SELECT ${at} AS at, s.run_id, s.lane, s.node FROM (SELECT 1 AS one) one
      LEFT JOIN ${d.base.table("slots")} s ON ${isAsking} AND ${isParkedStep}`;
  });

export interface TakenUp {
  readonly request: StepSlotRequest;
  readonly parked: StepSlot;
}

/** Which of the requests continue the wait of a step that was parked, and which begin to wait. */
export function matchParked(
  asked: readonly StepSlotRequest[],
  rows: readonly SqlRow[],
): { readonly takenUp: readonly TakenUp[]; readonly added: readonly StepSlotRequest[] } {
  const left = rows.filter((row) => row.run_id !== undefined && row.run_id !== null).map(decodeSlot);
  const takenUp: TakenUp[] = [];
  const added: StepSlotRequest[] = [];
  for (const request of asked) {
    const index = left.findIndex(
      ({ runId, lane, node }) =>
        runId === request.runId && lane === request.lane && stepOfSlot(node) === stepOfSlot(request.node),
    );
    const [parked] = index === -1 ? [] : left.splice(index, 1);
    if (parked === undefined) added.push(request);
    else takenUp.push({ request, parked });
  }
  return { takenUp, added };
}

/** The step waits again, with the age that it had. If a slot was offered to it, that is free for the first in the line: usually this step. */
export const takeUpParked = (
  d: LimitsDialect,
  { workerId, epoch }: StepSlotChanges["fence"],
  taken: readonly TakenUp[],
): readonly SqlText[] =>
  taken.map(({ request, parked }) =>
    buildStatement(
      d.base,
      (bind) =>
        `UPDATE ${d.base.table("slots")} SET node = ${bind(request.node)}, owner = ${bind(workerId)}, epoch = ${bind(epoch)},
          units = ${bind(request.units)}, waits = 1, offered_until = NULL WHERE ${d.isOneOfSlots([parked], bind)}`,
    ),
  );

/** Steps that have got a slot meanwhile keep it. */
export const leaveWaiting = (
  d: LimitsDialect,
  { workerId, epoch }: StepSlotChanges["fence"],
  left: readonly StepSlot[],
): readonly SqlText[] =>
  left.length === 0
    ? []
    : [
        buildStatement(
          d.base,
          (bind) => `UPDATE ${d.base.table("slots")} SET owner = NULL, epoch = NULL
            WHERE ${d.isOneOfSlots(left, bind)} AND waits = 1 AND owner = ${bind(workerId)} AND epoch = ${bind(epoch)}`,
        ),
      ];

/** Locks the tasks of these runs that no other transaction has locked. */
export function* readParkedRuns(
  d: LimitsDialect,
  runIds: readonly string[],
): ReadSteps<ReadonlyMap<string, ParkedRun>> {
  const ids = [...new Set(runIds)].sort();
  if (ids.length === 0) return new Map();
  const [lockedRows = []] = yield [
    buildStatement(
      d.base,
      (bind) =>
        `SELECT t.run_id, t.state, t.workflow FROM ${d.tasksByKey} WHERE ${d.base.oneOf("t.run_id", ids, bind)} ORDER BY t.run_id ${d.lock.skip}`,
    ),
  ];
  // The status of a run whose task is locked does not change.
  const [openRows = [], pausedRows = []] = yield [
    buildStatement(
      d.base,
      (bind) => `SELECT t.run_id FROM ${d.tasksByKey} WHERE ${d.base.oneOf("t.run_id", ids, bind)}`,
    ),
    buildStatement(
      d.base,
      (bind) =>
        `SELECT r.id FROM ${d.base.table("runs")} r WHERE ${d.base.oneOf("r.id", ids, bind)} AND r.status = 'paused'`,
    ),
  ];
  const locked = new Map(lockedRows.map((row) => [row.run_id as string, row]));
  const open = new Set(openRows.map((row) => row.run_id as string));
  const paused = new Set(pausedRows.map((row) => row.id as string));
  const runOf = (id: string): ParkedRun => {
    const row = locked.get(id);
    if (row === undefined) return { state: open.has(id) ? "locked" : "gone", route: "" };
    const route = row.workflow as string;
    if (Number(row.state) === taskState.owned) return { state: "owned", route };
    if (paused.has(id)) return { state: "paused", route };
    return { state: Number(row.state) === taskState.ready ? "ready" : "parked", route };
  };
  return new Map(ids.map((id) => [id, runOf(id)]));
}

export const makeReady = (d: LimitsDialect, runIds: readonly string[], at: number): readonly SqlText[] =>
  runIds.length === 0
    ? []
    : [
        d.updateEach(
          "tasks",
          "run_id",
          [["v_id", "id"]],
          [...runIds].sort().map((id) => [id]),
          () => [`due_at = ${Math.floor(at)}`, `state = ${taskState.ready}${d.whenReady}`],
        ),
      ];

export const offerSlots = (d: LimitsDialect, offered: readonly StepSlot[], at: number): readonly SqlText[] =>
  updateSlots(d, offered, `waits = 0, offered_until = ${Math.floor(at) + offeredMs}`);

export const deleteSlots = (d: LimitsDialect, slots: readonly StepSlot[]): readonly SqlText[] =>
  slots.length === 0
    ? []
    : [
        buildStatement(
          d.base,
          (bind) => `DELETE FROM ${d.base.table("slots")} WHERE ${d.isOneOfSlots(sortSlots(slots), bind)}`,
        ),
      ];

/**
 * Ends the offers whose time has passed. A run that is parked although a slot was offered to it has been executed meanwhile, and
 * its code has not made the call: its row is deleted. In case that it was offered the slot in the moment before it was parked,
 * it is made due all the same. Rows of runs that have ended or are paused are deleted: a run that is resumed is due.
 *
 * @returns the routes of the runs that were made due
 */
export function* endOffers(d: LimitsDialect, laneIds: readonly string[]): ReadSteps<readonly string[]> {
  const [rows = []] = yield [
    buildStatement(d.base, (bind) => {
      const isLapsed = `(s.waits IS NULL OR (s.waits = 0 AND s.offered_until <= ${d.base.now(bind)}))`;
      return `SELECT s.run_id, s.lane, s.node, s.waits, ${d.base.now(bind)} AS at FROM ${d.base.table("slots")} s
        WHERE ${isLapsed} AND ${d.isOneOf("s.lane", laneIds, bind)} AND ${isParkedStep} ORDER BY s.lane, s.at LIMIT ${judgedPerLook}`;
    }),
  ];
  if (rows.length === 0) return [];
  const runs = yield* readParkedRuns(
    d,
    rows.map((row) => row.run_id as string),
  );
  const stateOf = (row: SqlRow) => runs.get(row.run_id as string)?.state ?? "locked";
  const ended = rows.filter((row) => stateOf(row) === "gone" || stateOf(row) === "paused" || stateOf(row) === "parked");
  const lapsed = rows.filter((row) => !ended.includes(row) && row.waits !== null);
  const due = [...new Set(ended.filter((row) => stateOf(row) === "parked").map((row) => row.run_id as string))];
  const writes = [
    ...deleteSlots(d, ended.map(decodeSlot)),
    ...updateSlots(d, lapsed.map(decodeSlot), "waits = NULL, offered_until = NULL"),
    ...makeReady(d, due, Number(rows[0]?.at)),
  ];
  if (writes.length > 0) yield writes;
  return due.map((id) => runs.get(id)?.route ?? "");
}

function updateSlots(d: LimitsDialect, slots: readonly StepSlot[], set: string): readonly SqlText[] {
  if (slots.length === 0) return [];
  return [
    buildStatement(
      d.base,
      (bind) => `UPDATE ${d.base.table("slots")} SET ${set} WHERE ${d.isOneOfSlots(sortSlots(slots), bind)}`,
    ),
  ];
}

export const sortSlots = (slots: readonly StepSlot[]): readonly StepSlot[] =>
  [...slots].sort((a, b) => compare(a.runId, b.runId) || compare(a.lane, b.lane) || compare(a.node, b.node));

const compare = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);

export const decodeSlot = (row: SqlRow): StepSlot => ({
  runId: row.run_id as string,
  node: row.node as string,
  lane: row.lane as string,
});
