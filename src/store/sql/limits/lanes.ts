/** What transactions about limits have in common: they lock lanes, read their state, and write their pace. */
import { laneOf } from "../../../core/limits/lane.js";
import type { LaneState } from "../../../core/limits/lane-state.js";
import type { SqlRow } from "../dialect.js";
import { numberOrNull } from "../records.js";
import { buildStatement, type LimitsDialect, type SqlText } from "./dialect.js";
import { decodeSettings, settingsInForce } from "./settings.js";

/** Steps of a transaction that read or lock, and return something. */
export type ReadSteps<R> = Generator<readonly SqlText[], R, readonly (readonly SqlRow[])[]>;

/** Locks lanes in the order of their ids, and creates those that housekeeping has deleted. */
export function* lockLanes(d: LimitsDialect, ids: readonly string[]): ReadSteps<void> {
  if (ids.length === 0) return;
  const lanes = d.base.table("lanes");
  const [lockedRows = []] = yield [
    buildStatement(
      d.base,
      (bind) => `SELECT l.id FROM ${lanes} l WHERE ${d.isOneOf("l.id", ids, bind)} ORDER BY l.id ${d.lock.wait}`,
    ),
  ];
  const locked = new Set(lockedRows.map((row) => row.id as string));
  const missing = ids.filter((id) => !locked.has(id));
  if (missing.length === 0) return;
  yield [
    d.insertOrLock(
      lanes,
      [["id", "text"]],
      missing.map((id) => [id]),
      "id",
    ),
  ];
}

export interface LaneStates {
  /** When the lanes were read. */
  readonly at: number;
  readonly lanes: ReadonlyMap<string, LaneState>;
  /** Of the lanes, those whose slots are held until the end of the run. */
  readonly heldOpen: ReadonlySet<string>;
}

const rowKind = { lane: 0, clock: 1, limit: 2, slots: 3 } as const;

/**
 * Reads lanes whose locks are held.
 *
 * @param classIds the classes that the transaction reads; whether others are blocked on a lane is part of its state
 */
export function selectLaneStates(d: LimitsDialect, laneIds: readonly string[], classIds: readonly string[]): SqlText {
  const names = [...new Set(laneIds.map((id) => laneOf(id).limit))];
  return buildStatement(d.base, (bind) => {
    if (laneIds.length === 0) return `SELECT ${rowKind.clock} AS kind, ${d.base.now(bind)} AS value`;
    const table = (name: "classes" | "limits" | "slots" | "lanes") => d.base.table(name);
    const isOther = () => (classIds.length === 0 ? "1 = 1" : d.isNoneOf("c.id", classIds, bind));
    return `SELECT ${rowKind.lane} AS kind, l.paced_until AS value, l.id AS name, '' AS settings, '' AS override, l.opens_at AS opens_at,
          (SELECT c.turn FROM ${table("classes")} c WHERE c.blocked_on = l.id AND ${isOther()} ORDER BY c.turn LIMIT 1) AS others
        FROM ${table("lanes")} l WHERE ${d.isOneOf("l.id", laneIds, bind)}
      UNION ALL SELECT ${rowKind.clock}, ${d.base.now(bind)}, '', '', '', NULL, NULL
      UNION ALL SELECT ${rowKind.limit}, 0, m.name, m.settings, m.override, NULL, NULL FROM ${table("limits")} m WHERE ${d.isOneOf("m.name", names, bind)}
      UNION ALL SELECT ${rowKind.slots}, count(*), s.lane, '', '', sum(s.waits), NULL FROM ${table("slots")} s WHERE ${d.isOneOf("s.lane", laneIds, bind)} GROUP BY s.lane`;
  });
}

export function decodeLaneStates(rows: readonly SqlRow[], laneIds: readonly string[]): LaneStates {
  const ofKind = (kind: number) =>
    new Map(rows.filter((row) => Number(row.kind) === kind).map((row) => [row.name as string, row]));
  const at = Number(rows.find((row) => Number(row.kind) === rowKind.clock)?.value);
  const [limits, slots, lanes] = [ofKind(rowKind.limit), ofKind(rowKind.slots), ofKind(rowKind.lane)];
  const heldOpen = new Set<string>();
  const states = laneIds.map((id): readonly [string, LaneState] => {
    const limit = limits.get(laneOf(id).limit);
    const row = lanes.get(id);
    if (limit !== undefined && decodeSettings(limit.settings as string).isHeldOpen) heldOpen.add(id);
    // Of the rows in the lane, some are held slots, and the others steps that wait for one.
    const waitingSteps = Number(slots.get(id)?.opens_at ?? 0);
    return [
      id,
      {
        id,
        values: settingsInForce(limit?.settings, limit?.override, at),
        inUse: Number(slots.get(id)?.value ?? 0) - waitingSteps,
        waitingSteps,
        pacedUntilUs: Number(row?.value ?? 0),
        opensAt: numberOrNull(row?.opens_at ?? null),
        unreadTurn: numberOrNull(row?.others ?? null),
      },
    ];
  });
  return { at, lanes: new Map(states), heldOpen };
}

/** Writes the lanes whose pace has changed. */
export function updateLanes(
  d: LimitsDialect,
  before: ReadonlyMap<string, LaneState>,
  after: ReadonlyMap<string, LaneState>,
): readonly SqlText[] {
  const changed = [...after.values()].filter(({ id, pacedUntilUs, opensAt }) => {
    const lane = before.get(id);
    return lane !== undefined && (lane.pacedUntilUs !== pacedUntilUs || lane.opensAt !== opensAt);
  });
  if (changed.length === 0) return [];
  return [
    d.updateEach(
      "lanes",
      "id",
      [
        ["v_id", "text"],
        ["v_paced_until", "number"],
        ["v_opens_at", "number"],
      ],
      changed
        .sort((a, b) => (a.id < b.id ? -1 : 1))
        .map(({ id, pacedUntilUs, opensAt }) => [id, pacedUntilUs, opensAt]),
      (columnOf) => [`paced_until = ${columnOf("v_paced_until")}`, `opens_at = ${columnOf("v_opens_at")}`],
    ),
  ];
}
