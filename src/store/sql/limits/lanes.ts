/** What transactions about limits have in common: they lock lanes, read their state, and write their pace. */
import { laneOf } from "../../../core/limits/lane.js";
import type { LaneState } from "../../../core/limits/lane-state.js";
import { unknownValues, valuesInForce } from "../../../core/limits/settings.js";
import type { SqlRow } from "../dialect.js";
import { numberOrNull } from "../records.js";
import { isBlockedOn } from "./classes.js";
import { buildStatement, type LimitsDialect, type ReadSteps, type SqlText } from "./dialect.js";
import { decodeOverride, decodeSettings } from "./settings.js";

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
    // Most lanes have neither a pace nor further classes; their rows are left out.
    return `SELECT * FROM (SELECT ${rowKind.lane} AS kind, l.paced_until AS value, l.id AS name, '' AS settings, '' AS override, l.opens_at AS opens_at,
          0 AS parked, 0 AS offered_units, l.looks_at AS looks_at,
          (SELECT c.turn FROM ${table("classes")} c WHERE ${isBlockedOn("l.id")} AND ${isOther()} ORDER BY c.turn LIMIT 1) AS others
        FROM ${table("lanes")} l WHERE ${d.isOneOf("l.id", laneIds, bind)}) x
        WHERE x.value <> 0 OR x.opens_at IS NOT NULL OR x.looks_at IS NOT NULL OR x.others IS NOT NULL
      UNION ALL SELECT ${rowKind.clock}, ${d.base.now(bind)}, '', '', '', NULL, 0, 0, NULL, NULL
      UNION ALL SELECT ${rowKind.limit}, 0, m.name, m.settings, m.override, NULL, 0, 0, NULL, NULL FROM ${table("limits")} m WHERE ${d.isOneOf("m.name", names, bind)}
      UNION ALL SELECT ${rowKind.slots}, count(s.waits), s.lane, '', '', sum(s.waits),
          sum(CASE WHEN ${isParkedStep} THEN 1 ELSE 0 END), sum(CASE WHEN ${isParkedStep} AND s.waits = 0 THEN s.units ELSE 0 END),
          min(CASE WHEN s.waits = 0 THEN s.offered_until END), NULL FROM ${table("slots")} s WHERE ${d.isOneOf("s.lane", laneIds, bind)} GROUP BY s.lane`;
  });
}

/** A step of a run that was parked while it waited for a slot. */
export const isParkedStep = "s.owner IS NULL AND s.node <> ''";

export function decodeLaneStates(rows: readonly SqlRow[], laneIds: readonly string[]): LaneStates {
  const ofKind = (kind: number) =>
    new Map(rows.filter((row) => Number(row.kind) === kind).map((row) => [row.name as string, row]));
  const at = Number(rows.find((row) => Number(row.kind) === rowKind.clock)?.value);
  const [limits, slots, lanes] = [ofKind(rowKind.limit), ofKind(rowKind.slots), ofKind(rowKind.lane)];
  const heldOpen = new Set<string>();
  const limitOf = new Map(
    [...limits].map(([name, row]) => {
      const settings = decodeSettings(row.settings as string);
      const values = valuesInForce(settings, decodeOverride(row.override), at);
      return [name, { values, isHeldOpen: settings.isHeldOpen }];
    }),
  );
  const states = laneIds.map((id): readonly [string, LaneState] => {
    const limit = limitOf.get(laneOf(id).limit);
    const row = lanes.get(id);
    if (limit?.isHeldOpen) heldOpen.add(id);
    // Of the rows in the lane, some are held slots, and the others steps that wait for one.
    const waitingSteps = Number(slots.get(id)?.opens_at ?? 0);
    return [
      id,
      {
        id,
        values: limit?.values ?? unknownValues,
        inUse: Number(slots.get(id)?.value ?? 0) - waitingSteps,
        waitingSteps,
        pacedUntilUs: Number(row?.value ?? 0),
        opensAt: numberOrNull(row?.opens_at ?? null),
        unreadTurn: numberOrNull(row?.others ?? null),
        ...parkedStepsOf(row, slots.get(id)),
      },
    ];
  });
  return { at, lanes: new Map(states), heldOpen };
}

/** A lane that must be looked at is written, also if what it was to be looked at for is gone. */
function parkedStepsOf(lane: SqlRow | undefined, slots: SqlRow | undefined): Pick<LaneState, "parked"> {
  const count = Number(slots?.parked ?? 0);
  const looksAt = numberOrNull(lane?.looks_at ?? null);
  if (count === 0 && looksAt === null) return {};
  const offeredUnits = Number(slots?.offered_units ?? 0);
  return { parked: { count, offeredUnits, offerEndsAt: numberOrNull(slots?.looks_at ?? null), looksAt } };
}

/** Writes the lanes whose pace has changed. */
export function updateLanes(
  d: LimitsDialect,
  before: ReadonlyMap<string, LaneState>,
  after: ReadonlyMap<string, LaneState>,
): readonly SqlText[] {
  const changed = [...after.values()].filter(({ id, pacedUntilUs, opensAt, parked }) => {
    const lane = before.get(id);
    return (
      lane !== undefined &&
      (lane.pacedUntilUs !== pacedUntilUs || lane.opensAt !== opensAt || looksAtIn(lane.parked) !== looksAtIn(parked))
    );
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
        ["v_looks_at", "number"],
      ],
      changed
        .sort((a, b) => (a.id < b.id ? -1 : 1))
        .map(({ id, pacedUntilUs, opensAt, parked }) => [id, pacedUntilUs, opensAt, looksAtIn(parked)]),
      (columnOf) => [
        `paced_until = ${columnOf("v_paced_until")}`,
        `opens_at = ${columnOf("v_opens_at")}`,
        `looks_at = ${columnOf("v_looks_at")}`,
      ],
    ),
  ];
}

const looksAtIn = (parked: LaneState["parked"]): number | null => parked?.looksAt ?? null;
